"""perf.data as perf writes it to a pipe: described by records, and read like a file."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from purebpf.abi.perf import PERF_EVENT_ATTR
from purebpf.abi.perf import perf_event_sample_format as bit
from purebpf.errors import FormatError, NotSupportedError
from purebpf.wire.perf_data import MAGIC, Feature, UserRecord
from purebpf.wire.perf_data_features import (
    BuildId,
    pack_build_ids,
    pack_string,
    string,
    unpack_build_ids,
)
from purebpf.wire.perf_data_reader import PerfData
from purebpf.wire.perf_encode import RecordEncoder
from purebpf.wire.perf_records import Sample
from purebpf.wire.perf_ring import HEADER

TYPE = bit.PERF_SAMPLE_IDENTIFIER | bit.PERF_SAMPLE_IP | bit.PERF_SAMPLE_TID | bit.PERF_SAMPLE_TIME
FRAMES = (1, 2)
BUILD_ID = BuildId("/usr/bin/true", bytes(range(20)))


def record(type_: int, body: bytes) -> bytes:
    return HEADER.pack(type_, 0, HEADER.size + len(body)) + body


def attr(config: int, *ids: int) -> bytes:
    packed = bytes(
        PERF_EVENT_ATTR.pack(
            type=1, config=config, size=PERF_EVENT_ATTR.size, sample_type=TYPE, sample_id_all=1
        )
    )
    return record(UserRecord.HEADER_ATTR, packed + struct.pack(f"={len(ids)}Q", *ids))


def name(of: int, text: bytes) -> bytes:
    return record(UserRecord.EVENT_UPDATE, struct.pack("=QQ", 2, of) + text + b"\0")


def sample(time: int, number: int) -> bytes:
    return RecordEncoder(TYPE).encode(Sample(2, ip=4096, pid=1, tid=1, time=time, id=number))


def tracing(data: bytes) -> bytes:
    return record(UserRecord.HEADER_TRACING_DATA, struct.pack("=I", len(data))) + data


PARTS = (
    MAGIC + struct.pack("=Q", 16),
    attr(0, 11, 12),
    attr(2, 21),
    record(UserRecord.HEADER_FEATURE, struct.pack("=Q", Feature.HOSTNAME) + pack_string("host")),
    name(11, b"cpu-clock"),
    name(21, b"page-faults"),
    tracing(b"\xff" * 24),  # no records: they must not be read as such
    sample(7, 12),
    sample(5, 21),
    record(UserRecord.FINISHED_ROUND, b""),
    pack_build_ids([BUILD_ID]),
    sample(9, 11),
)
WHOLE = b"".join(PARTS)


def opened(data: bytes) -> PerfData:
    return PerfData(lambda at, size: data[at : at + size], len(data), "x.data")


def test_events_features_and_records_are_those_of_a_file() -> None:
    file = opened(WHOLE)
    assert [(event.name, event.ids) for event in file.events] == [
        ("cpu-clock", (11, 12)),
        ("page-faults", (21,)),
    ]
    found = [(placed.event, placed.record.time) for placed in file.records()]
    assert found == [(1, 5), (0, 7), (0, 9)]
    hostname, build_ids = file.feature(Feature.HOSTNAME), file.feature(Feature.BUILD_ID)
    assert hostname is not None
    assert string(hostname) == "host"
    assert build_ids is not None
    assert unpack_build_ids(build_ids) == (BUILD_ID,)
    assert file.feature(Feature.CMDLINE) is None


@pytest.mark.parametrize(
    ("kind", "config", "name"),
    [
        (0, 0, "cycles"),
        (0, 4, "branches"),
        (0, 10, "event 0:0xa"),  # PERF_COUNT_HW_MAX
        (1, 0, "cpu-clock"),
        (1, 3, "context-switches"),
        (1, 5, "minor-faults"),
        (4, 0x1C2, "event 4:0x1c2"),
    ],
)
def test_an_event_without_a_name_has_the_one_of_perf_or_its_numbers(
    kind: int, config: int, name: str
) -> None:
    described = bytearray(attr(config, 5))
    struct.pack_into("=I", described, HEADER.size, kind)
    (event,) = opened(PARTS[0] + bytes(described) + sample(1, 5)).events
    assert event.name == name


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (PARTS[0], "no event"),
        (WHOLE[:-3], "claims"),
        (WHOLE + b"\1\0\0", "3 bytes are not a record"),
        (PARTS[0] + record(UserRecord.HEADER_ATTR, b"\1" * 40), "attributes of"),
        (PARTS[0] + PARTS[1] + tracing(bytes(64))[:-8], "run past the end"),
        (PARTS[0] + PARTS[1] + record(UserRecord.EVENT_UPDATE, b"\1"), "has 9 bytes"),
    ],
)
def test_broken_streams_say_where(data: bytes, said: str) -> None:
    with pytest.raises(FormatError, match=said):
        opened(data)


@given(st.integers(16, len(WHOLE) - 1), st.binary(min_size=1, max_size=8))
def test_any_bytes_are_read_or_refused(at: int, new: bytes) -> None:
    try:
        list(opened(WHOLE[:at] + new + WHOLE[at + len(new) :]).records())
    except (FormatError, NotSupportedError):
        pass


def test_a_hardware_trace_in_a_pipe_is_refused_in_words() -> None:
    trace = struct.pack("=QQQIIII", 24, 0, 0, 0, 0, 0, 0)
    parts = [*PARTS, record(UserRecord.AUXTRACE, trace) + b"\xff" * 24, sample(9, 11)]
    data = b"".join(parts)
    file = PerfData(lambda at, size: data[at : at + size], len(data))
    with pytest.raises(NotSupportedError, match=r"hardware trace.*perf inject --itrace"):
        list(file.records())
    cut = data[: data.rindex(b"\xff" * 24) + 8]
    with pytest.raises(FormatError, match="24 bytes of a hardware trace run past the end"):
        PerfData(lambda at, size: cut[at : at + size], len(cut))
