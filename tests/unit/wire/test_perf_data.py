"""perf.data: what is written is read again, in the order of time; what is broken says where."""

from __future__ import annotations

import io
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from purebpf.abi.perf import PERF_EVENT_ATTR
from purebpf.abi.perf import perf_event_sample_format as bit
from purebpf.errors import FormatError, NotSupportedError
from purebpf.results.build.perf_data_aggregate import count
from purebpf.wire.perf_data import HEADER, Feature, RecordedEvent, UserRecord, shortest_attr
from purebpf.wire.perf_data_features import (
    BuildId,
    pack_build_ids,
    pack_cpus,
    pack_string,
    pack_strings,
    string,
    unpack_build_ids,
    unpack_cpus,
    unpack_strings,
)
from purebpf.wire.perf_data_reader import PerfData
from purebpf.wire.perf_data_writer import PerfDataWriter
from purebpf.wire.perf_encode import RecordEncoder
from purebpf.wire.perf_records import Comm, LostSamples, Record, Sample
from purebpf.wire.perf_ring import HEADER as RECORD_HEADER

SAMPLED = (
    bit.PERF_SAMPLE_IDENTIFIER | bit.PERF_SAMPLE_IP | bit.PERF_SAMPLE_TID | bit.PERF_SAMPLE_TIME
)
WITH_CALLCHAIN = SAMPLED | bit.PERF_SAMPLE_CALLCHAIN


def attr(sample_type: int, **fields: int) -> bytes:
    size = PERF_EVENT_ATTR.size
    packed = PERF_EVENT_ATTR.pack(size=size, sample_type=sample_type, sample_id_all=1, **fields)
    return bytes(packed)


FIRST = RecordedEvent("cpu-clock", attr(SAMPLED, type=1), (11, 12))
SECOND = RecordedEvent("page-faults", attr(WITH_CALLCHAIN, type=1, config=2), (21,))
ENCODERS = {11: RecordEncoder(SAMPLED), 12: RecordEncoder(SAMPLED)}
ENCODERS[21] = RecordEncoder(WITH_CALLCHAIN)
FEATURES = {
    Feature.HOSTNAME: pack_string("host"),
    Feature.CMDLINE: pack_strings(["record", "-g"]),
    Feature.NRCPUS: pack_cpus(4, 2),
    Feature.BUILD_ID: pack_build_ids([BuildId("[kernel.kallsyms]", bytes(range(20)), True)]),
}


def sample(time: int, number: int = 11) -> Sample:
    chain = (1, 2) if number == 21 else ()
    return Sample(2, ip=0x1000 + time, pid=1, tid=1, time=time, id=number, callchain=chain)


def written(*rounds: list[Record], events: tuple[RecordedEvent, ...] = (FIRST, SECOND)) -> bytes:
    file = io.BytesIO()
    writer = PerfDataWriter(file, events)
    for round_ in rounds:
        for record in round_:
            writer.write(ENCODERS[record.id or 11].encode(record))
        writer.end_round()
    writer.finish(FEATURES)
    return file.getvalue()


def opened(data: bytes) -> PerfData:
    return PerfData(lambda at, size: data[at : at + size], len(data), "x.data")


def times(data: bytes) -> list[int]:
    return [placed.record.time for placed in opened(data).records()]


def test_events_features_and_records_come_back() -> None:
    comm = Comm(1, 1, "sh", False)
    file = opened(written([comm, sample(5), sample(6, 21)]))
    assert [event.name for event in file.events] == ["cpu-clock", "page-faults"]
    assert [event.ids for event in file.events] == [(11, 12), (21,)]
    assert [event.sample_type for event in file.events] == [SAMPLED, WITH_CALLCHAIN]
    found = list(file.records())
    assert [(placed.event, placed.record) for placed in found] == [
        (0, comm._replace(cpu=-1)),
        (0, sample(5)),
        (1, sample(6, 21)),
    ]
    hostname, cmdline = file.feature(Feature.HOSTNAME), file.feature(Feature.CMDLINE)
    cpus, build_ids = file.feature(Feature.NRCPUS), file.feature(Feature.BUILD_ID)
    assert hostname is not None
    assert string(hostname) == "host"
    assert cmdline is not None
    assert unpack_strings(cmdline) == ("record", "-g")
    assert cpus is not None
    assert unpack_cpus(cpus) == (4, 2)
    assert build_ids is not None
    assert unpack_build_ids(build_ids) == (BuildId("[kernel.kallsyms]", bytes(range(20)), True),)
    assert file.feature(Feature.TRACING_DATA) is None


