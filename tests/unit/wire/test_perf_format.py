"""Perf records from hand-laid bytes: every kind, with and without trailers, and broken ones."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from purebpf.abi.perf import PERF_EVENT_ATTR
from purebpf.abi.perf import perf_event_sample_format as bit
from purebpf.abi.perf import perf_event_type as kind
from purebpf.errors import FormatError
from purebpf.wire.perf_format import RecordFormat
from purebpf.wire.perf_records import (
    Comm,
    Exit,
    Fork,
    Lost,
    LostSamples,
    Mmap,
    Mmap2,
    Other,
    Record,
    Sample,
    Switch,
    Throttle,
)

WHERE = bit.PERF_SAMPLE_TID | bit.PERF_SAMPLE_TIME | bit.PERF_SAMPLE_CPU
TRAILER = struct.pack("=IIQII", 41, 42, 7_000, 3, 0)
PLACE = {"time": 7_000, "cpu": 3, "id": 0}


def record(type_: int, body: bytes, misc: int = 0) -> bytes:
    return struct.pack("=IHH", type_, misc, 8 + len(body)) + body


def name(text: bytes) -> bytes:
    return text + bytes(8 - len(text) % 8)


MAPPING = struct.pack("=IIQQQ", 41, 42, 0x400000, 0x2000, 0x1000)
FILE = struct.pack("=IIQQ", 8, 1, 1234, 99)
BUILD_ID = struct.pack("=B3x20s", 20, bytes(range(20)))

CASES: list[tuple[int, int, bytes, Record]] = [
    (
        kind.PERF_RECORD_MMAP,
        0,
        MAPPING + name(b"/bin/true"),
        Mmap(41, 42, 0x400000, 0x2000, 0x1000, "/bin/true", False, **PLACE),
    ),
    (
        kind.PERF_RECORD_MMAP,
        1 << 13,
        MAPPING + name(b"[heap]"),
        Mmap(41, 42, 0x400000, 0x2000, 0x1000, "[heap]", True, **PLACE),
    ),
    (
        kind.PERF_RECORD_MMAP2,
        2,
        MAPPING + FILE + struct.pack("=II", 5, 2) + name(b"/bin/12345\xff"),
        Mmap2(
            *(41, 42, 0x400000, 0x2000, 0x1000, "/bin/12345\udcff"),
            *(8, 1, 1234, b"", 5, 2),
            **PLACE,
        ),
    ),
    (
        kind.PERF_RECORD_MMAP2,
        2 | 1 << 14,
        MAPPING + BUILD_ID + struct.pack("=II", 5, 2) + name(b"/bin/true"),
        Mmap2(
            *(41, 42, 0x400000, 0x2000, 0x1000, "/bin/true"),
            *(0, 0, 0, bytes(range(20)), 5, 2),
            **PLACE,
        ),
    ),
    (
        kind.PERF_RECORD_COMM,
        0,
        struct.pack("=II", 41, 42) + name(b"exactly8"),
        Comm(41, 42, "exactly8", False, **PLACE),
    ),
    (
        kind.PERF_RECORD_COMM,
        1 << 13,
        struct.pack("=II", 41, 42) + name(b""),
        Comm(41, 42, "", True, **PLACE),
    ),
    (
        kind.PERF_RECORD_FORK,
        0,
        struct.pack("=IIIIQ", 1, 2, 3, 4, 6_999),
        Fork(1, 2, 3, 4, 6_999, cpu=3, id=0),
    ),
    (
        kind.PERF_RECORD_EXIT,
        0,
        struct.pack("=IIIIQ", 1, 2, 3, 4, 6_999),
        Exit(1, 2, 3, 4, 6_999, cpu=3, id=0),
    ),
    (kind.PERF_RECORD_LOST, 0, struct.pack("=QQ", 5, 17), Lost(5, 17, **PLACE)),
    (kind.PERF_RECORD_LOST_SAMPLES, 0, struct.pack("=Q", 17), LostSamples(17, **PLACE)),
    (
        kind.PERF_RECORD_THROTTLE,
        0,
        struct.pack("=QQQ", 6_999, 5, 6),
        Throttle(True, 6_999, 5, 6, cpu=3, id=0),
    ),
    (
        kind.PERF_RECORD_UNTHROTTLE,
        0,
        struct.pack("=QQQ", 6_999, 5, 6),
        Throttle(False, 6_999, 5, 6, cpu=3, id=0),
    ),
    (kind.PERF_RECORD_SWITCH, 1 << 13, b"", Switch(True, False, 0, 0, 41, 42, **PLACE)),
    (
        kind.PERF_RECORD_SWITCH_CPU_WIDE,
        3 << 13,
        struct.pack("=II", 8, 9),
        Switch(True, True, 8, 9, 41, 42, **PLACE),
    ),
    (kind.PERF_RECORD_AUX, 0, bytes(range(24)), Other(11, 0, bytes(range(24)), **PLACE)),
]


@pytest.mark.parametrize(("type_", "misc", "body", "expected"), CASES)
def test_each_kind_of_record(type_: int, misc: int, body: bytes, expected: Record) -> None:
    form = RecordFormat(WHERE, sample_id_all=True, build_id=True)
    assert list(form.iter_decode(record(type_, body + TRAILER, misc))) == [expected]


def test_without_sample_id_all_there_is_no_trailer() -> None:
    body = struct.pack("=II", 41, 42) + name(b"sh")
    (found,) = RecordFormat(WHERE).iter_decode(record(kind.PERF_RECORD_COMM, body))
    assert found == Comm(41, 42, "sh", False, time=0, cpu=-1, id=0)


def test_every_field_of_the_trailer_has_its_place() -> None:
    everything = WHERE | bit.PERF_SAMPLE_ID | bit.PERF_SAMPLE_STREAM_ID | bit.PERF_SAMPLE_IDENTIFIER
    trailer = struct.pack("=IIQQQIIQ", 41, 42, 7_000, 55, 66, 3, 0, 55)
    form = RecordFormat(everything, sample_id_all=True)
    (found,) = form.iter_decode(record(kind.PERF_RECORD_SWITCH, trailer))
    assert found == Switch(False, False, 0, 0, 41, 42, 7_000, 3, 55)


def test_records_are_decoded_one_after_the_other() -> None:
    form = RecordFormat(WHERE, sample_id_all=True, build_id=True)
    data = b"".join(record(type_, body + TRAILER, misc) for type_, misc, body, _ in CASES)
    assert list(form.iter_decode(data)) == [expected for *_, expected in CASES]


def test_what_other_processes_did_is_passed_over() -> None:
    form = RecordFormat(WHERE, sample_id_all=True, build_id=True)
    data = b"".join(record(type_, body + TRAILER, misc) for type_, misc, body, _ in CASES)
    actions = Comm | Exit | Fork | Mmap | Mmap2
    for pids in ((), (1,), (41,), range(1 << 22)):
        wanted = [
            expected
            for *_, expected in CASES
            if not isinstance(expected, actions) or expected.pid in pids
        ]
        assert list(form.iter_decode(data, pids)) == wanted
    with pytest.raises(FormatError):
        list(form.iter_decode(record(kind.PERF_RECORD_EXIT, b""), (1,)))


@pytest.mark.parametrize(("type_", "misc", "body", "expected"), CASES)
def test_a_record_that_is_cut_short_is_refused(
    type_: int, misc: int, body: bytes, expected: Record
) -> None:
    form = RecordFormat(WHERE, sample_id_all=True)
    for length in range(len(body + TRAILER) - 8, -1, -8):
        data = record(type_, (body + TRAILER)[:length], misc)
        try:
            found = list(form.iter_decode(data))
        except FormatError:
            continue
        assert found != [expected]


@pytest.mark.parametrize(
    ("type_", "misc", "body", "problem"),
    [
        (kind.PERF_RECORD_COMM, 0, struct.pack("=II8s", 1, 2, b"12345678"), "without its NUL"),
        (kind.PERF_RECORD_MMAP, 0, MAPPING, "without its NUL"),
        (
            kind.PERF_RECORD_MMAP2,
            1 << 14,
            MAPPING + struct.pack("=B23xII", 21, 5, 2) + name(b"x"),
            "a build id of 21 bytes",
        ),
    ],
)
def test_hostile_bodies_are_refused(type_: int, misc: int, body: bytes, problem: str) -> None:
    with pytest.raises(FormatError, match=problem):
        list(RecordFormat(build_id=True).iter_decode(record(type_, body, misc)))


NAMED = struct.pack("=II", 5, 2) + name(b"/bin/true")


@pytest.mark.parametrize("build_id", [False, None])
def test_the_bit_of_another_event_makes_no_build_id(build_id: bool | None) -> None:
    """The kernel leaves PERF_RECORD_MISC_MMAP_BUILD_ID in the header that all events share."""
    form = RecordFormat(build_id=build_id)
    for major in (8, 254, 259):
        file = struct.pack("=IIQQ", major, 1, 1234, 99)
        (found,) = form.iter_decode(record(kind.PERF_RECORD_MMAP2, MAPPING + file + NAMED, 1 << 14))
        assert isinstance(found, Mmap2)
        assert (found.maj, found.min, found.ino, found.build_id) == (major, 1, 1234, b"")


def test_a_file_may_have_got_its_build_ids_later() -> None:
    (found,) = RecordFormat(build_id=None).iter_decode(
        record(kind.PERF_RECORD_MMAP2, MAPPING + BUILD_ID + NAMED, 1 << 14)
    )
    assert isinstance(found, Mmap2)
    assert found.build_id == bytes(range(20))


def test_the_attr_says_who_asked_for_build_ids() -> None:
    for asked in (0, 1):
        attr = bytes(PERF_EVENT_ATTR.pack(size=PERF_EVENT_ATTR.size, build_id=asked))
        assert RecordFormat.of_attr(attr).build_id is bool(asked)


def test_records_that_cannot_be_read_may_be_skipped() -> None:
    problems: list[FormatError] = []
    form = RecordFormat(WHERE, sample_id_all=True)
    good = record(kind.PERF_RECORD_LOST, struct.pack("=QQ", 5, 17) + TRAILER)
    short = record(kind.PERF_RECORD_COMM, b"12345678")
    endless = struct.pack("=IHH", kind.PERF_RECORD_COMM, 0, 4096)
    found = list(form.iter_decode(good + short + good + endless, None, problems.append))
    assert found == [Lost(5, 17, **PLACE)] * 2
    assert [str(error).partition(": ")[0] for error in problems] == ["perf record", "perf ring"]


@given(
    type_=st.integers(0, 22),
    misc=st.integers(0, 0xFFFF),
    body=st.integers(0, 24).flatmap(lambda n: st.binary(min_size=8 * n, max_size=8 * n)),
    sample_type=st.integers(0, (1 << 25) - 1),
    sample_id_all=st.booleans(),
    read_format=st.integers(0, 31),
)
def test_random_bodies_are_records_or_format_errors(
    type_: int, misc: int, body: bytes, sample_type: int, sample_id_all: bool, read_format: int
) -> None:
    form = RecordFormat(
        sample_type,
        sample_id_all=sample_id_all,
        read_format=read_format,
        sample_regs_user=0b101,
        sample_regs_intr=0b1,
        branch_sample_type=read_format << 17,
    )
    try:
        (found,) = form.iter_decode(record(type_, body, misc))
    except FormatError:
        return
    assert isinstance(found, Sample) == (type_ == kind.PERF_RECORD_SAMPLE)
