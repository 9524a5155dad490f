"""Hostile call frame information: bounded time and memory, and never an exception."""

from __future__ import annotations

import random
import resource
import struct
import time
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from purebpf.errors import FormatError
from purebpf.unwind import fde_index
from purebpf.unwind.cfi_file import CfiFile
from purebpf.unwind.packed_rule import pack_rule
from tests.unit.unwind.cfi_builder import (
    FRAME,
    HEADER,
    TEXT,
    Image,
    Section,
    advance,
    cfa_offset,
    cie,
    expression,
    uleb,
)

pytestmark = pytest.mark.slow


_SECONDS = 4
_MEGABYTES = 96


def exercise(cfi):
    """Ask a file for everything."""
    for number in range(cfi.first_window, cfi.first_window + min(cfi.window_count, 64)):
        assert len(cfi.window(number)) <= 1026
    for address in (TEXT - 1, TEXT, TEXT + 1, TEXT + 0x400, TEXT + 0xFFFF, 0, (1 << 64) - 1):
        cfi.fde(address)
        cfi.row(address)
        cfi.function(address)
    rows = cfi.rows
    assert list(rows.starts) == sorted(set(rows.starts))
    cfi.whole()
    for rule in cfi.table.rules[:1000]:
        if cfi.machine:
            assert len(pack_rule(rule, cfi.machine)) == 8


def bounded(cfi):
    """`exercise` within limits, in CPU time and memory."""
    tracemalloc.start()
    try:
        begun = time.process_time()
        exercise(cfi)
        spent = time.process_time() - begun
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert spent < 5 * _SECONDS  # tracing makes it several times slower
    assert peak < _MEGABYTES << 20


def _many(count, entry, first=b""):
    section = Section(first or cie())
    for number in range(count):
        entry(section, number)
    return section


_CASES = {
    "remembers for ever": Section().fde(TEXT, 99, b"\x0a" * 100_000),
    "remembers and restores": Section().fde(TEXT, 99, b"\x0a\x0b" * 20_000),
    "a row for each byte": Section().fde(TEXT, 0xFFFFFFFF, b"\x41\x0e\x08" * 40_000),
    "2^32 rows long": Section().fde(TEXT, 0xFFFFFFFF, advance(0xFFFFFFFF) * 20_000),
    "a factor of 2^63": Section(cie(code_factor=1 << 63)).fde(TEXT, 99, b"\x7f" * 9999),
    "all registers": Section().fde(
        TEXT, 99, b"".join(b"\x05" + uleb(n) + b"\x01" for n in range(20_000))
    ),
    "long numbers": Section().fde(TEXT, 99, (b"\x0e" + b"\xff" * 60_000)),
    "rules without end": _many(
        1000,
        lambda section, n: section.fde(
            TEXT + 16 * n, 16, b"".join(b"\x41" + cfa_offset(n * 40 + k) for k in range(40))
        ),
    ),
    "one start for all": _many(5000, lambda section, n: section.fde(TEXT, n, cfa_offset(n))),
    "nested": _many(2000, lambda section, n: section.fde(TEXT + n, 9999, cfa_offset(n))),
    "a CIE for each": _many(
        2000, lambda section, n: section.add_cie(cie()).fde(TEXT + n, 1, b"\x41" * 9)
    ),
    "a long CIE": Section(cie(b"\x0c\x07\x08" * 9000)).fde(TEXT, 99),
    "an endless augmentation": Section(cie(augmentation=b"z" + b"R" * 99_999)).fde(TEXT, 9),
    "augmentation data past the end": Section(cie(augmentation=b"zR", data=b"")).fde(TEXT, 9),
    "expressions": Section().fde(TEXT, 99, expression(0x0F, b"\x2f\xfd\xff") * 9999),
    "nothing": Section(b""),
}


@pytest.mark.parametrize("header", [False, True])
@pytest.mark.parametrize("name", _CASES)
def test_work_is_bounded(name, header):
    bounded(_CASES[name].cfi(header=header))


def test_zeros_are_bounded():
    bounded(CfiFile(Image({".eh_frame": (FRAME, bytes(8 << 20))})))


@pytest.mark.parametrize("size", range(8))
def test_a_tail_of_zeros_costs_nothing(size):
    cfi = CfiFile(Image({".eh_frame": (FRAME, Section().data + bytes(size))}))
    exercise(cfi)
    assert not cfi.exhausted


def test_an_entry_that_is_its_own_cie():
    data = struct.pack("<IIiI", 16, 4, 0, 64) + bytes(8)
    bounded(CfiFile(Image({".eh_frame": (FRAME, data)})))


