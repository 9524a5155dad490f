"""Ranges that were added, against a table of single addresses."""

from hypothesis import given
from hypothesis import strategies as st

from purebpf.symbols.intervals import RangeMap

_RANGES = st.lists(st.tuples(st.integers(0, 40), st.integers(1, 12)), max_size=20)


@given(_RANGES)
def test_the_range_that_starts_last_has_an_address(ranges):
    known: RangeMap[int] = RangeMap()
    ends: dict[int, tuple[int, int]] = {}
    for number, (start, length) in enumerate(ranges):
        known.add(start, start + length, number)
        ends[start] = start + length, number
    assert len(known) == len(ends)
    for address in range(-1, 60):
        start = max((start for start in ends if start <= address), default=None)
        end, number = (-1, 0) if start is None else ends[start]
        assert known.find(address) == (number if address < end else None)


def test_a_cleared_map_is_empty():
    known: RangeMap[str] = RangeMap()
    known.add(1, 3, "f")
    known.clear()
    assert not len(known)
    assert known.find(1) is None
    known.add(2, 4, "g")
    assert known.find(2) == "g"
