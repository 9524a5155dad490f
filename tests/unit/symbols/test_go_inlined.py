"""The functions that Go's compiler put into others."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from purebpf.errors import FormatError
from purebpf.symbols.go_inlined import GoInlined
from tests.unit.symbols.test_go_stack import _uleb
from tests.unit.symbols.test_go_table import _image

_TEXT = 0x1000
"""Of `symbol_file`; its first segment is all that it loads."""
_NAMES = b"\0main.serve\0main.put\0main.send\0"
_SERVE, _PUT, _SEND = 1, 12, 21
_STEPS = [(-1, 8), (1, 8), (0, 16), (-1, 8)]
"""(index of the call, bytes): send, which put calls, is inlined with it."""
_START = 0x40


def _indices(steps=_STEPS):
    out, before = b"\0", -1
    for value, size in steps:
        change = value - before
        out += _uleb(change << 1 if change >= 0 else ~change << 1 | 1) + _uleb(size)
        before = value
    return out + b"\0"


def _table(since: bool, tree: int = 0, steps=_STEPS, tables: int = 3, parts: int = 4):
    """.gopclntab of one function, `main.serve`."""
    numbers = _indices(steps)
    head = 72
    lines = (0,) if since else ()
    words = (_START, _SERVE, 0, 0, 0, 0, 0, tables, 0, *lines)
    record = struct.pack(f"<{len(words)}I4B", *words, 0, 0, 0, parts)
    record += struct.pack(f"<{tables}I", *(0, 0, 1)[:tables])
    record += struct.pack(f"<{parts}I", *(0, 0, 0, tree)[:parts])
    rows = struct.pack("<3I", _START, 12, _START + 40)
    at_numbers = head + len(_NAMES)
    at_rows = at_numbers + len(numbers)
    places = (1, 0, _TEXT, head, 0, 0, at_numbers, at_rows)
    magic = 0xFFFFFFF1 if since else 0xFFFFFFF0
    return struct.pack("<IHBB8Q", magic, 0, 1, 8, *places) + _NAMES + numbers + rows + record


def _calls(since: bool):
    """put, called at 4 bytes from the start; send, called in put, at the 20th byte."""
    if since:
        return struct.pack("<BxxxiiiBxxxiii", 0, _PUT, 4, 1, 0, _SEND, 20, 1)
    return struct.pack("<hBxiiiihBxiiii", -1, 0, 0, 9, _PUT, 4, 0, 0, 0, 9, _SEND, 20)


def _inlined(since: bool, **more):
    image = _image(_table(since, **more))
    calls = _calls(since)
    original, where = image.read, image.segments[0]

    def read(offset, size):
        at = offset - where.offset
        if 0 <= at < len(calls):
            return calls[at : at + size]
        return original(offset, size)

    image.read = read
    return GoInlined(image, where.address)


@pytest.mark.parametrize("since", [False, True], ids=["Go 1.18", "Go 1.20"])
@pytest.mark.parametrize(
    ("offset", "names"),
    [
        (0, ()),
        (8, ("main.send", "main.put")),
        (16, ("main.put",)),
        (31, ("main.put",)),
        (32, ()),
        (400, ()),
    ],
)
def test_the_calls_at_an_instruction(since, offset, names):
    assert _inlined(since).at(_TEXT + _START + offset) == names
    assert _inlined(since).at(5) == ()


@pytest.mark.parametrize(
    "more",
    [{"tree": 0xFFFFFFFF}, {"tables": 2}, {"parts": 3}, {"tree": 1 << 30}],
    ids=["no calls", "no indices", "no tree", "a tree outside of the file"],
)
def test_functions_without_inlined_calls(more):
    assert _inlined(True, **more).at(_TEXT + _START + 8) == ()


def test_a_call_that_is_in_itself_ends():
    names = _inlined(True, steps=[(1, 64)]).at(_TEXT + _START + 8)
    assert len(names) == 64


def test_a_file_without_a_table():
    with pytest.raises(FormatError, match="no table of functions"):
        GoInlined(_image(b"\0" * 80), 0)


@settings(max_examples=200)
@given(table=st.binary(max_size=200), address=st.integers(0, 1 << 20))
def test_any_table_gives_names_or_none(table, address):
    head = _table(True)[:72]
    try:
        inlined = GoInlined(_image(head + table), 0)
    except FormatError:
        return
    assert all(isinstance(name, str) for name in inlined.at(address))
