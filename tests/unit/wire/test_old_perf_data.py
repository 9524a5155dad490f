"""Files and pipes of old perf: what tools/perf/util/header.c of Linux 3.10 writes (RHEL 7)."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import NamedTuple

import pytest

from purebpf.abi.perf import PERF_EVENT_ATTR
from purebpf.abi.perf import perf_event_sample_format as bit
from purebpf.wire.perf_data import MAGIC, OLD_MAGIC, Feature
from purebpf.wire.perf_data_features import string, unpack_build_ids
from purebpf.wire.perf_data_reader import PerfData
from purebpf.wire.perf_records import Comm, Mmap, Sample

ATTR_SIZE = 96  # PERF_ATTR_SIZE_VER3
SAMPLED = (
    bit.PERF_SAMPLE_IP
    | bit.PERF_SAMPLE_TID
    | bit.PERF_SAMPLE_TIME
    | bit.PERF_SAMPLE_CALLCHAIN
    | bit.PERF_SAMPLE_ID
    | bit.PERF_SAMPLE_CPU
    | bit.PERF_SAMPLE_PERIOD
)
RAW = bytes(range(52))
CHAIN = (0xFFFFFFFFFFFFFE00, 0x400123, 0x400456)
TRACING_DATA = b"\x17\x08\x44tracing0.5\0\0\x08" + bytes(61)
"""Its beginning, and a size that is no multiple of eight."""
TYPES = {0: "cycles", 314: "sched:sched_switch"}


class Event(NamedTuple):
    attr: bytes
    ids: tuple[int, ...]
    name: str


def attr(sample_type: int, **fields: int) -> bytes:
    packed = PERF_EVENT_ATTR.pack(
        size=ATTR_SIZE, sample_type=sample_type, sample_id_all=1, **fields
    )
    return bytes(packed)[:ATTR_SIZE]


CYCLES = Event(attr(SAMPLED, freq=1, sample_period=4000), (11, 12), "cycles")
SWITCH = Event(
    attr(SAMPLED | bit.PERF_SAMPLE_RAW, type=2, config=314, sample_period=1),
    (21, 22),
    "sched:sched_switch",
)
EVENTS = (CYCLES, SWITCH)


def align(data: bytes, size: int = 8) -> bytes:
    return data + bytes(-len(data) % size)


def text(value: str) -> bytes:
    packed = align(value.encode() + b"\0", 64)
    return struct.pack("=I", len(packed)) + packed


def record(kind: int, misc: int, body: bytes) -> bytes:
    return struct.pack("=IHH", kind, misc, 8 + len(body)) + body


def trailer(time: int) -> bytes:
    return struct.pack("=IIQQII", 77, 77, time, 11, 0, 0)


def sample(time: int, number: int, raw: bytes = b"") -> bytes:
    body = struct.pack("=QIIQQIIQ", 0x400123, 77, 77, time, number, 0, 0, 1000)
    body += struct.pack(f"=Q{len(CHAIN)}Q", len(CHAIN), *CHAIN)
    if raw:
        body += struct.pack("=I", len(raw)) + raw
    return record(9, 2, body)


DATA = b"".join(
    (
        record(
            1,
            2,
            struct.pack("=IIQQQ", 77, 77, 0x400000, 0x2000, 0) + align(b"/opt/app\0") + trailer(1),
        ),
        record(3, 0, struct.pack("=II", 77, 77) + align(b"app\0") + trailer(2)),
        *(sample(10 + number, 11 + number % 2) for number in range(7)),
        *(sample(30 + number, 21, RAW) for number in range(5)),
        record(68, 0, b""),
    )
)
BUILD_ID = record(
    67, 2, struct.pack("=i", -1) + bytes(range(20)) + bytes(4) + align(b"/opt/app\0", 64)
)


def features() -> dict[int, bytes]:
    description = struct.pack("=II", len(EVENTS), ATTR_SIZE)
    for event in EVENTS:
        description += event.attr + struct.pack("=I", len(event.ids)) + text(event.name)
        description += struct.pack(f"={len(event.ids)}Q", *event.ids)
    return {
        Feature.TRACING_DATA: TRACING_DATA,
        Feature.BUILD_ID: BUILD_ID,
        Feature.HOSTNAME: text("old"),
        Feature.OSRELEASE: text("3.10.0-1160.el7.x86_64"),
        Feature.VERSION: text("3.10.0-1160.el7.x86_64.debug"),
        Feature.NRCPUS: struct.pack("=II", 2, 2),
        Feature.EVENT_DESC: description,
        Feature.CPU_TOPOLOGY: struct.pack("=I", 1) + text("0-1") + struct.pack("=I", 0),
        Feature.NUMA_TOPOLOGY: struct.pack("=IIQQ", 1, 0, 1000, 500) + text("0-1"),
        Feature.PMU_MAPPINGS: struct.pack("=II", 1, 4) + text("cpu"),
        Feature.GROUP_DESC: struct.pack("=I", 0),
    }


def file(
    parts: Mapping[int, bytes], *, magic: bytes = MAGIC, header_size: int = 104, data: bytes = DATA
) -> bytes:
    """The header, ids, attributes, types of events, records, the table of features, features."""
    ids = b"".join(struct.pack(f"={len(event.ids)}Q", *event.ids) for event in EVENTS)
    attrs, at = b"", header_size
    for event in EVENTS:
        attrs += event.attr + struct.pack("=QQ", at, 8 * len(event.ids))
        at += 8 * len(event.ids)
    types = b"".join(struct.pack("=Q64s", *item[:1], item[1].encode()) for item in TYPES.items())
    types_at = at + len(attrs)
    data_at = types_at + len(types)
    header = struct.pack(
        "=8sQQQQQQQQ",
        *(magic, header_size, ATTR_SIZE + 16, at, len(attrs)),
        *(data_at, len(data), types_at, len(types)),
    )
    if header_size > len(header):
        header += struct.pack("=QQQQ", sum(1 << number for number in parts), 0, 0, 0)
    at = data_at + len(data) + 16 * len(parts)
    table = b""
    for number in sorted(parts):
        table += struct.pack("=QQ", at, len(parts[number]))
        at += len(parts[number])
    behind = b"".join(parts[number] for number in sorted(parts))
    return header + ids + attrs + types + data + table + behind


def pipe() -> bytes:
    """The header, attributes, types of events, tracing data, build ids, records."""
    attrs = [
        record(64, 0, event.attr + struct.pack(f"={len(event.ids)}Q", *event.ids))
        for event in EVENTS
    ]
    types = [
        record(65, 0, struct.pack("=Q", config) + align(name.encode() + b"\0"))
        for config, name in TYPES.items()
    ]
    tracing = align(TRACING_DATA)
    announced = record(66, 0, struct.pack("=I", len(tracing)))
    head = MAGIC + struct.pack("=Q", 16)
    return b"".join((head, *attrs, *types, announced, tracing, BUILD_ID, DATA))


def read(data: bytes) -> PerfData:
    return PerfData(lambda at, size: data[at : at + size], len(data), "old.data")


def check(data: PerfData) -> None:
    """The events by name, and every record."""
    assert [event.name for event in data.events] == ["cycles", "sched:sched_switch"]
    placed = list(data.records())
    samples = [(each.event, each.record) for each in placed if isinstance(each.record, Sample)]
    assert [event for event, _ in samples] == [0] * 7 + [1] * 5
    assert {one.callchain for _, one in samples} == {CHAIN}
    assert [one.time for _, one in samples] == [*range(10, 17), *range(30, 35)]
    assert [type(each.record) for each in placed[:2]] == [Mmap, Comm]


def test_a_file_with_all_its_sections_is_read() -> None:
    data = read(file(features()))
    check(data)
    release = data.feature(Feature.OSRELEASE)
    assert release is not None
    assert string(release) == "3.10.0-1160.el7.x86_64"
    build_ids = data.feature(Feature.BUILD_ID)
    assert build_ids is not None
    assert [each.build_id for each in unpack_build_ids(build_ids)] == [bytes(range(20))]
    assert data.feature(Feature.TRACING_DATA) == TRACING_DATA


@pytest.mark.parametrize("size", [72, 104])
def test_the_first_magic_and_the_table_of_types_are_read(size: int) -> None:
    check(read(file({}, magic=OLD_MAGIC, header_size=size)))


def test_a_pipe_has_the_names_of_its_events() -> None:
    check(read(pipe()))


def test_a_name_of_another_kind_of_event_does_not_count() -> None:
    wrong = file({}).replace(b"sched:sched_switch", b"page-faults\0\0\0\0\0\0\0")
    assert [event.name for event in read(wrong).events] == ["cycles", "event 2:0x13a"]
