"""Records of processes, whatever their bytes: read, or counted and skipped."""

from __future__ import annotations

import struct

from hypothesis import given
from hypothesis import strategies as st

from purebpf.abi.perf import perf_event_type as kind
from purebpf.observe.processes.change_decoder import SAMPLE_TYPE, Change, ChangeDecoder
from purebpf.observe.processes.process_names import ProcessNames
from purebpf.observe.processes.unread_records import UnreadRecords
from purebpf.symbols.address_spaces import AddressSpaces, MappedCode
from purebpf.symbols.frame import Address
from purebpf.wire.perf_format import RecordFormat
from purebpf.wire.perf_records import Comm, Exit
from purebpf.wire.process_runs import Happened, sort_out

TRAILER = struct.pack("=IIQI4x", 7, 7, 900, 1)
KINDS = sorted({int(value) for value in kind} | {0, 99})
COMM, EXIT, MMAP2 = (
    int(kind.PERF_RECORD_COMM),
    int(kind.PERF_RECORD_EXIT),
    int(kind.PERF_RECORD_MMAP2),
)


def record(type_: int, body: bytes, misc: int = 0, trailer: bytes = TRAILER) -> bytes:
    body += bytes(-len(body) % 8) + trailer
    return struct.pack("=IHH", type_, misc, 8 + len(body)) + body


def comm(pid: int = 7) -> bytes:
    return record(COMM, struct.pack("=II8s", pid, pid, b"true"), 1 << 13)


def mapped(misc: int, major: int = 254) -> bytes:
    where = struct.pack("=IIQQQ", 7, 7, 0x400000, 0x2000, 0)
    file = struct.pack("=IIQQII", major, 1, 1234, 99, 5, 2)
    return record(MMAP2, where + file + b"/bin/true\0", misc)


def decoder() -> ChangeDecoder:
    return ChangeDecoder(RecordFormat(SAMPLE_TYPE, sample_id_all=True))


def test_the_build_id_bit_of_another_event_is_not_believed() -> None:
    for major in (8, 16, 20, 254):
        reader = decoder()
        (change,) = reader.decode([mapped(1 << 14, major)])
        assert isinstance(change, MappedCode)
        assert change.file[:5] == ("/bin/true", major, 1, 1234, "")
        assert reader.unreadable == 0


def test_records_that_break_their_format_are_counted_and_skipped() -> None:
    reader = decoder()
    short = record(EXIT, b"12345678")
    nameless = record(COMM, struct.pack("=II8s", 7, 7, b"12345678"))
    changes = reader.decode([comm() + short + mapped(0) + nameless, comm(8)])
    assert [type(change) for change in changes] == [Comm, MappedCode, Comm]
    assert reader.unreadable == 2


RECORDS = st.one_of(
    st.builds(comm, st.integers(0, 9)),
    st.builds(mapped, st.integers(0, 0xFFFF), st.integers(0, 0xFFFFFFFF)),
    st.builds(
        record,
        st.sampled_from(KINDS),
        st.binary(max_size=120),
        st.integers(0, 0xFFFF),
        st.binary(min_size=24, max_size=24),
    ),
    st.builds(  # a size of its own
        lambda type_, misc, size, body: struct.pack("=IHH", type_, misc, size) + body,
        st.sampled_from(KINDS),
        st.integers(0, 0xFFFF),
        st.integers(0, 0xFFFF),
        st.binary(max_size=64),
    ),
)


@given(st.lists(RECORDS, max_size=24), st.booleans())
def test_no_bytes_end_a_run(records: list[bytes], threads: bool) -> None:
    happened, unread = Happened.nothing(), UnreadRecords()
    sort_out(b"".join(records), happened, threads=threads)
    unread.add(happened)
    reader, spaces, names = decoder(), AddressSpaces(), ProcessNames()
    pids = list(happened.runs)
    changes: list[Change] = reader.decode(unread.take(pids))
    for change in changes:
        spaces.feed(change)
        names.feed(change)
    for pid in pids:
        spaces.find(pid, Address(0x400010))
        spaces.earlier(pid, 900)
        spaces.files(pid)
        spaces.family(pid)
    unread.orphans(spaces.exited)
    spaces.forget_exited(())
    unread.forget_ended(())
    read = sum(len(piece) for pieces in happened.runs.values() for piece in pieces)
    assert read <= sum(map(len, records))


def test_what_cannot_be_read_does_not_hide_what_follows() -> None:
    reader = decoder()
    exits = record(EXIT, struct.pack("=IIIIQ", 7, 1, 7, 1, 0))
    changes = reader.decode([record(MMAP2, b"") + exits])
    assert [type(change) for change in changes] == [Exit]
    assert reader.unreadable == 1
