"""Programs with one wait for all their connections, which ask one peer often for each request."""

from __future__ import annotations

import pytest

from purebpf.findings.facts import (
    CallCount,
    Endpoint,
    Facts,
    Process,
    Socket,
    Unanswered,
    WaitSum,
)
from purebpf.findings.find import find
from tests.support.builders.facts import facts, native, waiting

PORT, PEER_PORT, SHOP, CLIENT, PEER = 8000, 6401, 7, 9, 5
NODE = "/usr/bin/node"


def asking(asked: int, *, requests: int = 80, size: int = 70, peers: int = 1) -> Facts:
    """A shop in Node whose client waits, and the calls for its questions."""
    to_shop = Endpoint("socket", "inet", "127.0.0.1", PORT, 40001, 70)
    held = tuple(Unanswered(60 + n, 0.9, 0.3, "127.0.0.1", 40001 + n, PORT) for n in range(2))
    ports = [PEER_PORT + n for n in range(peers)]
    listeners = [Socket(50 + n, "tcp", "127.0.0.1", p, "", 0, 10) for n, p in enumerate(ports)]
    ends = [
        Socket(80 + n, "tcp", "127.0.0.1", 41000 + n, "127.0.0.1", p, 1)
        for n, p in enumerate(ports)
    ]
    links = {4 + n: f"socket:[{80 + n}]" for n in range(peers)}
    return facts(waiting(SHOP, SHOP, "epoll_wait"))._replace(
        held=held,
        waits=(WaitSum(CLIENT, CLIENT, "recvfrom", 3, 3, 0, to_shop, 9.0, requests, 0.4),),
        calls=(
            CallCount(SHOP, "write", 0, asked + requests, (asked + requests) * size, 4),
            CallCount(SHOP, "read", 0, asked + requests, (asked + requests) * 41, 4),
        ),
        sockets=(Socket(49, "tcp", "127.0.0.1", PORT, "", 0, 10), *listeners, *ends),
        descriptors={
            SHOP: {3: "socket:[49]", 20: "socket:[60]", 21: "socket:[61]", **links},
            PEER: {4 + n: f"socket:[{50 + n}]" for n in range(peers)},
            CLIENT: {3: "socket:[70]"},
        },
        processes=(
            Process(SHOP, 1, "node", NODE),
            Process(PEER, 1, "stock", "/srv/stock"),
            Process(CLIENT, 1, "client", "/srv/client"),
        ),
    )


def said(measured: Facts) -> str:
    return "; ".join("; ".join((one.text, *one.evidence)) for one in find(measured))


def test_an_event_loop_that_asks_sixty_times_for_a_request() -> None:
    text = said(asking(4800))
    assert "asks 127.0.0.1:6401 60 times for one request (N+1 queries, or retries)" in text
    assert "480 round trips a second; it holds 1.8 requests at a time" in text
    assert "its threads are idle" not in text  # the same requests


@pytest.mark.parametrize(
    "few",
    [asking(400), asking(4800, size=9000), asking(4800, peers=2), asking(4800, requests=0)],
    ids=["five questions each", "parts of a page", "two peers", "requests are not known"],
)
def test_others_are_not_said_to_ask_often(few: Facts) -> None:
    assert "times for one request" not in said(few)


def test_many_questions_are_no_storm_of_small_reads() -> None:
    text = said(asking(90_000))
    assert "asks 127.0.0.1:6401 1125 times for one request" in text
    assert "read calls a second" not in text
    assert "makes 9008 read calls a second of 41 bytes" in said(asking(90_000)._replace(held=()))


@pytest.mark.parametrize(("seconds", "is_blocked"), [(1.7, False), (8.0, True)])
def test_a_loop_that_is_hardly_blocked_has_another_reason(
    seconds: float, *, is_blocked: bool
) -> None:
    """Other work keeps a thread of its runtime from giving back a mutex for some milliseconds."""
    measured = asking(400)
    frames = (native("pthread_cond_wait"), native("TaskQueue::Push", NODE))
    loop = (native("uv__io_poll", NODE), native("uv_run", NODE))
    wait = waiting(SHOP, SHOP, "futex", *frames, *loop, seconds=seconds, times=300)
    text = said(measured._replace(activities=(*measured.activities, wait)))
    assert ("answers late on port 8000" in text) is not is_blocked


def connecting(connects: int, *, names: int = 1) -> Facts:
    """A worker that asks 300 times for each of ten requests, by a new unix socket each time."""
    waits = [
        WaitSum(SHOP, SHOP, "poll", 0x1000 + n, 6, 0, Endpoint("socket", "other", inode=n), *more)
        for n, more in ((31, (4.0, 3000, 0.01)), (33, (0.1, 10, 0.02)))
    ]
    stays = [
        waiting(SHOP, SHOP, "epoll_wait", native("fgets"), argument=0x1000 + 33 + n)._replace(
            call="poll"
        )
        for n in range(names)
    ]
    sums = [
        WaitSum(
            *(SHOP, SHOP, "poll", 0x1000 + 33 + n, 6, 0),
            *(Endpoint("socket", "other", inode=33 + 2 * n), 0.5, 1, 0.5),
        )
        for n in range(names)
    ]
    return facts(*stays)._replace(
        waits=(*waits, *sums),
        calls=(
            CallCount(SHOP, "accept", 0, 10),
            CallCount(SHOP, "connect", 0, connects),
            CallCount(SHOP, "sendto", 0, 3000),
        ),
        sockets=(Socket(49, "tcp", "127.0.0.1", PORT, "", 0, 10),),
        descriptors={SHOP: {3: "socket:[49]", 6: "socket:[33]"}, PEER: {7: "socket:[34]"}},
        unix_peers={33: 34, 34: 33, 35: 36, 36: 35},
        unix_names={34: "/run/redis.sock", 36: "/run/other.sock"},
        processes=(
            Process(SHOP, 1, "php-fpm8.2", "/usr/sbin/php-fpm8.2"),
            Process(PEER, 1, "redis-server", "/usr/bin/redis-server"),
        ),
    )


def test_a_worker_that_connects_for_each_request_is_known_by_one_of_its_connections() -> None:
    text = said(connecting(10))
    assert "asks redis-server at redis.sock 301 times for one request (N+1 queries)" in text


@pytest.mark.parametrize(
    "unknown", [connecting(2), connecting(10, names=2)], ids=["others connect to it", "two peers"]
)
def test_connections_that_may_lead_elsewhere_are_not_counted(unknown: Facts) -> None:
    assert "times for one request" not in said(unknown)
