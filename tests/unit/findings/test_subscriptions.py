"""Clients of brokers that wait for something to do, and clients that wait for answers."""

from __future__ import annotations

import pytest

from purebpf.findings.evidence import Evidence
from purebpf.findings.facts import Blocked, Endpoint, Facts, Process, Socket, WaitSum
from purebpf.findings.find import find
from tests.support.builders.facts import PYTHON, THREAD, facts, library, own, waiting

PORT, DB = 6401, 5
PEER = Endpoint("socket", "inet", "127.0.0.1", PORT, 40000, 9)
FRAMEWORK = library("Flask.dispatch", "/v/lib/python3.11/site-packages/flask/app.py")


def measured(
    *stack: object,
    server: str = "redis-server",
    state: str = "S",
    idle_s: float = 9.0,
    times: int = 6,
    peer: Endpoint = PEER,
    listens: bool = True,
) -> Facts:
    """A thread that waits for a server which waits for requests itself."""
    client = waiting(7, 8, "recvfrom", *stack, seconds=9.5)  # type: ignore[arg-type]
    idle = waiting(DB, DB, "epoll_wait", seconds=idle_s)
    reasons = (WaitSum(7, 8, "recvfrom", 0x1000, 3, 0, peer, 9.5, times, 2.0),) if times else ()
    listener = Socket(50, "tcp", "127.0.0.1", PORT, "0.0.0.0", 0, 10)
    return facts(client, idle)._replace(
        waits=reasons,
        sockets=(listener,) if listens else (),
        descriptors={DB: {4: "socket:[50]"}} if listens else {},
        processes=(
            Process(7, 1, "worker", PYTHON),
            Process(DB, 1, server, "/usr/bin/redis-server", state=state),
        ),
    )


def kinds(facts_: Facts) -> list[str]:
    return [finding.kind for finding in find(facts_)]


TAKE = (own("take_job"), *THREAD)


def test_a_consumer_waits_for_its_next_job() -> None:
    assert kinds(measured(*TAKE)) == []


@pytest.mark.parametrize(
    "changed",
    [{"server": "shop"}, {"state": "T"}, {"idle_s": 1.0}],
    ids=["no broker", "stopped", "busy"],
)
def test_others_owe_an_answer(changed: dict[str, object]) -> None:
    found = kinds(measured(*TAKE, **changed))  # type: ignore[arg-type]
    assert {"downstream", "stopped"} & {*found}


def test_a_request_that_asks_a_broker_waits_for_an_answer() -> None:
    assert "downstream" in kinds(measured(own("ask_stock"), FRAMEWORK, *THREAD))


def test_a_broker_on_another_host_is_known_by_its_port() -> None:
    there = PEER._replace(address="10.0.0.7")
    assert kinds(measured(*TAKE, peer=there._replace(port=5672), listens=False)) == []
    assert "downstream" in kinds(measured(*TAKE, peer=there._replace(port=80), listens=False))


def lasting(*stack: object) -> Facts:
    """A wait that began before the measurement, and goes on after it."""
    before = measured(*stack, server="shop", times=0)
    connection = Socket(9, "tcp", "127.0.0.1", 40000, "127.0.0.1", PORT, 1)
    still = tuple(one._replace(seconds=10.0) for one in before.activities)
    return before._replace(
        activities=still,
        blocked=(Blocked(7, 8, "recvfrom", (3,), fd=3),),
        sockets=(*before.sockets, connection),
        descriptors={**before.descriptors, 7: {3: "socket:[9]"}},
    )


def test_a_wait_that_lasts_all_the_time_is_idle_where_no_framework_called() -> None:
    stay = next(one for one in Evidence(lasting(*TAKE)).stays if one.pid == 7)
    assert (stay.is_open, stay.is_work) == (True, True)
    assert kinds(lasting(*TAKE)) == []
    assert "downstream" in kinds(lasting(own("ask_stock"), FRAMEWORK, *THREAD))
