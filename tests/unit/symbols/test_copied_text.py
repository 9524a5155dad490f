"""Copies of code in a /proc/PID/maps text."""

from __future__ import annotations

from itertools import pairwise

import pytest

from purebpf.symbols.copied_text import (
    MOST_CANDIDATES,
    PLACE_BYTES,
    candidates,
    checked_places,
    replace_lines,
    text_of,
)
from purebpf.symbols.elf_image import PF_X, PT_LOAD, Segment
from purebpf.symbols.proc_maps import MappedFile, Mapping, parse_maps

BIAS = 0x5600_0000_0000
SEGMENTS = [
    Segment(PT_LOAD, 4, 0, 0, 0x800, 0x1000),
    Segment(PT_LOAD, 4 | PF_X, 0x1000, 0x1000, 0x4321, 0x1000),
    Segment(PT_LOAD, 4, 0x6000, 0x6000, 0x1100, 0x1000),
    Segment(PT_LOAD, 6, 0x7DC0, 0x8DC0, 0x300, 0x1000),
]
FILE = MappedFile("/opt/a server", 8, 1, 77)
TEXT = """\
560000000000-560000001000 r--p 00000000 08:01 77                         /opt/a server
560000001000-560000006000 r-xp 00000000 00:00 0
560000006000-560000008000 r--p 00006000 08:01 77                         /opt/a server
560000008000-560000009000 r--p 00007000 08:01 77                         /opt/a server
560000009000-56000000a000 rw-p 00008000 08:01 77                         /opt/a server
560000040000-560000061000 rw-p 00000000 00:00 0                          [heap]
7f0000000000-7f0000400000 rwxp 00000000 00:00 0
7f0010000000-7f0010001000 r-xp 00001000 08:01 99                         /lib/x.so
7ffd5f1e2000-7ffd5f1e4000 r-xp 00000000 00:00 0                          [vdso]
"""


def test_a_candidate_has_the_nearest_files_on_both_sides() -> None:
    (found,) = candidates(TEXT)
    assert (found.anonymous.start, found.anonymous.end) == (BIAS + 0x1000, BIAS + 0x6000)
    assert [(each.start, each.file) for each in found.neighbours] == [
        (BIAS, FILE),
        (BIAS + 0x6000, FILE),
    ]


def test_a_text_without_anonymous_code_has_none() -> None:
    lines = [line for line in TEXT.splitlines() if not line.endswith("00:00 0")]
    assert candidates("\n".join(lines)) == []


@pytest.mark.parametrize("name", ["[anon:text]", "/anon_hugepage (deleted)", "/memfd:x (deleted)"])
def test_memory_with_a_name_is_a_candidate(name: str) -> None:
    at = "00:00 0" if name.startswith("[") else "00:0f 5"
    text = TEXT.replace("r-xp 00000000 00:00 0\n", f"r-xp 00000000 {at}    {name}\n", 1)
    (found,) = candidates(text)
    assert found.anonymous.start == BIAS + 0x1000


@pytest.mark.parametrize("side", [0, 1])
def test_the_part_is_where_the_file_s_code_was(side: int) -> None:
    (found,) = candidates(TEXT)
    parts = text_of(found, found.neighbours[side], SEGMENTS)
    assert Mapping(BIAS + 0x1000, BIAS + 0x6000, 0x1000, FILE) in parts


def test_code_beyond_the_segment_stays_anonymous() -> None:
    text = TEXT.replace("560000006000 r-xp", "560000007000 r-xp").replace(
        "560000006000-560000008000 r--p 00006000", "560000007000-560000008000 r--p 00007000"
    )
    (found,) = candidates(text)
    (part,) = text_of(found, found.neighbours[0], SEGMENTS)
    assert (part.start, part.end) == (BIAS + 0x1000, BIAS + 0x6000)
    mappings = list(parse_maps(replace_lines(text, [(found.anonymous, part)])))
    assert mappings[0] == part
    assert mappings[1] == Mapping(BIAS + 0x6000, BIAS + 0x7000, 0, MappedFile(""))
    assert mappings[2:] == list(parse_maps(text))[1:]


def test_a_file_of_thousands_of_segments_has_few_parts() -> None:
    (found,) = candidates(TEXT)
    many = [
        Segment(PT_LOAD, 4 | PF_X, 0, number << 12, 1 << 40, 0x1000) for number in range(1 << 12)
    ]
    assert len(text_of(found, found.neighbours[0], many)) <= 256


def test_all_checked_places_are_in_the_segment_and_in_the_part() -> None:
    part = Mapping(BIAS + 0x2000, BIAS + 0x6000, 0x2000, FILE)
    places = checked_places(part, SEGMENTS)
    assert 16 <= len(places) <= 18
    assert places[0] == (BIAS + 0x2000, 0x2000)
    assert places[-1][1] + PLACE_BYTES == 0x1000 + 0x4321
    assert all(address - offset == BIAS for address, offset in places)
    assert all(before < after for before, after in pairwise(places))


def test_a_part_without_a_byte_of_the_segment_has_no_places() -> None:
    assert checked_places(Mapping(BIAS, BIAS + 0x1000, 0x6000, FILE), SEGMENTS) == []


def test_lines_without_a_copy_stay_as_they_are() -> None:
    assert replace_lines(TEXT, []) == TEXT


def test_the_search_ends_at_the_most_candidates() -> None:
    rows = [
        f"{at:x}-{at + 0x1000:x} r--p 00000000 08:01 77 /opt/a server\n"
        f"{at + 0x1000:x}-{at + 0x2000:x} r-xp 00000000 00:00 0\n"
        for at in range(BIAS, BIAS + 0x2000 * 1000, 0x2000)
    ]
    found = candidates("".join(rows))
    assert len(found) == MOST_CANDIDATES
    assert found[0].anonymous.start == BIAS + 0x1000
