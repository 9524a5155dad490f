"""Waits behind an event loop: of the threads of its pool, and for servers that do not read."""

from __future__ import annotations

from purebpf.findings.facts import (
    Activity,
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
from tests.support.builders.facts import facts, library, own, waiting

PORT, DB_PORT, DB = 8000, 6401, 5
LISTENERS = (
    Socket(50, "tcp", "127.0.0.1", DB_PORT, "0.0.0.0", 0, 10),
    Socket(51, "tcp", "127.0.0.1", PORT, "0.0.0.0", 0, 10),
)
NODE = "/usr/bin/node"


def said(measured: Facts, kind: str) -> str:
    found = (one for one in find(measured) if one.kind == kind)
    return "; ".join("; ".join((one.text, *one.evidence)) for one in found)


# Threads of a pool


def reading(*stack: StackFrame) -> Facts:
    """Four threads of a pool that read named pipes for an event loop."""
    kernel = ("anon_pipe_read", "fifo_pipe_read", "vfs_read")
    waits = tuple(
        Activity(7, 20 + n, "node", "wait", "S", 9.0, kernel, stack, "read", 9) for n in range(4)
    )
    held = tuple(Unanswered(60, 0.9, 0.2, "127.0.0.1", 40001 + n, PORT) for n in range(4))
    return facts(waiting(7, 7, "epoll_wait"), *waits)._replace(
        held=held,
        sockets=LISTENERS,
        descriptors={7: {3: "socket:[51]", 6: "socket:[60]", 9: "/run/feed.fifo"}},
        processes=(Process(7, 1, "node", NODE),),
    )


def test_requests_that_wait_for_the_pool_of_an_event_loop() -> None:
    pool = (StackFrame("uv__fs_work", NODE), StackFrame("worker", NODE))
    text = said(reading(*pool), "held")
    assert "4 threads wait in its pool: each waits to read a pipe" in text
    assert "(/run/feed.fifo)" in text
    assert "pool" not in said(reading(StackFrame("worker", NODE)), "held")


def test_a_client_of_such_an_event_loop() -> None:
    """On a busy machine, held requests tell nothing: the client's finding has the pool."""
    pool = (StackFrame("uv__fs_work", NODE), StackFrame("worker", NODE))
    served = reading(*pool)
    end = Endpoint("socket", "inet", "127.0.0.1", PORT, 40001, 30)
    client = waiting(9, 9, "recvfrom", own("fetch", 4), argument=3)
    text = said(
        served._replace(
            held=(),
            activities=(*served.activities, client),
            waits=(WaitSum(9, 9, "recvfrom", 3, 3, 0, end, 9.0, 18, 0.6),),
            processes=(*served.processes, Process(9, 1, "shop", "/usr/bin/python3.11")),
        ),
        "downstream",
    )
    assert "the peer is node (7); 4 threads wait in its pool: each waits to read a pipe" in text


# Servers that do not read


def stalling(share: float = 0.9, *activities: Activity, port: int = DB_PORT) -> Facts:
    """A server whose connection to another one is full, and which that one hardly reads."""
    links = {DB: {4: "socket:[50]", 5: "socket:[62]"}, 7: {3: "socket:[51]", 8: "socket:[61]"}}
    ours = Socket(61, "tcp", "127.0.0.1", 40000, "127.0.0.1", port, 1)
    theirs = Socket(62, "tcp", "127.0.0.1", port, "127.0.0.1", 40000, 1)
    slow = waiting(DB, DB, "clock_nanosleep", own("collect", 9))
    return facts(waiting(7, 7, "epoll_wait"), slow, *activities)._replace(
        stalled=(Unanswered(61, share, 0.0, "127.0.0.1", port, 40000),),
        sockets=(*LISTENERS, ours, theirs),
        descriptors=links,
    )


def test_a_server_whose_events_nobody_reads() -> None:
    text = said(stalling(), "full-pipe")
    assert "its connection to 127.0.0.1:6401 is full 90 % of the time" in text
    assert f"read too slowly by app{DB} ({DB}), which sleeps in collect (app.py:9)" in text
    drain = library("StreamWriter.drain", "/usr/lib/python3.11/asyncio/streams.py")
    group = Goroutines(7, (drain, own("send_event", 7), own("serve", 16)), (8, 8))
    text = said(stalling()._replace(goroutines=(group,)), "full-pipe")
    assert "8 coroutines wait to write in send_event (app.py:7)" in text


def test_readers_that_are_slow_now_and_then_and_those_of_a_server() -> None:
    assert said(stalling(0.3), "full-pipe") == ""
    assert said(stalling(port=55000), "full-pipe") == ""
    theirs = Unanswered(61, 0.9, 0.0, "127.0.0.1", 40000, DB_PORT)
    assert said(stalling()._replace(stalled=(theirs,)), "full-pipe") == ""
