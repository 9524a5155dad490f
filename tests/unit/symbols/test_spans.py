"""Ranges that were added, against a table of single addresses."""

from hypothesis import given
from hypothesis import strategies as st

from purebpf.symbols.spans import Spans

_RANGES = st.lists(st.tuples(st.integers(0, 40), st.integers(1, 12)), max_size=20)


@given(_RANGES)
def test_the_range_that_starts_last_has_an_address(ranges):
    spans: Spans[int] = Spans()
    ends: dict[int, tuple[int, int]] = {}
    for number, (start, length) in enumerate(ranges):
        spans.add(start, start + length, number)
        ends[start] = start + length, number
    assert len(spans) == len(ends)
    for address in range(-1, 60):
        start = max((start for start in ends if start <= address), default=None)
        end, number = (-1, 0) if start is None else ends[start]
        assert spans.find(address) == (number if address < end else None)


def test_cleared_spans_are_empty():
    spans: Spans[str] = Spans()
    spans.add(1, 3, "f")
    spans.clear()
    assert not len(spans)
    assert spans.find(1) is None
    spans.add(2, 4, "g")
    assert spans.find(2) == "g"
