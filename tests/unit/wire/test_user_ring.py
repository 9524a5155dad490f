"""Records framed for a user ring are what the reader of a ring finds."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from purebpf.wire.ring_buffer import find_committed, stride
from purebpf.wire.user_ring import frame_records

SIZE = 4096


@given(st.lists(st.binary(max_size=200), max_size=40), st.integers(0, SIZE))
def test_what_fits_is_read_back(records, room):
    data, count = frame_records(records, room)
    assert len(data) == sum(map(stride, map(len, records[:count]))) <= room
    if count < len(records):
        assert len(data) + stride(len(records[count])) > room
    ring = data.ljust(SIZE, b"\0") * 2
    spans, position = find_committed(memoryview(ring).cast("I"), 0, len(data), len(records) + 1)
    assert position == len(data)
    assert [data[start : start + length] for start, length in spans] == records[:count]


def test_a_record_takes_its_header_and_whole_words():
    assert [stride(length) for length in (0, 1, 8, 9)] == [8, 16, 16, 24]
