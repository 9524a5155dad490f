"""Services that ask too often, hold requests, or may not use the CPUs, and ones that are well."""

from __future__ import annotations

import pytest

from purebpf.findings.facts import (
    CallCount,
    Endpoint,
    Facts,
    Process,
    Socket,
    Start,
    ThreadTime,
    Unanswered,
    WaitSum,
)
from purebpf.findings.find import find
from purebpf.findings.finding import Finding
from tests.support.builders.facts import PYTHON, THREAD, facts, native, own, running, waiting

PORT, DB_PORT, DB = 8000, 6401, 5
CLIENT = Endpoint("socket", "inet", "127.0.0.1", 40001, PORT, 30)
PEER = Endpoint("socket", "inet", "127.0.0.1", DB_PORT, 40000, 31)
LISTENERS = (
    Socket(50, "tcp", "127.0.0.1", DB_PORT, "0.0.0.0", 0, 10),
    Socket(51, "tcp", "127.0.0.1", PORT, "0.0.0.0", 0, 10),
)
DESCRIPTORS = {DB: {4: "socket:[50]"}, 7: {3: "socket:[51]", 6: "socket:[60]"}}


def said(found: list[Finding], kind: str) -> str:
    return "; ".join(
        "; ".join((finding.text, *finding.evidence)) for finding in found if finding.kind == kind
    )


# Round trips


def asking(
    times: int = 9000, *, requests: int = 30, sent: int = 9000, seconds: float = 4.0
) -> Facts:
    """A thread that serves requests, and asks a database meanwhile."""
    stay = waiting(7, 8, "recvfrom", own("price_list", 17), *THREAD, seconds=seconds)
    waits = (
        WaitSum(7, 8, "recvfrom", 0x1000, 5, 0, PEER, seconds, times, 0.01),
        WaitSum(7, 8, "recvfrom", 0x2000, 4, 0, CLIENT, 5.0, requests, 0.2),
    )
    return facts(stay)._replace(
        waits=waits,
        calls=(CallCount(7, "sendto", 0, sent),),
        sockets=LISTENERS,
        descriptors=DESCRIPTORS,
        processes=(Process(7, 1, "shop", PYTHON), Process(DB, 1, "redis-server", "/usr/bin/redis")),
    )


def test_a_question_for_each_row() -> None:
    text = said(find(asking()), "round-trips")
    assert (
        "asks redis-server at 127.0.0.1:6401 900 times a second in price_list (app.py:17)" in text
    )
    assert "0.4 ms each: 300 round trips for one request (N+1 queries)" in text


@pytest.mark.parametrize(
    "well",
    [
        asking(requests=3000),
        asking(sent=100),
        asking(times=900),
        asking(seconds=0.5),
        asking()._replace(descriptors={DB: {4: "socket:[50]"}}),
    ],
    ids=["few a request", "a stream of events", "few", "little time", "no service"],
)
def test_round_trips_that_are_well(well: Facts) -> None:
    assert said(find(well), "round-trips") == ""


# Requests that are held


def holding(share: float = 0.9, age_s: float = 0.2, **more: object) -> Facts:
    """An idle event loop, and four connections with a request on each."""
    held = tuple(Unanswered(60, share, age_s, "127.0.0.1", 40001 + n, PORT) for n in range(4))
    return facts(waiting(7, 7, "epoll_wait"))._replace(
        held=held,
        sockets=LISTENERS,
        descriptors=DESCRIPTORS,
        processes=(Process(7, 1, "shop", PYTHON),),
        **more,
    )


def test_requests_that_an_idle_loop_holds() -> None:
    text = said(find(holding()), "held")
    assert "answers late on port 8000: it holds 3.6 requests at a time, 200 ms old" in text


@pytest.mark.parametrize(
    "well",
    [
        holding(share=0.1),
        holding(age_s=0.03),
        holding(age_s=9.0),
        holding(threads=(ThreadTime(7, 7, 0.5, 20.0),)),
        holding(calls=(CallCount(7, "openat", 24, 900),)),
    ],
    ids=["few", "at once", "long polls", "no CPU is free", "descriptors are used up"],
)
def test_requests_that_are_not_held_by_a_loop(well: Facts) -> None:
    assert said(find(well), "held") == ""


# CPUs that a program may use


def wanting(allowed: tuple[int, ...], threads: int = 3, queued_s: float = 6.0) -> Facts:
    stays = [running(7, tid, native("render", "/srv/tiles")) for tid in range(8, 8 + threads)]
    times = tuple(ThreadTime(7, tid, 3.0, queued_s) for tid in range(8, 8 + threads))
    process = Process(7, 1, "tiles", "/srv/tiles", allowed=allowed)
    return facts(*stays)._replace(threads=times, processes=(process,))


def test_threads_that_share_one_of_two_cpus() -> None:
    text = said(find(wanting((1,))), "affinity")
    assert "may run on CPU 1 only (1 of 2; taskset or cpuset): 3 threads wait 1.80 s" in text
    assert "they run render" in text


@pytest.mark.parametrize(
    "well", [wanting(()), wanting((1,), threads=1), wanting((1,), queued_s=0.5)]
)
def test_programs_that_have_the_cpus_they_want(well: Facts) -> None:
    assert said(find(well), "affinity") == ""


# Programs that are started, timers, growth


def test_programs_that_threads_start_are_one_storm_of_their_process() -> None:
    starts = tuple(Start(7, f"pool-{n}", "df", is_fork=False, times=150) for n in range(2))
    measured = facts(waiting(7, 7, "epoll_wait"))._replace(starts=starts)
    (finding,) = (one for one in find(measured) if one.kind == "exec-storm")
    assert (finding.name, finding.pids) == ("app7", (7,))
    assert finding.text.startswith("starts 30 programs a second")


def looping(times: int, by_threads: int = 1) -> Facts:
    waits = tuple(
        WaitSum(7, 8 + n, "select", 0, -1, 0, Endpoint(), 8.0, times // by_threads, 0.001)
        for n in range(by_threads)
    )
    counts = (CallCount(7, "pselect6", 0, times),)
    return facts(waiting(7, 7, "epoll_wait"))._replace(waits=waits, calls=counts)


def test_a_timer_of_one_millisecond_wakes_a_loop_for_nothing() -> None:
    assert "its event loop wakes up 950 times a second" in said(find(looping(9500)), "wakeups")
    for well in (looping(5000), looping(9500, by_threads=10)):
        assert said(find(well), "wakeups") == ""


def growing(cpu_s: float, queued_s: float) -> Facts:
    process = Process(7, 1, "cc1", "/usr/lib/gcc/cc1", anon=tuple(range(0, 20 << 20, 2 << 20)))
    times = (ThreadTime(7, 7, cpu_s, queued_s),)
    return facts(waiting(7, 7, "epoll_wait"))._replace(processes=(process,), threads=times)


def test_memory_of_a_batch_job_grows_and_is_no_leak() -> None:
    assert "grows by" in said(find(growing(1.0, 0.5)), "growth")
    assert said(find(growing(6.0, 3.5)), "growth") == ""
