"""Framing of perf rings: wraps, sizes, hostile bytes."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from purebpf.errors import FormatError
from purebpf.wire.perf_ring import frames, raw_payload, raw_run, unread

bodies = st.lists(st.integers(0, 40).map(lambda words: bytes(range(8)) * words), max_size=8)


def record(kind: int, misc: int, body: bytes) -> bytes:
    return struct.pack("=IHH", kind, misc, 8 + len(body)) + body


@given(bodies=bodies, tail=st.integers(0, 1 << 62).map(lambda n: n & ~7))
def test_records_come_back_however_the_ring_wraps(bodies: list[bytes], tail: int) -> None:
    stream = b"".join(record(3, n, body) for n, body in enumerate(bodies))
    size = 4096
    ring = bytearray(b"\xee" * size)
    for place, byte in enumerate(stream):
        ring[(tail + place) % size] = byte
    data = unread(memoryview(ring), tail, tail + len(stream))
    assert data == stream
    assert [data[start:end] for _, _, start, end in frames(data)] == bodies
    assert [misc for _, misc, _, _ in frames(data)] == list(range(len(bodies)))


def test_a_full_ring_is_read_whole() -> None:
    ring = bytes(range(256)) * 2
    assert unread(memoryview(ring), 512 + 8, 1024 + 8) == ring[8:] + ring[:8]


@pytest.mark.parametrize(("tail", "head"), [(8, 0), (0, 520), (1 << 64, 0)])
def test_impossible_positions_are_refused(tail: int, head: int) -> None:
    with pytest.raises(FormatError, match="in a ring of 512"):
        unread(memoryview(bytes(512)), tail, head)


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (struct.pack("=IHH", 9, 0, 0), "claims 0 bytes, but 8 are left"),
        (struct.pack("=IHH", 9, 0, 7), "claims 7 bytes"),
        (struct.pack("=IHH4x", 9, 0, 12), "claims 12 bytes"),
        (struct.pack("=IHH", 9, 0, 16), "claims 16 bytes, but 8 are left"),
        (record(9, 0, bytes(8)) + bytes(4), "offset 16: 4 bytes are not a header"),
    ],
)
def test_broken_frames_are_refused(data: bytes, problem: str) -> None:
    with pytest.raises(FormatError, match=problem):
        list(frames(data))


@given(data=st.binary(max_size=200))
def test_random_bytes_are_frames_within_the_data_or_an_error(data: bytes) -> None:
    try:
        found = list(frames(data))
    except FormatError:
        return
    assert sum(end - start + 8 for _, _, start, end in found) == len(data)


@given(data=st.binary(max_size=64), start=st.integers(0, 64))
def test_a_raw_payload_lies_within_its_record_or_is_an_error(data: bytes, start: int) -> None:
    try:
        offset, length = raw_payload(data, start, len(data))
    except FormatError:
        return
    assert start + 4 == offset
    assert offset + length <= len(data)


def test_the_kernels_padding_is_part_of_a_raw_payload() -> None:
    data = struct.pack("=I8s4x", 12, b"payload!")
    assert raw_payload(data, 0, len(data)) == (4, 12)


@given(
    lengths=st.lists(st.sampled_from([4, 12, 12, 12]), max_size=3).flatmap(
        lambda some: st.just(some * 3)
    ),
    other=st.none() | st.tuples(st.integers(0, 9), st.sampled_from([(2, 12), (9, 20), (9, 99)])),
)
def test_a_run_is_what_the_frames_are(lengths: list[int], other: tuple | None) -> None:
    """All alike or not: where there is a run, it is all of the data."""
    samples = [(9, length) for length in lengths]
    if other:
        samples.insert(*other)
    bodies = [struct.pack("=I", length) + bytes(range(min(length, 28))) for _, length in samples]
    data = b"".join(
        record(kind, at & 3, body)
        for at, ((kind, _), body) in enumerate(zip(samples, bodies, strict=True))
    )
    run = raw_run(data, 9)
    whole = len(set(samples)) == 1 and samples[0] in {(9, 4), (9, 12), (9, 20)}
    assert (run is not None) == whole
    if run is not None:
        payloads = [raw_payload(data, start, end) for *_, start, end in frames(data)]
        assert list(run.records()) == [data[at : at + length] for at, length in payloads]


@given(data=st.binary(max_size=25).map(lambda some: some * 8))
def test_random_bytes_are_a_run_that_is_theirs_or_none(data: bytes) -> None:
    for kind in (9, int.from_bytes(data[:4], "little")):
        run = raw_run(data, kind)
        if run is not None:
            payloads = [raw_payload(data, start, end) for *_, start, end in frames(data)]
            assert list(run.records()) == [data[at : at + length] for at, length in payloads]
