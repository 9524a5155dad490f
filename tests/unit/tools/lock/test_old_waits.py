"""Waits that began before the run, in words."""

from __future__ import annotations

from purebpf.results import Loss
from purebpf.tools.lock.old_waits import OldWait, count_old_waits, describe_held
from purebpf.tools.lock.render import UserText


def test_a_ring_is_a_deadlock_and_those_behind_it_are_named() -> None:
    waits = [OldWait(5, 8, 9), OldWait(5, 9, 8), OldWait(5, 10, 9), OldWait(5, 11)]
    assert list(describe_held(waits)) == [
        "deadlock in process 5: thread 8 waits for the lock of 9, 9 waits for the lock of 8",
        "thread 10 waits for the lock of 9 since before the run",
    ]
    (line,) = count_old_waits(waits)
    assert line == (
        "4 threads wait in futex(2) since before the run, for a lock or for something to do: "
        "purebpf dump 5 shows where"
    )


def test_functions_stand_with_their_threads() -> None:
    waits = [
        OldWait(5, 8, 9, "pay (bank.py:12)"),
        OldWait(5, 9, 8, "close (bank.py:20)"),
        OldWait(5, 10, 9, "serve (bank.py:30)"),
        OldWait(5, 11, 9, "serve (bank.py:30)"),
    ]
    ring = (
        "deadlock in process 5: thread 8 in pay (bank.py:12) waits for the lock of 9, "
        "9 in close (bank.py:20) waits for the lock of 8"
    )
    assert list(describe_held(waits)) == [
        ring,
        "2 threads (10, 11) wait for the lock of 9 since before the run in serve (bank.py:30)",
    ]


def test_threads_behind_one_holder_are_one_line() -> None:
    waits = [OldWait(5, tid, 30) for tid in range(20, 26)]
    line = "6 threads (20, 21, 22, 23, ...) wait for the lock of 30 since before the run"
    assert list(describe_held(waits)) == [line]
    assert list(describe_held([*waits, OldWait(5, 30)])) == [f"{line}; 30 waits since then, too"]


def test_a_thread_without_a_known_holder_is_counted() -> None:
    assert list(describe_held([OldWait(5, 8)])) == []
    (line,) = count_old_waits([OldWait(5, 8)])
    assert line.startswith("1 thread waits in futex(2) since before the run")


def test_no_waits_are_not_said_where_threads_wait_all_the_time() -> None:
    text = UserText(lambda: (), "caller", others=dict, old_waits=lambda: [OldWait(5, 8)])
    shown = "".join(text.end(Loss(seen=0)))
    assert "since before the run" in shown
    assert "no waits ended" in shown


def test_without_such_threads_nothing_changes() -> None:
    assert "no waits\n" in "".join(UserText(lambda: (), "caller", others=dict).end(Loss(seen=0)))
