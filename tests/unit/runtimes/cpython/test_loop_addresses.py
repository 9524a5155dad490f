"""Which addresses of a stack are calls of the evaluation loop."""

from __future__ import annotations

import pytest

from purebpf.observe.runtimes.cpython.python_tables import _in_loop
from purebpf.symbols.code_range import CodeRange

HOT, COLD = CodeRange(0x100, 0x200), CodeRange(0x1000, 0x1010)


@pytest.mark.parametrize(
    ("address", "as_leaf", "as_caller"),
    [
        (0xFF, False, False),
        (0x100, True, False),  # behind a call at the end of the function before
        (0x101, True, True),
        (0x1FF, True, True),
        (0x200, False, True),  # behind a call at the end of the loop
        (0x201, False, False),
        (0x1000, True, False),
        (0x1010, False, True),
    ],
)
def test_callers_are_looked_up_one_byte_earlier(
    address: int, as_leaf: bool, as_caller: bool
) -> None:
    assert _in_loop((HOT, COLD), [address, address]) == [as_leaf, as_caller]


def test_no_addresses_and_no_loop() -> None:
    assert _in_loop((HOT,), []) == []
    assert _in_loop((), [0x100, 0x100]) == [False, False]
