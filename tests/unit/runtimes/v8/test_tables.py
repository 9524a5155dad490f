"""The packed tables of V8's code, made as V8 makes them, and of any bytes."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from purebpf.runtimes.v8.tables import (
    Position,
    Safepoint,
    TranslatedFrame,
    baseline_bytecode,
    find_position,
    find_safepoint,
    inlined_calls,
    read_safepoint_header,
    translated_frames,
)
from tests.unit.runtimes.v8.fake_v8 import VERSIONS, FakeV8, unsigned


def signed(value: int) -> bytes:
    """An operand of a translation."""
    return unsigned(abs(value) << 1 | (value < 0))


@pytest.mark.parametrize("version", VERSIONS)
def test_the_position_is_that_of_the_last_entry(version: int) -> None:
    table = FakeV8(version).positions((0, 10), (4, 25), (9, 12), (200, 1_000_000))
    found = [find_position(table, at, version).offset for at in (0, 3, 4, 8, 9, 199, 200, 5000)]
    assert found == [10, 10, 25, 25, 12, 12, 1_000_000, 1_000_000]
    assert find_position(b"", 7, version) == Position(-1, 0)
    assert find_position(FakeV8(version).positions((5, 1)), 4, version) == Position(-1, 0)


def test_positions_name_the_inlined_call() -> None:
    raw = 7 + 1 << 1 | 3 << 31
    table = unsigned(1 << 1) + unsigned(raw << 1)
    assert find_position(table, 0, 1306) == Position(7, 3)
    calls = struct.pack("<qi4x", raw, 2) + struct.pack("<qi4x", 41 << 1, -1) + b"rest"
    assert list(inlined_calls(calls)) == [(Position(7, 3), 2), (Position(40, 0), -1)]


SIZES = bytes([2, 2, 2, 2, 1, 2, 3]) + bytes([3, 3, 3, 3, 1, 3, 5]) + bytes([5, 5, 5, 5, 1, 5, 9])
"""Of four prefixes and three bytecodes: plain, wide, extra wide."""


def test_baseline_code_leads_to_its_bytecode() -> None:
    code = bytes([4, 5, 0, 0, 6, 0, 0, 0, 0, 1, 5, 0, 0, 0, 0, 6, 0, 0])
    at = [0, 1, 3, 9, 15]  # of 4; 5; wide 6; extra wide 5; 6
    table = b"".join(map(unsigned, (100, 10, 20, 300, 5, 7)))
    ends = [110, 130, 430, 435, 442]
    for offset, end in zip(at, ends, strict=True):
        assert baseline_bytecode(table, code, SIZES, end - 1) == offset
    assert baseline_bytecode(table, code, SIZES, 0) == 0
    assert baseline_bytecode(table, code, SIZES, 442) is None
    assert baseline_bytecode(table, code, b"", 200) is None


def safepoints(version: int, *entries: tuple[int, int, int], is_maglev: bool) -> bytes:
    """A table with return addresses of 2 bytes: pc, deoptimisation + 1, trampoline + 1."""
    configuration = 1 | 1 << 1 | 2 << 4 | 1 << 7
    words = [len(entries), configuration]
    words = [9, *words] if version >= 1300 else words
    words += [0] * (4 - len(words)) if is_maglev else []
    rest = bytes(1 + is_maglev)
    raw = b"".join(struct.pack("<HBH", *entry) + rest for entry in entries)
    return struct.pack(f"<{len(words)}I", *words) + raw + bytes(16)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("is_maglev", [False, True])
def test_safepoints(version: int, *, is_maglev: bool) -> None:
    raw = safepoints(version, (20, 1, 401), (48, 0, 0), (90, 4, 411), is_maglev=is_maglev)
    table = read_safepoint_header(raw[:16], version, is_maglev=is_maglev)
    assert table is not None
    assert find_safepoint(table, raw, 20) == Safepoint(20, 0)
    assert find_safepoint(table, raw, 48) == Safepoint(48, -1)
    assert find_safepoint(table, raw, 90) == Safepoint(90, 3)
    assert find_safepoint(table, raw, 410) == Safepoint(90, 3)  # deoptimisation changed it
    assert find_safepoint(table, raw, 50) is None


@pytest.mark.parametrize("words", [(0, 0, 0, 0), (0xFFFFFFFF,) * 4, (9, 1 << 20, 0x121, 0)])
def test_false_safepoints_are_none(words: tuple[int, ...]) -> None:
    raw = struct.pack("<4I", *words)
    assert read_safepoint_header(raw, 1306, is_maglev=False) is None
    assert read_safepoint_header(raw[:12], 1306, is_maglev=False) is None


@pytest.mark.parametrize("version", [1306, 1401, 1406])
def test_a_translation_has_its_frames(version: int) -> None:
    operands = b"".join(map(signed, (12, 1, 0, 3, 0, 1)))
    built_in = b"\x02" + b"".join(map(signed, (994, 12, 9))) + b"\x26" + signed(13)
    inner = b"\x01" + b"".join(map(signed, (40, 2, 5, 3)))
    data = b"\x0e" + unsigned(0) + unsigned(3) + unsigned(2)
    data += b"\x00" + operands + b"\x28" + signed(-3) + built_in + inner + b"\x25\x25\x0e\x00"
    assert translated_frames(data, 0, version) == [
        TranslatedFrame(True, 12, 1, 0),
        TranslatedFrame(False, 0, 13, 0),
        TranslatedFrame(True, 40, 2, 5),
    ]


def test_a_translation_repeats_its_basis() -> None:
    first = b"\x0e\x00\x02\x02" + b"\x00" + b"".join(map(signed, (12, 1, 0, 3, 0, 1))) + b"\x25\x25"
    second = b"\x0e" + unsigned(len(first)) + b"\x02\x02" + b"\x00"
    second += b"".join(map(signed, (30, 1, 0, 3, 0, 1))) + bytes([45 + 2])
    third = b"\x0e" + unsigned(len(first + second)) + b"\x02\x02" + bytes([44]) + unsigned(3)
    data = first + second + third
    assert translated_frames(data, len(first), 1306) == [TranslatedFrame(True, 30, 1, 0)]
    assert translated_frames(data, len(first + second), 1306) == [TranslatedFrame(True, 12, 1, 0)]
    too_many = b"\x0e" + unsigned(len(data)) + b"\x02\x02" + bytes([45 + 9])
    assert translated_frames(data + too_many, len(data), 1306) is None


def test_translations_of_other_versions() -> None:
    frame = b"".join(map(signed, (19, 1, 10, 0, 1)))
    built_in = b"".join(map(signed, (994, 12, 9)))
    oldest = (
        bytes([6, 2, 2, 0, 36]) + frame + bytes([48, 6, 38]) + built_in + bytes([44]) + signed(8)
    )
    expected = [TranslatedFrame(True, 19, 1, 10), TranslatedFrame(False, 0, 8, 0)]
    assert translated_frames(oldest, 0, 1001) == expected
    assert translated_frames(oldest, 0, 1002) == expected
    old = bytes([2, 0, 2, 2, 23]) + frame + bytes([31, 6, 25]) + built_in + bytes([29]) + signed(8)
    assert translated_frames(old, 0, 1103) == expected
    later = bytes([12, 0, 2, 2, 0]) + frame + bytes([35, 6, 2]) + built_in + bytes([33]) + signed(8)
    assert translated_frames(later, 0, 1108) == expected
    assert translated_frames(later, 0, 1204) == expected
    assert translated_frames(later, 0, 1099) is None


@given(
    st.binary(max_size=200),
    st.integers(-5, 300),
    st.sampled_from(VERSIONS),
    st.binary(max_size=48),
)
def test_any_bytes_end(data: bytes, at: int, version: int, sizes: bytes) -> None:
    find_position(data, at, version)
    baseline_bytecode(data, data[::-1], sizes, at)
    translated_frames(data, at, version)
    list(inlined_calls(data))
    for is_maglev in (False, True):
        table = read_safepoint_header(data[:16], version, is_maglev=is_maglev)
        if table is not None and table.size < 10_000:
            find_safepoint(table, data, at)


def test_a_translation_that_is_its_own_basis_ends() -> None:
    data = b"\x0e\x00\x02\x02" + bytes([44]) + unsigned(1 << 40)
    assert translated_frames(data, 0, 1306) is None
