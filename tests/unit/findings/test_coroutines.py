"""Rules about coroutines of Python, whose waits are no waits of threads."""

from __future__ import annotations

import pytest

from purebpf.findings.facts import Endpoint, Facts, Goroutines, Process, Socket, Unanswered, WaitSum
from purebpf.findings.find import find
from tests.support.builders.facts import PYTHON, facts, library, native, own, waiting

PORT = 8000
LISTENER = Socket(51, "tcp", "127.0.0.1", PORT, "0.0.0.0", 0, 10)
ACQUIRE = (
    library("Lock.acquire", "/usr/lib/python3.11/asyncio/locks.py"),
    library("_ContextManagerMixin.__aenter__", "/usr/lib/python3.11/asyncio/locks.py"),
)
PERMIT = (library("Semaphore.acquire", "/usr/lib/python3.11/asyncio/locks.py"), *ACQUIRE[1:])
READ = (library("StreamReader.read", "/usr/lib/python3.11/asyncio/streams.py"),)
SLEEP = (library("sleep", "/usr/lib/python3.11/asyncio/tasks.py"),)
PUT = (library("Queue.put", "/usr/lib/python3.11/asyncio/queues.py"),)
GET = (library("Queue.get", "/usr/lib/python3.11/asyncio/queues.py"),)
POOL = (
    library("Event.wait", "/usr/lib/python3.11/asyncio/locks.py"),
    library("AsyncPoolRequest.wait_for_connection", "/v/site-packages/httpcore/pool.py"),
)
SQLALCHEMY = (
    *GET,
    library("wait_for", "/usr/lib/python3.11/asyncio/compat.py"),
    library("greenlet_spawn", "/v/lib/python3.11/site-packages/sqlalchemy/util/concurrency.py"),
    library("AsyncConnection.start", "/v/lib/python3.11/site-packages/sqlalchemy/engine.py"),
)
UVICORN = (library("run_asgi", "/v/lib/python3.11/site-packages/uvicorn/h11_impl.py"),)
HANDLER = (own("handle", 20),)


def group(*stack: object, counts: tuple[int, ...] = (5, 6, 5)) -> Goroutines:
    return Goroutines(7, stack, counts)  # type: ignore[arg-type]


def measured(*groups: Goroutines, **more: object) -> Facts:
    """A server whose only thread waits for events."""
    idle = waiting(7, 7, "epoll_wait", native("epoll_wait"), own("main", 1))
    moving = WaitSum(7, 7, "epoll_wait", 4, -1, 0, Endpoint(), 9.0, 500, 0.1)
    return facts(idle)._replace(
        goroutines=groups,
        sockets=(LISTENER,),
        descriptors={7: {3: "socket:[51]", 6: "socket:[60]"}},
        processes=(Process(7, 1, "shop", PYTHON),),
        waits=(moving,),
        **more,
    )


def said(facts: Facts) -> str:
    return "; ".join("; ".join((one.text, *one.evidence)) for one in find(facts))


def test_coroutines_queue_for_a_lock_that_is_held_over_a_request() -> None:
    holder = group(*READ, own("ask_bank", 9), *HANDLER, counts=(1, 1, 1))
    (finding,) = find(measured(group(*ACQUIRE, *HANDLER), holder))
    assert "6 coroutines wait for the lock that handle (app.py:20) takes" in finding.text
    assert finding.evidence[0] == (
        "its holder waits for an answer in ask_bank (app.py:9) (100 % of that time)"
    )
    assert finding.command == ("dump", "--async", "7")


def test_coroutines_queue_for_permits() -> None:
    holders = group(*READ, own("ask_bank", 9), *HANDLER, counts=(2, 2, 2))
    text = said(measured(group(*PERMIT, *HANDLER), holders))
    assert "6 coroutines wait for a permit or a free member of a pool in handle" in text
    assert "who has one waits for an answer in ask_bank (app.py:9)" in text


