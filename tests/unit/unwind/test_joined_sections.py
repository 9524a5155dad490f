""".debug_frame beside .eh_frame: functions that only the former has keep their rules."""

from __future__ import annotations

import struct

import pytest

from purebpf.unwind.cfi_file import CfiFile
from purebpf.unwind.windows import WINDOW_BITS, find_in_block
from tests.unit.unwind.cfi_builder import (
    FRAME,
    HEADER,
    TEXT,
    Image,
    Section,
    cfa_offset,
    cie,
    rules,
)


def _debug_frame(*functions: tuple[int, int, int]) -> bytes:
    """A section with a function for each (start, size, CFA)."""
    first = bytearray(cie(augmentation=b""))
    first[4:8] = b"\xff" * 4
    data = bytes(first)
    for start, size, cfa in functions:
        body = struct.pack("<IQQ", 0, start, size) + cfa_offset(cfa)
        body += bytes(-len(body) % 4)
        data += struct.pack("<I", len(body)) + body
    return data


@pytest.mark.parametrize("has_header", [False, True])
def test_functions_that_only_debug_frame_has(*, has_header: bool) -> None:
    section = Section()
    section.fde(TEXT + 0x800, 0x40, cfa_offset(16))
    section.fde(TEXT + 0x40, 0x40, cfa_offset(24))
    added = ((TEXT + 0x90, 0x20, 48), (TEXT + 0x840, 0x40, 56), (TEXT + 0x50, 8, 99))
    sections = {".eh_frame": (FRAME, section.data), ".debug_frame": (0, _debug_frame(*added), 0)}
    if has_header:
        sections[".eh_frame_hdr"] = (HEADER, section.header())
    cfi = CfiFile(Image(sections))
    expected = {0x44: 24, 0x54: 24, 0x94: 48, 0x804: 16, 0x844: 56}
    assert {at: getattr(cfi.row(TEXT + at), "cfa", None) for at in expected} == expected
    assert cfi.row(TEXT + 0xB0) is None
    for offset, cfa in expected.items():
        address = TEXT + offset
        number = cfi.rows.rule_id(address)
        assert cfi.table.rules[number].cfa == cfa
        block = cfi.window(address >> WINDOW_BITS)
        assert find_in_block(block, address & (1 << WINDOW_BITS) - 1) == number
    assert cfi.uses_eh_frame


def test_debug_frame_that_adds_nothing_is_not_kept() -> None:
    section = Section().fde(TEXT, 0x100, cfa_offset(16))
    debug = _debug_frame((TEXT, 0x80, 48))
    alone = CfiFile(Image({".eh_frame": (FRAME, section.data)}))
    both = CfiFile(Image({".eh_frame": (FRAME, section.data), ".debug_frame": (0, debug, 0)}))
    end = TEXT + 0x1000
    assert rules(both, TEXT, end) == rules(alone, TEXT, end)
    assert both.source == alone.source
