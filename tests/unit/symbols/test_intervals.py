"""flatten() against a byte-by-byte painter."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from purebpf.symbols.intervals import flatten

_RANGES = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 15)), max_size=12)


def _paint(ranges: list[tuple[int, int]], ranks: list[int]) -> dict[int, int]:
    owners: dict[int, int] = {}
    for index in sorted(range(len(ranges)), key=ranks.__getitem__):
        start, end = ranges[index]
        owners.update(dict.fromkeys(range(start, end), index))
    return owners


@given(_RANGES, st.randoms())
def test_every_address_belongs_to_the_highest_rank_that_covers_it(lengths, random):
    ranges = sorted((start, start + length) for start, length in lengths)
    ranks = list(range(len(ranges)))
    random.shuffle(ranks)
    found = flatten([start for start, _ in ranges], [end for _, end in ranges], ranks)
    expected = _paint(ranges, ranks)
    assert {a: found.owner(a) for a in range(60)} == {a: expected.get(a, -1) for a in range(60)}


@given(_RANGES)
def test_without_ranks_the_later_range_wins(lengths):
    ranges = sorted((start, start + length) for start, length in lengths)
    found = flatten([start for start, _ in ranges], [end for _, end in ranges])
    expected = _paint(ranges, list(range(len(ranges))))
    assert {a: found.owner(a) for a in range(60)} == {a: expected.get(a, -1) for a in range(60)}


@given(_RANGES)
def test_segments_are_disjoint_ascending_and_not_empty(lengths):
    ranges = sorted((start, start + length) for start, length in lengths)
    found = flatten([start for start, _ in ranges], [end for _, end in ranges])
    bounds = [edge for pair in zip(found.starts, found.ends, strict=True) for edge in pair]
    assert bounds == sorted(bounds)
    assert all(start < end for start, end in zip(found.starts, found.ends, strict=True))


def test_a_range_cut_in_two_by_a_nested_one():
    found = flatten([0x100, 0x120], [0x200, 0x130])
    assert list(zip(*found, strict=True)) == [
        (0x100, 0x120, 0),
        (0x120, 0x130, 1),
        (0x130, 0x200, 0),
    ]
    assert found.nbytes == 60
    assert [found.owner(a) for a in (0xFF, 0x100, 0x12F, 0x130, 0x1FF, 0x200)] == [
        -1, 0, 1, 0, 0, -1,
    ]  # fmt: skip