def test_rings_that_are_read_one_after_the_other_come_out_in_order() -> None:
    data = written([sample(10), sample(30), sample(20, 12)], [sample(25, 12), sample(40)])
    assert times(data) == [10, 20, 25, 30, 40]


def test_without_a_time_there_is_no_waiting() -> None:
    data = written([sample(10)], [sample(20), LostSamples(3, by_bpf=True)])
    assert times(data) == [0, 10, 20]


@given(st.lists(st.lists(st.integers(1, 50), max_size=8), max_size=6))
def test_what_two_rings_hold_between_two_rounds_is_sorted(gaps: list[list[int]]) -> None:
    now, rounds = 0, []
    for each in gaps:
        stamps = []
        for gap in each:
            now += gap
            stamps.append(now)
        # both rings of the round one after the other, as they are read
        rounds.append([*map(sample, stamps[::2]), *(sample(at, 12) for at in stamps[1::2])])
    found = times(written(*rounds)) if now else []
    assert found == sorted(found)
    assert len(found) == sum(map(len, gaps))


def test_an_attr_is_no_longer_than_an_older_perf_reads() -> None:
    assert shortest_attr([attr(SAMPLED)]) == 112
    assert shortest_attr([attr(SAMPLED), attr(SAMPLED, config3=1)]) == 136
    file = opened(written([sample(1)]))
    assert {int(PERF_EVENT_ATTR.unpack(event.attr)["size"]) for event in file.events} == {112}


def test_a_large_file_is_read_in_pieces() -> None:
    asked: list[int] = []
    data = written([sample(n + 1) for n in range(40_000)])

    def read(at: int, size: int) -> bytes:
        asked.append(size)
        return data[at : at + size]

    assert sum(1 for _ in PerfData(read, len(data)).records()) == 40_000
    assert max(asked) <= 1 << 20 < len(data)


def test_the_last_record_may_be_the_longest() -> None:
    encoder = RecordEncoder(SAMPLED | bit.PERF_SAMPLE_RAW)
    event = RecordedEvent("x", attr(SAMPLED | bit.PERF_SAMPLE_RAW))
    file = io.BytesIO()
    writer = PerfDataWriter(file, [event])
    for time in range(1, 40):
        writer.write(encoder.encode(sample(time)._replace(raw=bytes(65_468))))
    writer.finish({})
    assert times(file.getvalue()) == list(range(1, 40))


WHOLE = written([sample(10), sample(30), sample(20, 21)], [sample(40)])


@pytest.mark.parametrize("length", range(0, len(WHOLE), 7))
def test_a_file_that_was_cut_off_says_so(length: int) -> None:
    def read() -> None:
        file = opened(WHOLE[:length])
        list(file.records())
        for feature in Feature:
            file.feature(feature)

    with pytest.raises(FormatError, match=r"x\.data"):
        read()


@settings(max_examples=400)
@given(data=st.data())
def test_any_changed_bytes_are_read_or_refused(data: st.DataObject) -> None:
    changed = bytearray(WHOLE)
    for _ in range(data.draw(st.integers(1, 6))):
        changed[data.draw(st.integers(0, len(WHOLE) - 1))] = data.draw(st.integers(0, 255))
    try:
        file = opened(bytes(changed))
        list(file.records())
        for feature, unpack in (
            (Feature.CMDLINE, unpack_strings),
            (Feature.BUILD_ID, unpack_build_ids),
            (Feature.HOSTNAME, string),
            (Feature.NRCPUS, unpack_cpus),
        ):
            raw = file.feature(feature)
            if raw is not None:
                unpack(raw)
    except (FormatError, NotSupportedError):
        pass


def broken(at: int, new: bytes) -> bytes:
    return WHOLE[:at] + new + WHOLE[at + len(new) :]