@pytest.mark.parametrize(
    ("stack", "words"),
    [
        (POOL, "6 coroutines wait for a connection of a pool in handle (app.py:20)"),
        (SQLALCHEMY, "6 coroutines wait for a connection of a pool in handle (app.py:20)"),
        (PUT, "6 coroutines wait to send to a channel in handle (app.py:20)"),
    ],
)
def test_coroutines_of_requests_that_wait(stack: tuple[object, ...], words: str) -> None:
    assert words in said(measured(group(*stack, *HANDLER)))


def test_coroutines_that_have_a_connection_and_the_server_of_the_pool() -> None:
    """The file of psycopg's pool says what they wait for, and a socket whom the others ask."""
    users = group(*READ, own("read_orders", 24), *HANDLER, counts=(2, 2, 2))
    known = measured(group(*POOL, *HANDLER), users)
    links = {7: {**known.descriptors[7], 9: "socket:[61]"}}
    sockets = (LISTENER, Socket(61, "tcp", "127.0.0.1", 40000, "127.0.0.1", 5432, 1))
    text = said(known._replace(descriptors=links, sockets=sockets))
    assert "who has one waits for an answer in read_orders (app.py:24)" in text
    assert "its connections lead to 127.0.0.1:5432" in text
    assert "all of its connections are in use" not in text


def test_names_that_threads_look_up_for_coroutines() -> None:
    """The executor of asyncio asks the name server: a coroutine is the one who wants to know."""
    resolve = (library("BaseEventLoop.getaddrinfo", "/usr/lib/python3.11/asyncio/base_events.py"),)
    known = measured(group(*resolve, own("fetch_rate", 13), *HANDLER))
    server = Endpoint("socket", "inet", "10.0.0.53", 53, 40000, 61)
    asking = waiting(
        7, 9, "recvfrom", native("__res_context_send"), native("getaddrinfo"), argument=9
    )
    ends = WaitSum(7, 9, "recvfrom", 9, 9, 0, server, 9.0, 20, 0.6)
    known = known._replace(activities=(*known.activities, asking), waits=(*known.waits, ends))
    assert "waits for DNS in fetch_rate (app.py:13): 450 ms each" in said(known)


@pytest.mark.parametrize(
    "group",
    [
        group(*SLEEP, own("every_minute", 4), own("main", 1)),
        group(*SLEEP, own("every_minute", 4), *UVICORN),
        group(*GET, own("consume", 4), *UVICORN),
        group(*READ, *HANDLER),
        group(*READ, own("ask_bank", 9), *HANDLER, *UVICORN),
        group(*ACQUIRE, *HANDLER, counts=(1, 0, 0)),
    ],
    ids=["timer", "timer of a library", "queue", "next request", "answers", "a lock, for a moment"],
)
def test_coroutines_that_are_well(group: Goroutines) -> None:
    assert said(measured(group)) == ""


def test_requests_are_held_by_a_coroutine() -> None:
    held = tuple(Unanswered(60, 0.9, 0.2, "127.0.0.1", 40001 + n, PORT) for n in range(4))
    text = said(measured(group(*SLEEP, own("throttle", 4), *HANDLER), held=held))
    assert "its threads are idle; a request's coroutine sleeps in throttle (app.py:4)" in text


def test_held_requests_do_not_hide_what_their_coroutines_wait_for() -> None:
    held = tuple(Unanswered(60, 0.9, 0.2, "127.0.0.1", 40001 + n, PORT) for n in range(4))
    (finding,) = find(measured(group(*PUT, *HANDLER), held=held))
    assert "6 coroutines wait to send to a channel in handle (app.py:20)" in finding.text


def test_tasks_that_do_not_end() -> None:
    text = said(measured(group(*SLEEP, own("poll_forever", 4), counts=(100, 500, 900))))
    assert "starts 80 coroutines a second that do not end: 900 wait in poll_forever" in text
