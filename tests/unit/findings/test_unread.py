"""Stacks of waits that no look could read."""

from __future__ import annotations

import pytest

from purebpf.findings.facts import (
    Activity,
    Endpoint,
    Facts,
    Process,
    Socket,
    ThreadTime,
    WaitSum,
    WakerSum,
)
from purebpf.findings.find import find
from purebpf.findings.unread import fill_unread
from tests.support.builders.facts import facts, native, running, waiting

EXE = "/srv/mailer"
DELIVER = (native("pthread_cond_clockwait"), native("Mailer::deliver()", EXE), native("serve", EXE))
RUN = (native("pthread_cond_clockwait"), native("Mailer::run()", EXE))


def names(activities: list[Activity]) -> set[tuple[int, str, float]]:
    return {
        (one.tid, one.user[1].name if len(one.user) > 1 else "", one.seconds)
        for one in activities
        if one.kind == "wait"
    }


def test_both_futexes_of_a_condition_variable_are_one_wait() -> None:
    read = waiting(7, 8, "futex", *DELIVER, seconds=4.0, argument=0x1040)
    unread = waiting(7, 8, "futex", seconds=3.0, argument=0x1044)
    other = waiting(7, 8, "futex", seconds=2.0, argument=0x1048)
    assert names(fill_unread([unread, read, other])) == {
        (8, "Mailer::deliver()", 7.0),
        (8, "", 2.0),
    }


def test_samples_inside_of_a_wait_have_its_stack() -> None:
    unread = waiting(7, 8, "futex", seconds=3.0)
    kernel = ("__schedule", "schedule", "futex_do_wait", "__futex_wait")
    inside = running(7, 8, *DELIVER, seconds=0.02)._replace(kernel=kernel)
    wakes = running(7, 8, *RUN, seconds=0.5)._replace(kernel=("futex_wake", "__x64_sys_futex"))
    assert names(fill_unread([unread, inside, wakes])) == {(8, "Mailer::deliver()", 3.0)}
    assert names(fill_unread([unread, wakes])) == {(8, "", 3.0)}


def test_samples_of_two_places_tell_nothing() -> None:
    unread = waiting(7, 8, "futex", seconds=3.0)
    inside = [
        running(7, 8, *user, seconds=0.02)._replace(kernel=("futex_do_wait",))
        for user in (DELIVER, RUN)
    ]
    assert names(fill_unread([unread, *inside])) == {(8, "", 3.0)}


def test_workers_that_wait_for_one_futex_wait_in_one_place() -> None:
    """The thread that also waits there, but never reads, is no worker."""
    reads = [waiting(7, tid, "recvfrom", seconds=2.0, argument=tid) for tid in (8, 9)]
    read = waiting(7, 8, "futex", *DELIVER, seconds=4.0)
    unread = waiting(7, 9, "futex", seconds=5.0)
    thread = waiting(7, 10, "futex", *RUN, seconds=9.0)
    found = names(fill_unread([*reads, read, unread, thread]))
    assert (9, "Mailer::deliver()", 5.0) in found
    stranger = waiting(7, 11, "futex", seconds=5.0)
    assert (11, "Mailer::run()", 5.0) in names(fill_unread([thread, stranger, *reads, read]))
    elsewhere = unread._replace(argument=0x9000)
    assert (9, "", 5.0) in names(fill_unread([*reads, read, elsewhere, thread]))


# Threads that serve connections


def serving(side_port: int = 8000, waker: int = 0) -> Facts:
    """Threads whose waits for requests no look could read wait for a condition meanwhile."""
    waits, sums = list[Activity](), list[WaitSum]()
    for tid in (8, 9):
        waits.append(waiting(7, tid, "futex", *DELIVER, seconds=7.0))
        waits.append(waiting(7, tid, "recvfrom", seconds=3.0, argument=tid))
        end = Endpoint("socket", "inet", "127.0.0.1", 40000 + tid, side_port, 60 + tid)
        sums.append(WaitSum(7, tid, "recvfrom", tid, tid, 0, end, 3.0, 50, 0.06))
        sums.append(WaitSum(7, tid, "futex", 0x1000, -1, 0, Endpoint(), 7.0, 70, 0.1))
    return facts(
        *waits,
        waits=tuple(sums),
        wakers=tuple(WakerSum(tid, "futex", waker and 7, waker, 7.0, 70) for tid in (8, 9)),
        sockets=(Socket(51, "tcp", "0.0.0.0", 8000, "", 0, 10),),
        descriptors={7: {3: "socket:[51]"}},
        processes=(Process(7, 1, "mailer", EXE),),
    )


def test_who_serves_a_connection_and_waits_for_anything_else_is_at_work() -> None:
    (finding,) = (one for one in find(serving()) if one.kind == "waits")
    assert finding.text == "2 threads wait in Mailer::deliver"
    assert (
        finding.evidence[0]
        == "nobody wakes them: each wait ends by its timeout, 100 ms in the mean"
    )
    (finding,) = (one for one in find(serving(waker=10)) if one.kind == "waits")
    assert "nobody wakes them" not in finding.evidence[0]


@pytest.mark.parametrize("port", [9000, 0])
def test_who_serves_nobody_may_wait_for_work(port: int) -> None:
    assert [one for one in find(serving(side_port=port)) if one.kind == "waits"] == []


def test_who_holds_a_lock_does_not_wait_for_the_next_request() -> None:
    """The function that takes the lock is inlined into the one that reads requests."""
    measured = serving()
    lock = (native("pthread_mutex_lock"), native("serve", EXE))
    stays = [
        one._replace(user=lock) if one.call == "futex" else one._replace(user=lock[1:])
        for one in measured.activities
    ]
    stays.append(waiting(7, 8, "fsync", native("fdatasync"), *lock[1:], seconds=0.5))
    owned = tuple(
        one._replace(owner=17 - one.tid) if one.call == "futex" else one for one in measured.waits
    )
    times = tuple(ThreadTime(7, tid, 0.1, 0.0) for tid in (8, 9))
    found = find(measured._replace(activities=tuple(stays), waits=owned, threads=times))
    finding = next(one for one in found if one.kind == "lock-convoy")
    assert finding.evidence[0] == "its holder waits for fsync in serve (100 % of that time)"
    moment = running(7, 8, native("pause", EXE), *lock[1:], seconds=0.02)
    sleeping = measured._replace(activities=(*stays[:-1], moment), waits=owned, threads=times)
    finding = next(one for one in find(sleeping) if one.kind == "lock-convoy")
    assert finding.evidence[0] == "its holder hardly runs: it waits near pause"
