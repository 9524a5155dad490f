"""Rules about goroutines, whose waits are no waits of threads."""

from __future__ import annotations

import pytest

from purebpf.findings.facts import (
    Endpoint,
    Facts,
    Goroutines,
    Process,
    Socket,
    StackFrame,
    Unanswered,
    WaitSum,
)
from purebpf.findings.find import find
from purebpf.findings.finding import Finding
from tests.support.builders.facts import facts, native, running, waiting

EXE = "/srv/billing"
SERVE = ("net/http.HandlerFunc.ServeHTTP", "net/http.(*conn).serve", "runtime.goexit.abi0")
LOCKING = (
    *("runtime.gopark", "runtime.semacquire1", "sync.runtime_SemacquireMutex"),
    "sync.(*Mutex).lockSlow",
)
SENDING = ("runtime.gopark", "runtime.chansend", "runtime.chansend1")
RECEIVING = ("runtime.gopark", "runtime.chanrecv", "runtime.chanrecv1")
SLEEPING = ("runtime.gopark", "time.Sleep")
BACKGROUND = ("runtime.goexit.abi0",)


def stack(*names: str) -> tuple[StackFrame, ...]:
    return tuple(native(name, EXE) for name in names)


def group(inside: tuple[str, ...], own: str, outside: tuple[str, ...], *counts: int) -> Goroutines:
    return Goroutines(7, stack(*inside, own, *outside), counts)


def measured(*groups: Goroutines, times: int = 500) -> Facts:
    """A program of Go, whose threads are woken so often."""
    moving = WaitSum(7, 7, "epoll_pwait", 4, -1, 0, Endpoint(), 9.0, times, 0.1)
    idle = waiting(7, 7, "epoll_wait", *stack("runtime.netpoll", "runtime.mcall"))
    process = Process(7, 1, "billing", EXE)
    return facts(idle)._replace(goroutines=groups, processes=(process,), waits=(moving,))


def said(found: list[Finding], kind: str) -> str:
    return "; ".join(
        "; ".join((finding.text, *finding.evidence)) for finding in found if finding.kind == kind
    )


# Locks


def convoy(holder: Goroutines, times: int = 500) -> Facts:
    return measured(group(LOCKING, "main.post", SERVE, 5, 4, 5, 6, 5), holder, times=times)


def test_goroutines_queue_for_a_mutex_whose_holder_sleeps() -> None:
    held = group(SLEEPING, "main.post", SERVE, 1, 1, 1, 0, 1)
    text = said(find(convoy(held)), "lock-convoy")
    assert "6 goroutines wait for the lock that main.post takes" in text
    assert "its holder sleeps in main.post (100 % of that time)" in text
    assert "nothing moves" not in text


def test_a_mutex_that_is_held_over_a_channel_nobody_reads() -> None:
    held = group(SENDING, "main.post", SERVE, 1, 1, 1, 1, 1)
    found = find(convoy(held, times=3))
    text = said(found, "lock-convoy")
    assert "its holder waits to send to a channel in main.post" in text
    assert "nothing moves: a deadlock, it seems" in text


def test_goroutines_that_wait_for_each_other_s_mutexes_are_one_finding() -> None:
    savings = group(LOCKING, "main.save", SERVE, 2, 2, 2, 2, 2)
    (finding,) = (f for f in find(convoy(savings, times=3)) if f.kind == "lock-convoy")
    assert finding.text == "8 goroutines wait for locks that main.post and main.save take"
    assert finding.evidence == ("nothing moves: a deadlock, it seems",)
    moving = [f for f in find(convoy(savings, times=500)) if f.kind == "lock-convoy"]
    assert len(moving) == 2


def test_the_thread_that_runs_below_a_mutex_holds_it() -> None:
    computing = running(7, 8, *stack("main.sum", "main.post", *SERVE), seconds=6.0)
    wanted = convoy(group(RECEIVING, "main.log", BACKGROUND, 1, 1, 1, 1, 1))
    wanted = wanted._replace(activities=(*wanted.activities, computing))
    assert "its holder runs in main.sum" in said(find(wanted), "lock-convoy")