def test_cies_inside_of_each_other():
    """Every FDE has a CIE of its own in the same bytes: reading all would take quadratic time."""
    body = struct.pack("<II", 30_000, 0) * 4000
    section = Section(b"")
    section.data = struct.pack("<II", len(body) + 4, 0xFFFF) + body
    for number in range(4000):
        section.cie_at = 8 + 8 * number
        section.fde(TEXT + number, 1)
    bounded(section.cfi())
    bounded(section.cfi(header=True))


@pytest.mark.parametrize("count", [1, 0xFFFFFFFF])
def test_a_search_table_that_lies(count):
    section = Section().fde(TEXT, 64)
    rows = struct.pack("<ii", -HEADER, -HEADER) * 9 + struct.pack("<ii", 1 << 30, -5) * 99_999
    header = b"\x01\x1b\x03\x3b" + struct.pack("<iI", FRAME - HEADER - 4, count) + rows
    sections = {".eh_frame": (FRAME, section.data), ".eh_frame_hdr": (HEADER, header)}
    bounded(CfiFile(Image(sections)))


def test_a_search_table_that_leads_to_another_function():
    section = Section().fde(TEXT + 64, 64)
    section.offsets[TEXT] = section.offsets[TEXT + 64]
    cfi = section.cfi(header=True)
    assert cfi.fde(TEXT + 8) is None
    assert cfi.function(TEXT + 8) is None


@pytest.mark.parametrize("text", [1 << 62, (1 << 64) - TEXT])
def test_a_text_of_any_size(text):
    cfi = Section().fde(TEXT, 64).fde(TEXT + (1 << 30), 64).cfi(text=text)
    assert cfi.window_count == 0
    bounded(cfi)


def test_a_section_that_is_too_large_to_be_read_whole():
    data = Section().fde(TEXT, 64).data
    image = Image({".eh_frame": (FRAME, data)})
    image._sections[".eh_frame"] = image.section(".eh_frame")._replace(size=1 << 26)
    assert not CfiFile(image).has_rules


def test_an_index_of_more_functions_than_any_program_has(monkeypatch):
    monkeypatch.setattr(fde_index, "_MOST", 10)
    cfi = _many(20, lambda section, n: section.fde(TEXT + 16 * n, 16)).cfi()
    assert cfi.row(TEXT) is None
    assert cfi.exhausted


def test_a_compressed_section_that_claims_more_than_it_has():
    data = struct.pack("<IIQQ", 1, 0, 1 << 26, 1) + b"not compressed"
    bounded(CfiFile(Image({".debug_frame": (0, data, 0x800)})))


def test_a_file_that_cannot_be_read():
    class Gone(Image):
        def read(self, offset, size):
            raise FormatError("file", "offset", "gone")

    section = Section().fde(TEXT, 64)
    cfi = CfiFile(Gone({".eh_frame": (FRAME, section.data)}))
    assert not cfi.has_rules
    exercise(cfi)
    assert cfi.code(TEXT, 9) == b""


_SEED = (
    Section()
    .fde(TEXT, 64, b"\x41" + cfa_offset(16) + b"\x86\x02\x43\x0d\x06\x0a\x44\xc6\x0b")
    .add_cie(cie(augmentation=b"zPLRS", data=b"\x9b\1\2\3\4\x1b\x1b"))
    .fde(TEXT + 64, 640, expression(0x0F, b"\x77\x08\x06") + expression(0x10, b"\x76\0", 6))
)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.integers(0), st.integers(0, 255)), max_size=8), st.booleans())
def test_any_damage_is_an_answer(changes, header):
    data = bytearray(_SEED.data)
    table = bytearray(_SEED.header())
    for at, byte in changes:
        at %= len(data) + len(table)
        (data if at < len(data) else table)[at - len(data) if at >= len(data) else at] = byte
    sections = {".eh_frame": (FRAME, bytes(data))}
    if header:
        sections[".eh_frame_hdr"] = (HEADER, bytes(table))
    exercise(CfiFile(Image(sections)))


@settings(max_examples=100, deadline=None)
@given(st.integers(0, len(_SEED.data)))
def test_any_truncation_is_an_answer(size):
    exercise(CfiFile(Image({".eh_frame": (FRAME, _SEED.data[:size])})))


def test_random_bytes_are_within_the_budget():
    chance = random.Random(19)
    for _ in range(300):
        data = chance.randbytes(chance.randrange(400))
        exercise(CfiFile(Image({".eh_frame": (FRAME, data), ".eh_frame_hdr": (HEADER, data)})))


def test_memory_of_the_process_stays_bounded():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    exercise(_CASES["a row for each byte"].cfi())
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < _MEGABYTES << 10