@pytest.mark.parametrize(
    ("data", "error", "said"),
    [
        (b"\x7fELF" + bytes(200), FormatError, "not a perf.data file"),
        (b"", FormatError, "not a perf.data file"),
        (broken(0, b"2ELIFREP"), FormatError, "other byte order"),
        (broken(8, bytes([99])), FormatError, "99 bytes long"),
        (broken(48, bytes(8)), FormatError, "the recording did not finish"),
    ],
)
def test_foreign_files_are_refused_with_their_kind(
    data: bytes, error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        opened(data)


def test_compressed_records_are_refused_with_the_way_out() -> None:
    file = io.BytesIO()
    writer = PerfDataWriter(file, [FIRST])
    writer.write(RECORD_HEADER.pack(UserRecord.COMPRESSED, 0, 16) + bytes(8))
    writer.finish({})
    with pytest.raises(NotSupportedError, match=r"compressed.*perf inject"):
        list(opened(file.getvalue()).records())


def test_stacks_of_branches_are_refused_with_the_way_out() -> None:
    lbr = PERF_EVENT_ATTR.pack(
        size=PERF_EVENT_ATTR.size,
        sample_type=bit.PERF_SAMPLE_IP | bit.PERF_SAMPLE_BRANCH_STACK,
        branch_sample_type=1 << 11,
    )
    file = io.BytesIO()
    writer = PerfDataWriter(file, [RecordedEvent("cycles", bytes(lbr))])
    writer.write(RECORD_HEADER.pack(68, 0, 8))
    writer.finish({})
    with pytest.raises(NotSupportedError, match=r"--call-graph lbr.*perf script"):
        opened(file.getvalue())


class Killed(io.BytesIO):
    """A file that keeps what a kill would have left: its bytes after each call."""

    def __init__(self) -> None:
        super().__init__()
        self.left: list[bytes] = []

    def write(self, data: Any, /) -> int:
        done = super().write(data)
        self.left.append(self.getvalue())
        return done


def test_what_a_kill_leaves_has_every_round_that_ended() -> None:
    file = Killed()
    writer = PerfDataWriter(file, [FIRST, SECOND], {Feature.HOSTNAME: pack_string("host")})
    ended: list[tuple[int, list[int]]] = []
    expected: list[int] = []
    for number in range(1, 6):
        for time in (2 * number, 2 * number + 1):
            writer.write(ENCODERS[11].encode(sample(time)))
            expected.append(time)
        writer.end_round()
        ended.append((len(file.left), list(expected)))
    writer.finish({Feature.NRCPUS: pack_cpus(4, 2)})
    assert len(file.left) > 20
    previous: list[int] = []
    for number, data in enumerate(file.left):
        complete = [times for calls, times in ended if calls <= number + 1]
        if not complete and opened_size(data) == 0:
            continue  # nothing was recorded
        found = opened(data)
        seen = [placed.record.time for placed in found.records()]
        assert seen[: len(previous)] == previous
        if complete:
            assert seen == complete[-1] or set(seen) > set(complete[-1])
        if found.feature(Feature.HOSTNAME) is not None:
            assert string(found.feature(Feature.HOSTNAME) or b"") == "host"
            assert [event.name for event in found.events] == ["cpu-clock", "page-faults"]
        previous = seen
    assert opened(file.left[-1]).feature(Feature.NRCPUS) == pack_cpus(4, 2)
    assert opened(file.left[-1]).feature(Feature.HOSTNAME) is not None


def test_between_the_rounds_the_features_are_there() -> None:
    file = Killed()
    writer = PerfDataWriter(file, [FIRST], {Feature.HOSTNAME: pack_string("host")})
    for time in range(1, 4):
        writer.write(ENCODERS[11].encode(sample(time)))
        writer.end_round()
        found = opened(file.getvalue())
        assert string(found.feature(Feature.HOSTNAME) or b"") == "host"
        assert len(list(found.records())) == time


def opened_size(data: bytes) -> int:
    """Bytes of records that the header tells of."""
    return int(HEADER.unpack_from(data)[6])


def test_samples_years_apart_have_no_time_line() -> None:
    file = opened(written([sample(10), sample(1 << 63)]))
    with pytest.raises(FormatError, match="a sample at 9223372036854775808 ns, years after others"):
        count(file, {}, periods=[False, False], slots=True, unwind={})
    assert count(file, {}, periods=[False, False], slots=False, unwind={}).samples.total() == 2


def test_a_task_that_was_waited_for_has_a_word_instead_of_a_number() -> None:
    reaped = sample(10)._replace(pid=2**32 - 1, tid=2**32 - 1)
    file = opened(written([reaped, sample(11)]))
    found = count(file, {}, periods=[False, False], slots=False, unwind={}).found[0]
    assert {(owner.comm, owner.pid) for owner, _ in found} == {("[exited]", 0), (":1", 1)}