@pytest.mark.parametrize(
    "group",
    [
        group(LOCKING, "main.post", SERVE, 0, 2, 0, 0, 1),
        group(RECEIVING, "main.work", BACKGROUND, 6, 6, 6, 6, 6),
        group(SENDING, "main.produce", BACKGROUND, 1, 1, 1, 1, 1),
        group(RECEIVING, "main.wait", SERVE, 2, 3, 2, 2, 3),
        Goroutines(7, stack(*LOCKING, "net/http.(*Transport).tryPutIdleConn"), (4, 4, 4)),
    ],
    ids=["seldom", "idle workers", "a pipeline", "handlers wait for events", "of a library"],
)
def test_goroutines_that_are_well(group: Goroutines) -> None:
    assert find(measured(group)) == []


# Channels and pools


def test_handlers_that_wait_to_send_to_a_channel() -> None:
    text = said(find(measured(group(SENDING, "main.mail", SERVE, 4, 4, 3, 4, 4))), "waits")
    assert "4 goroutines wait to send to a channel in main.mail" in text
    assert "who receives is slow, or gone" in text


def test_the_work_of_those_that_may_receive() -> None:
    asking = ("runtime.gopark", "runtime.selectgo", "net/http.(*persistConn).roundTrip")
    work = group(asking, "main.render", BACKGROUND, 3, 3, 3, 3, 3)
    text = said(find(measured(group(SENDING, "main.mail", SERVE, 4, 4, 3, 4, 4), work)), "waits")
    assert "each of 3 goroutines outside of requests waits for an answer in main.render" in text


@pytest.mark.parametrize(
    "other",
    [
        group(RECEIVING, "main.work", BACKGROUND, 3, 3, 3, 3, 3),
        group(SLEEPING, "main.list", SERVE, 3, 3, 3, 3, 3),
    ],
    ids=["waits for something to do", "another request"],
)
def test_others_that_receive_nothing(other: Goroutines) -> None:
    found = find(measured(group(SENDING, "main.mail", SERVE, 4, 4, 3, 4, 4), other))
    assert "outside of requests" not in said(found, "waits")


def test_handlers_that_wait_for_a_connection_of_a_pool() -> None:
    inside = ("runtime.gopark", "runtime.selectgo", "database/sql.(*DB).conn")
    text = said(find(measured(group(inside, "main.list", SERVE, 4, 4, 3, 4, 4))), "waits")
    assert "4 goroutines wait for a connection of a pool in main.list" in text


# Leaks


def test_goroutines_that_do_not_end() -> None:
    leaking = group(RECEIVING, "main.await", BACKGROUND, 100, 400, 700, 1000, 1300)
    text = said(find(measured(leaking)), "growth")
    assert "starts 120 goroutines a second that do not end: 1300 wait in main.await" in text


@pytest.mark.parametrize("counts", [(100, 400, 300, 500, 600), (100, 110, 110, 120, 125), (2, 90)])
def test_goroutines_that_come_and_go(counts: tuple[int, ...]) -> None:
    assert find(measured(group(RECEIVING, "main.await", BACKGROUND, *counts))) == []


# Requests that are held


def test_requests_of_goroutines_with_the_few_that_ask_for_them() -> None:
    """Handlers wait for one of two workers, which ask another service."""
    inside = ("runtime.gopark", "runtime.selectgo")
    waits = measured(group(inside, "main.(*Pool).Submit", SERVE, 6, 5, 6, 6, 5))
    asked = tuple(Unanswered(70 + n, 0.9, 0.1, "127.0.0.1", 6401, 41000 + n) for n in (0, 1))
    held = tuple(Unanswered(60 + n, 0.9, 0.3, "127.0.0.1", 40001 + n, 8000) for n in range(6))
    ends = {n: f"socket:[{n}]" for n in (51, 60, 61, 62, 63, 64, 65, 70, 71)}
    listeners = (
        Socket(51, "tcp", "0.0.0.0", 8000, "", 0, 10),
        Socket(50, "tcp", "0.0.0.0", 6401, "", 0, 10),
    )
    found = find(
        waits._replace(
            held=held,
            unanswered=asked,
            sockets=listeners,
            descriptors={7: ends, 9: {3: "socket:[50]"}},
        )
    )
    text = said(found, "held")
    assert "a request's goroutine waits in a select in main.(*Pool).Submit" in text
    assert "it asks 127.0.0.1:6401 1.8 at a time: a lock, or a limit of connections" in text
