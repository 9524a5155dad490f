"""The functions that begin a thread are known at the root of a stack, with names or without."""

from __future__ import annotations

import pytest

from purebpf.symbols.frame import Address, Frame, Reason, Unknown
from purebpf.symbols.start_functions import count_starts

_LIBC, _PYTHON = "/lib/libc.so.6", "/usr/bin/python3.12"


def _frame(name: str, module: str = _LIBC) -> Frame:
    return Frame(name, 0, module, Address(0), "user")


_MAIN = _frame("Py_BytesMain", _PYTHON)
_NO_SYMBOLS = Unknown(Reason.UNMAPPED, _LIBC, Address(0), "user")


@pytest.mark.parametrize(
    ("stack", "starts"),
    [
        ([], 0),
        ([_MAIN], 0),
        ([_MAIN, _frame("__libc_start_main"), _frame("_start", _PYTHON)], 2),
        ([_MAIN, _frame("libc.so.6!0x271d0"), _frame("__libc_start_main"), _frame("_start")], 3),
        (
            [
                _MAIN,
                _frame("libc.so.6!0x271d0"),
                _frame("__libc_start_main"),
                _frame("x!0x10", "x"),
            ],
            3,
        ),
        ([_MAIN, _frame("libc.so.6!0x88f00"), _frame("libc.so.6!0x108910")], 2),
        ([_MAIN, _NO_SYMBOLS, _NO_SYMBOLS], 2),
        ([_MAIN, _frame("start_thread", "libpthread-2.31.so"), _frame("__clone")], 2),
        ([_MAIN, _frame("ld-musl-x86_64.so.1!0x5a310", "/lib/ld-musl-x86_64.so.1")], 1),
        (
            [
                _frame("libc.so.6!0x271d0"),
                _frame("loop", "server"),
                _frame("server!0x10", "server"),
            ],
            0,
        ),
        ([_frame("qsort"), _MAIN], 0),
        ([object(), _frame("start_thread")], 1),
    ],
)
def test_they_are_at_the_root_in_one_piece(stack: list[object], starts: int) -> None:
    assert count_starts(stack) == starts
