"""Records sorted out by process, without decoding them."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from purebpf.wire.process_runs import Happened, sort_out

LOST, COMM, EXIT, FORK, MMAP2 = 2, 3, 4, 7, 10
IS_EXEC = 1 << 13


def record(kind: int, body: bytes, misc: int = 0) -> bytes:
    body += bytes(24)  # struct sample_id
    return struct.pack("=IHH", kind, misc, 8 + len(body)) + body


def task(kind: int, pid: int, ppid: int, tid: int) -> bytes:
    return record(kind, struct.pack("=IIIIQ", pid, ppid, tid, ppid, 0))


def fork(pid: int, ppid: int) -> bytes:
    return task(FORK, pid, ppid, pid)


def ends(pid: int) -> bytes:
    return task(EXIT, pid, 1, pid)


def comm(pid: int, misc: int = IS_EXEC) -> bytes:
    return record(COMM, struct.pack("=II8s", pid, pid, b"true"), misc)


def mapped(pid: int) -> bytes:
    return record(MMAP2, struct.pack("=II72x", pid, pid))


def sorted_out(*records: bytes, threads: bool = False) -> Happened:
    happened = Happened.nothing()
    sort_out(b"".join(records), happened, threads=threads)
    return happened


def test_what_follows_each_other_is_one_piece():
    life = (comm(8), mapped(8), mapped(8), ends(8))
    happened = sorted_out(fork(8, 7), mapped(7), *life)
    assert happened.runs == {8: [fork(8, 7), b"".join(life)], 7: [mapped(7)]}
    assert happened.forks == [(8, 7)]
    assert happened.executed == {8}
    assert list(happened.ended) == [8]


def test_a_new_name_does_not_make_another_program():
    assert not sorted_out(comm(8, misc=0)).executed


def test_threads_are_left_out_unless_they_count():
    thread = task(FORK, 7, 7, 9), task(EXIT, 7, 7, 9)
    records = (mapped(7), thread[0], mapped(7), thread[1])
    happened = sorted_out(*records)
    assert happened.runs == {7: [mapped(7), mapped(7)]}
    assert (happened.forks, happened.tasks, list(happened.ended)) == ([], [], [])
    counted = sorted_out(*records, fork(8, 7), threads=True)
    assert counted.runs[7] == [b"".join(records)]
    assert counted.tasks == [(7, 7), (8, 7)]
    assert counted.forks == [(8, 7)]
    assert not counted.ended


def test_a_child_may_end_on_another_cpu_than_that_of_its_parent():
    happened = Happened.nothing()
    records = memoryview(comm(8) + ends(8) + comm(9))
    sort_out(records, happened, len(records) - len(comm(9)))
    sort_out(fork(8, 7), happened)
    assert list(happened.ended) == [8]
    assert 9 not in happened.runs


def test_what_is_lost_is_counted_and_belongs_to_no_process():
    happened = sorted_out(mapped(7), record(LOST, struct.pack("=QQ", 1, 5)), mapped(7))
    assert happened.lost == [5]
    assert happened.runs == {7: [mapped(7), mapped(7)]}


def test_some_processes_may_be_wanted_alone():
    happened = sorted_out(fork(8, 7), comm(8), ends(8), fork(9, 7), comm(9), ends(9)).of({9})
    assert (list(happened.runs), happened.forks) == ([9], [(9, 7)])
    assert (happened.executed, list(happened.ended)) == ({9}, [9])


@pytest.mark.parametrize("size", [0, 16, 31, 4096])
def test_a_record_whose_size_makes_no_sense_ends_the_ring_and_is_counted(size: int):
    broken = struct.pack("=IHH", MMAP2, 0, size) + bytes(64)
    happened = sorted_out(mapped(7), broken, mapped(8))
    assert happened.runs == {7: [mapped(7)]}
    assert happened.unreadable == [1]


def test_so_does_a_rest_that_is_too_short_for_a_record():
    happened = sorted_out(mapped(7), bytes(8))
    assert (happened.runs, happened.unreadable) == ({7: [mapped(7)]}, [1])


@given(
    st.lists(
        st.sampled_from(
            [
                *(
                    task(kind, pid, pid, tid)
                    for kind in (FORK, EXIT)
                    for pid in (7, 8)
                    for tid in (7, 9)
                ),
                *(fork(8, 7), ends(7), ends(8), comm(8), mapped(7), record(LOST, bytes(16))),
                record(FORK, struct.pack("=IIIIQQ", 7, 7, 9, 7, 0, 0)),
            ]
        )
    )
)
def test_rows_of_threads_are_passed_over_as_each_would_be(records: list[bytes]) -> None:
    """Records sorted out in one piece, and one by one."""
    happened, one_by_one = sorted_out(*records), Happened.nothing()
    for piece in records:
        sort_out(piece, one_by_one)
    whole = {pid: b"".join(pieces) for pid, pieces in happened.runs.items()}
    assert whole == {pid: b"".join(pieces) for pid, pieces in one_by_one.runs.items()}
    assert happened[1:] == one_by_one[1:]


def test_a_row_of_threads_that_is_cut_is_counted() -> None:
    row = b"".join(task(FORK, 7, 7, tid) for tid in range(9, 20))
    assert sorted_out(row[:-8]).unreadable == [1]
