"""Findings that concern some processes: they are its subject, or lose by it."""

from __future__ import annotations

from purebpf.findings.facts import Endpoint, Facts, Process, Socket, WaitSum
from purebpf.findings.find import find, find_about
from tests.support.builders.facts import PYTHON, THREAD, facts, native, own, running, waiting

SERVER, CLIENT, STRANGER, PORT, LISTEN = 3, 7, 99, 6401, 10


def slow_server() -> Facts:
    """A server that sleeps, a client that loses by it, and a stranger who is busy."""
    peer = Endpoint("socket", "inet", "127.0.0.1", PORT, 40000, 31)
    sleep = waiting(SERVER, SERVER, "clock_nanosleep", native("answer", "/srv/gate"))
    ask = waiting(CLIENT, CLIENT, "recvfrom", own("fetch", 17), *THREAD)
    busy = running(STRANGER, STRANGER, seconds=9.0, comm="batch")
    return facts(ask, sleep, busy)._replace(
        waits=(WaitSum(CLIENT, CLIENT, "recvfrom", 0x1000, 5, 0, peer, 9.0, 11, 0.9),),
        sockets=(Socket(50, "tcp", "127.0.0.1", PORT, "", 0, LISTEN),),
        descriptors={SERVER: {4: "socket:[50]"}},
        processes=(
            Process(CLIENT, 1, "shop", PYTHON),
            Process(SERVER, 1, "gate", "/srv/gate"),
            Process(STRANGER, 1, "batch", PYTHON),
        ),
    )


def test_a_client_sees_the_finding_about_its_server() -> None:
    (finding,) = [one for one in find(slow_server()) if not one.is_busy]
    assert (finding.pids, [loss.pid for loss in finding.lost_by]) == ((SERVER,), [CLIENT])
    assert find_about(slow_server(), {CLIENT}) == ([finding], 0)
    assert find_about(slow_server(), {SERVER}) == ([finding], 0)


def test_findings_about_others_are_counted_and_busy_programs_are_not() -> None:
    found, others = find_about(slow_server(), {STRANGER})
    assert [(one.kind, one.is_busy) for one in found] == [("cpu", True)]
    assert others == 1
    assert find_about(slow_server(), {12345}) == ([], 1)


def test_the_limit_is_one_of_the_findings_that_are_shown() -> None:
    found, others = find_about(slow_server(), {STRANGER}, most=1)
    assert ([one.pids for one in found], others) == ([(STRANGER,)], 1)
