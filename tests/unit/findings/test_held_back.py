"""Answers that are held back between two ends, which both wait."""

from __future__ import annotations

from purebpf.findings.facts import Endpoint, Facts, Process, Socket, ThreadTime, WaitSum
from purebpf.findings.find import find
from tests.support.builders.facts import facts, native, waiting

EXE = "/srv/depth"


def ends(queued_s: float = 0.0) -> Facts:
    """A server that reads 9 of 10 seconds, and a client that waits 5 of them for its answers."""
    there = Endpoint("socket", "inet", "127.0.0.1", 40000, 8000, 61)
    back = Endpoint("socket", "inet", "127.0.0.1", 8000, 40000, 62)
    waits = (
        WaitSum(7, 7, "read", 4, 4, 0, there, 9.0, 100, 0.1),
        WaitSum(9, 9, "recvfrom", 3, 3, 0, back, 5.0, 100, 0.05),
    )
    return facts(waiting(7, 7, "recvfrom", native("serve", EXE)))._replace(
        waits=waits,
        sockets=(Socket(51, "tcp", "0.0.0.0", 8000, "", 0, 10),),
        descriptors={7: {3: "socket:[51]", 4: "socket:[61]"}, 9: {3: "socket:[62]"}},
        processes=(Process(7, 1, "depth", EXE), Process(9, 1, "client", "/srv/client")),
        threads=(ThreadTime(7, 7, 0.5, queued_s),),
    )


def delays(measured: Facts) -> list[str]:
    return [one.text for one in find(measured) if one.kind == "delayed-ack"]


def test_both_ends_wait() -> None:
    (text,) = delays(ends())
    assert text == "it and its clients wait for each other on port 8000: 40 ms each"


def test_a_server_that_waits_for_a_cpu_holds_nothing_back() -> None:
    assert delays(ends(queued_s=3.5)) == []
