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
from purebpf.unwind.window_file import PackedWindows, Source, _reach, pack_windows, read_windows
from purebpf.unwind.windows import OFFSET_BITS
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


@given(
    st.lists(st.integers(0, 1 << 21) | st.integers(0, (1 << 32) - 1), min_size=1, max_size=60),
    st.integers(0, 2000) | st.integers(8190, 8194),
    st.integers(0, 40),
)
def test_a_rule_that_is_not_there_is_seen_among_many(words, rules, zeros):
    blocks = array("I", [*words, *[0] * 20 * zeros])
    assert _reach(blocks, rules << OFFSET_BITS) == (max(blocks) >> OFFSET_BITS >= rules)


@pytest.mark.parametrize("rules", [1, 31, 32, 33, 723, 8191, 8192, 8193])
@pytest.mark.parametrize("many", [0, 500])
def test_the_last_rule_is_there_and_the_next_one_is_not(rules, many):
    last = rules << OFFSET_BITS
    words = [0] * many
    assert not _reach(array("I", [*words, last - 1, *words]), last)
    assert _reach(array("I", [*words, last, *words]), last)
    assert _reach(array("I", [*words, last - 1, last, *words]), last)
