"""Framing of BPF ring buffers: wraps, busy and discarded records, hostile headers."""

from __future__ import annotations

import struct
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from purebpf.errors import FormatError
from purebpf.wire.ring_buffer import BUSY, DISCARD, alike, find_committed, stride

SIZE = 4096


class Ring(NamedTuple):
    """The data pages as the kernel maps them: twice in a row."""

    data: bytes
    consumer: int
    producer: int

    @property
    def words(self) -> memoryview:
        return memoryview(self.data).cast("I")

    def payload(self, offset: int, length: int) -> bytes:
        start = self.consumer % SIZE + offset
        return self.data[start : start + length]


def ring(consumer: int, records: list[tuple[bytes, int]]) -> Ring:
    once = bytearray(b"\xee" * SIZE)
    position = consumer
    for payload, flags in records:
        block = struct.pack("=II", len(payload) | flags, 0) + payload
        block += bytes(-len(block) % 8)
        for place, byte in enumerate(block):
            once[(position + place) % SIZE] = byte
        position += len(block)
    return Ring(bytes(once) * 2, consumer, position)


payloads = st.lists(
    st.tuples(st.binary(max_size=120), st.sampled_from([0, 0, 0, DISCARD])), max_size=20
)
positions = st.integers(0, 1 << 60).map(lambda n: n & ~7)


@given(consumer=positions, records=payloads)
def test_submitted_records_come_back_and_discarded_ones_are_skipped(
    consumer: int, records: list[tuple[bytes, int]]
) -> None:
    made = ring(consumer, records)
    spans, following = find_committed(made.words, consumer, made.producer, 100)
    assert [made.payload(*span) for span in spans] == [data for data, flag in records if not flag]
    assert following == made.producer


@given(consumer=positions, before=payloads, after=payloads)
def test_nothing_behind_a_busy_record_is_read(
    consumer: int, before: list[tuple[bytes, int]], after: list[tuple[bytes, int]]
) -> None:
    made = ring(consumer, [*before, (b"unfinished", BUSY), *after])
    finished = ring(consumer, before)
    assert find_committed(made.words, consumer, made.producer, 100) == find_committed(
        finished.words, consumer, finished.producer, 100
    )


def test_a_limit_stops_behind_the_last_record_it_allows() -> None:
    made = ring(0, [(b"one", 0), (b"gone", DISCARD), (b"two", 0), (b"three", 0)])
    spans, following = find_committed(made.words, 0, made.producer, 2)
    assert [made.payload(*span) for span in spans] == [b"one", b"two"]
    assert following == 48


def test_an_empty_ring_has_no_records() -> None:
    assert find_committed(ring(8, []).words, 8, 8, 10) == ([], 8)


@pytest.mark.parametrize(("consumer", "producer"), [(8, 0), (0, SIZE + 8), (4, 16)])
def test_impossible_positions_are_refused(consumer: int, producer: int) -> None:
    for look in (find_committed, alike):
        with pytest.raises(FormatError, match=f"not in {SIZE} bytes"):
            look(ring(0, []).words, consumer, producer, 10)


@pytest.mark.parametrize("length", [SIZE, DISCARD - 1, DISCARD | (DISCARD - 1)])
def test_a_length_that_passes_the_producer_is_refused(length: int) -> None:
    data = bytearray(2 * SIZE)
    struct.pack_into("=I", data, 0, length)
    with pytest.raises(FormatError, match="runs past the end"):
        find_committed(memoryview(data).cast("I"), 0, 64, 10)


@given(
    data=st.binary(min_size=64, max_size=64),
    consumer=positions,
    unread=st.integers(0, 8).map(lambda n: n * 8),
)
def test_random_headers_give_spans_within_the_unread_bytes_or_an_error(
    data: bytes, consumer: int, unread: int
) -> None:
    words = memoryview(data * 2).cast("I")
    try:
        spans, following = find_committed(words, consumer, consumer + unread, 100)
    except FormatError:
        return
    assert consumer <= following <= consumer + unread
    assert all(offset >= 8 and offset + length <= unread for offset, length in spans)


@given(
    consumer=positions,
    length=st.integers(0, 100),
    count=st.integers(1, 30),
    limit=st.integers(1, 40),
    other=st.none() | st.tuples(st.integers(0, 29), st.sampled_from([DISCARD, BUSY, 1])),
)
def test_records_of_one_length(
    consumer: int, length: int, count: int, limit: int, other: tuple[int, int] | None
) -> None:
    """Alike or all but one: what comes back does not depend on how fast it was found."""
    records = [(bytes([number]) * length, 0) for number in range(count)]
    if other and other[0] < count:
        payload, flag = records[other[0]][0], other[1]
        records[other[0]] = (payload + b"!", 0) if flag == 1 else (payload, flag)
    made = ring(consumer, records)
    spans, following = find_committed(made.words, consumer, made.producer, limit)
    finished = records[: next((i for i, (_, flag) in enumerate(records) if flag == BUSY), count)]
    expected = [data for data, flag in finished if not flag][:limit]
    assert [made.payload(*span) for span in spans] == expected
    if len(expected) < limit and len(finished) == count:
        assert following == made.producer
    run_length, found = alike(made.words, consumer, made.producer, limit)
    starts = range(8, 8 + found * stride(run_length), stride(run_length))
    assert [made.payload(start, run_length) for start in starts] == expected[:found]
    if not other or other[0] >= count:
        assert found == min(count, limit)


@given(consumer=positions, records=payloads, limit=st.integers(1, 30))
def test_a_run_is_what_comes_next(
    consumer: int, records: list[tuple[bytes, int]], limit: int
) -> None:
    made = ring(consumer, records)
    length, found = alike(made.words, consumer, made.producer, limit)
    assert all((len(data), flag) == (length, 0) for data, flag in records[:found])
    assert found <= min(limit, len(records))
