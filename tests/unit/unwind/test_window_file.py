"""Windows in a file come back as they were, or not at all."""

from __future__ import annotations

import struct
from array import array
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from purebpf.errors import FormatError
from purebpf.unwind.machine import X86_64
from purebpf.unwind.packed_rule import pack_rule
from purebpf.unwind.window_file import PackedWindows, Source, pack_windows, read_windows
from tests.unit.unwind.cfi_builder import TEXT, Section, advance, cfa_offset

_SOURCE = Source(TEXT, TEXT + 4096, 0x1000, 99)


def _windows():
    section = Section()
    for n in range(9):
        section.fde(TEXT + 400 * n, 300, advance(4) + cfa_offset(16 + 8 * n))
    cfi = section.cfi()
    whole = cfi.whole()
    rules = b"".join(pack_rule(rule, X86_64) for rule in cfi.table.rules)
    return PackedWindows(whole.first, rules, whole.places, whole.blocks)


_WINDOWS = _windows()
_DATA = pack_windows(_WINDOWS, _SOURCE)


def test_what_is_written_is_read():
    assert read_windows(_DATA, _SOURCE, "file") == _WINDOWS


@given(st.integers(0, len(_DATA) - 1), st.integers(1, 255))
def test_damage_is_seen(at, change):
    data = bytearray(_DATA)
    data[at] ^= change
    if 17 <= at < 20:  # padding
        return
    with pytest.raises(FormatError):
        read_windows(bytes(data), _SOURCE, "file")


@given(st.integers(0, len(_DATA) - 1))
def test_truncation_is_seen(size):
    with pytest.raises(FormatError):
        read_windows(_DATA[:size], _SOURCE, "file")


@pytest.mark.parametrize("field", Source._fields)
def test_windows_of_another_file_are_not_taken(field):
    with pytest.raises(FormatError, match="not the windows of this file"):
        read_windows(_DATA, _SOURCE._replace(**{field: 7}), "file")


def _hostile(**changes):
    windows = _WINDOWS._replace(**changes)
    return pack_windows(windows, _SOURCE)


@pytest.mark.parametrize(
    "changes",
    [
        {"places": array("I", [0])},
        {"places": array("I", [len(_WINDOWS.blocks) + 1])},
        {"places": array("I", [0xFFFFFFFF])},
        {"blocks": array("I", [0xFFFF]) + _WINDOWS.blocks},
        {"blocks": array("I", [0]) + _WINDOWS.blocks},
        {"rules": b""},
        {"rules": _WINDOWS.rules[:-8]},
    ],
)
def test_what_points_outside_is_not_taken_though_its_sum_is_right(changes):
    data = _hostile(**changes)
    assert crc32(data[24:]) == struct.unpack_from("=I", data, 20)[0]
    with pytest.raises(FormatError):
        read_windows(data, _SOURCE, "file")
