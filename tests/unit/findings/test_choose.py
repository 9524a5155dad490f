"""Findings that explain each other."""

from __future__ import annotations

from purebpf.findings.facts import (
    Connect,
    Endpoint,
    Facts,
    Process,
    Socket,
    ThreadTime,
    Unanswered,
    WaitSum,
)
from purebpf.findings.find import find
from tests.support.builders.facts import (
    LOCKING,
    PYTHON,
    THREAD,
    facts,
    library,
    own,
    running,
    waiting,
)

FRAMEWORK = library("Handler.handle", "/v/lib/python3.11/site-packages/web/server.py")


def serving(*, threads: int) -> Facts:
    """One thread waits for an answer, others for the connection that it has."""
    asking = waiting(7, 8, "recvfrom", own("query", 4), FRAMEWORK, *THREAD, argument=3)
    queue = library("Queue.get", "/usr/lib/python3.11/queue.py")
    rest = [
        waiting(7, tid, "futex", *LOCKING, queue, own("get_connection", 9), FRAMEWORK, *THREAD)
        for tid in range(20, 20 + threads)
    ]
    peer = Endpoint("socket", "inet", "10.0.0.9", 5432, 40000, 5)
    sums = (WaitSum(7, 8, "recvfrom", 3, 3, 0, peer, 9.0, 60, 0.15),)
    return facts(asking, *rest, waits=sums)


def test_threads_that_wait_for_a_pool_are_named_beside_the_slow_answer() -> None:
    (finding,) = find(serving(threads=6))
    assert finding.kind == "downstream"
    assert finding.evidence[0].startswith("meanwhile, 6 threads wait for a permit or a free member")
    assert "get_connection (app.py:9)" in finding.evidence[0]


def test_a_single_one_is_no_news() -> None:
    (finding,) = find(serving(threads=1))
    assert "meanwhile" not in finding.evidence[0]


def test_connections_that_are_closed_belong_to_the_program_that_connected() -> None:
    proxy = Process(7, 1, "proxy", "/usr/sbin/proxy")
    ended = tuple(
        Unanswered(inode, 0.2, 0.3, "10.0.0.9", 8080, 40_000 + inode) for inode in range(1, 8)
    )
    measured = Facts(
        *(10.0, 2),
        processes=(proxy, Process(8, 1, "other")),
        connects=(Connect(7, 0, "10.0.0.9", 8080, 7),),
        unanswered=ended,
    )
    (finding,) = find(measured)
    assert (finding.kind, finding.pids) == ("downstream", (7,))
    assert "waits for answers of 10.0.0.9:8080: 7 connections" in finding.text
    two = (*measured.connects, Connect(8, 0, "10.0.0.9", 8080, 7))
    assert find(measured._replace(connects=two)) == []


def test_clients_of_a_starved_server_are_lost_to_its_sharper_finding() -> None:
    waits = [
        waiting(7, tid, "futex", *LOCKING, own("reserve", 22), *THREAD, seconds=6.0)
        for tid in range(9, 13)
    ]
    hog = running(9, 9, own("crunch", 4, "/srv/batch/job.py"), seconds=15.0)
    ask = waiting(5, 5, "recvfrom", own("ask"), FRAMEWORK, argument=3)
    client = Endpoint("socket", "inet", "127.0.0.1", 8080, 40000, 5)
    measured = facts(*waits, hog, ask)._replace(
        processes=(
            Process(5, 1, "client", "/srv/client"),
            Process(7, 1, "shop", PYTHON, "python3 shop.py"),
            Process(9, 1, "batch", PYTHON, "python3 job.py"),
        ),
        threads=(ThreadTime(7, 9, 0.5, 30.0), ThreadTime(9, 9, 15.0, 0.0)),
        waits=(WaitSum(5, 5, "recvfrom", 3, 3, 0, client, 9.0, 30, 0.3),),
        sockets=(Socket(55, "tcp", "127.0.0.1", 8080, "", 0, 10),),
        descriptors={7: {4: "socket:[55]"}},
    )
    found = {one.kind: one for one in find(measured)}
    assert [loss.pid for loss in found["lock-convoy"].lost_by] == [5]
    assert found["run-queue"].lost_by == ()


def test_a_client_that_asks_in_two_functions_is_told_once() -> None:
    waits = [
        waiting(7, tid, "futex", *LOCKING, own("reserve", 22), *THREAD, seconds=6.0)
        for tid in range(9, 13)
    ]
    asks = [
        waiting(5, 5, "recvfrom", own("ask", 3), FRAMEWORK, argument=3, seconds=6.0),
        waiting(5, 6, "recvfrom", own("check", 9), FRAMEWORK, argument=3, seconds=3.0),
    ]
    client = Endpoint("socket", "inet", "127.0.0.1", 8080, 40000, 5)
    measured = facts(*waits, *asks)._replace(
        processes=(
            Process(5, 1, "client", "/srv/client"),
            Process(7, 1, "shop", PYTHON, "python3 shop.py"),
        ),
        waits=(
            WaitSum(5, 5, "recvfrom", 3, 3, 0, client, 6.0, 20, 0.3),
            WaitSum(5, 6, "recvfrom", 3, 3, 0, client, 3.0, 10, 0.3),
        ),
        sockets=(Socket(55, "tcp", "127.0.0.1", 8080, "", 0, 10),),
        descriptors={7: {4: "socket:[55]"}},
    )
    (finding,) = find(measured)
    (loss,) = finding.lost_by
    assert (loss.pid, round(loss.cost, 1)) == (5, 0.9)


def handing_over(peers: dict[int, int]) -> Facts:
    """A client that waits for a server, whose child computes what it is told through a socket."""
    ask = waiting(5, 5, "recvfrom", own("ask"), FRAMEWORK, argument=3)
    hash_ = running(9, 9, own("hash_secret", 4, "/srv/login/hasher.py"), seconds=9.0)
    client = Endpoint("socket", "inet", "127.0.0.1", 8080, 40000, 5)
    return facts(ask, hash_)._replace(
        processes=(
            Process(5, 1, "client", "/srv/client"),
            Process(7, 1, "login", PYTHON, "python3 login.py"),
            Process(9, 7, "login", PYTHON, "python3 hasher.py"),
        ),
        waits=(WaitSum(5, 5, "recvfrom", 3, 3, 0, client, 9.0, 30, 0.3),),
        sockets=(Socket(55, "tcp", "127.0.0.1", 8080, "", 0, 10),),
        descriptors={7: {4: "socket:[55]", 9: "socket:[31]"}, 9: {8: "socket:[32]"}},
        unix_peers=peers,
    )


def test_a_client_is_lost_to_the_child_that_its_server_gives_the_work_to() -> None:
    (finding,) = find(handing_over({31: 32, 32: 31}))
    assert (finding.kind, finding.pid) == ("cpu", 9)
    assert [loss.pid for loss in finding.lost_by] == [5]
    assert {one.pid: one.lost_by for one in find(handing_over({}))}[9] == ()


def sleeping_members(*, threads: int) -> Facts:
    """Two threads sleep with members of a pool, for which others wait."""
    queue = library("Queue.get", "/usr/lib/python3.11/queue.py")
    asleep = [
        waiting(7, tid, "clock_nanosleep", own("print_page", 5), FRAMEWORK, *THREAD)
        for tid in (8, 9)
    ]
    rest = [
        waiting(7, tid, "futex", *LOCKING, queue, own("get_connection", 9), FRAMEWORK, *THREAD)
        for tid in range(20, 20 + threads)
    ]
    return facts(*asleep, *rest)


def test_threads_that_wait_for_those_who_sleep_are_named_beside_them() -> None:
    (finding,) = find(sleeping_members(threads=6))
    assert finding.kind == "loop-blocked"
    assert finding.evidence[0].startswith("meanwhile, 6 threads wait for a permit or a free member")
    (finding,) = find(sleeping_members(threads=1))
    assert "meanwhile" not in " ".join(finding.evidence)


def proxied(peer_of_client: int) -> Facts:
    """A client waits for a proxy, which waits for a server whose function sleeps."""
    asleep = waiting(7, 7, "clock_nanosleep", own("check", 5), FRAMEWORK, *THREAD)
    forwards = waiting(5, 5, "recvfrom", own("forward"), FRAMEWORK, argument=3)
    asks = waiting(3, 3, "recvfrom", own("ask"), FRAMEWORK, argument=3)
    inner = Endpoint("socket", "inet", "127.0.0.1", 9000, 40001, 5)
    outer = Endpoint("socket", "inet", "127.0.0.1", peer_of_client, 40002, 6)
    return facts(asleep, forwards, asks)._replace(
        processes=(
            Process(3, 1, "client", "/srv/client"),
            Process(5, 1, "proxy", "/srv/proxy"),
            Process(7, 1, "auth", PYTHON, "python3 auth.py"),
        ),
        waits=(
            WaitSum(5, 5, "recvfrom", 3, 3, 0, inner, 9.0, 30, 0.3),
            WaitSum(3, 3, "recvfrom", 3, 3, 0, outer, 9.0, 30, 0.3),
        ),
        sockets=(
            Socket(55, "tcp", "127.0.0.1", 9000, "", 0, 10),
            Socket(56, "tcp", "127.0.0.1", 8000, "", 0, 10),
        ),
        descriptors={7: {4: "socket:[55]"}, 5: {4: "socket:[56]"}},
    )


def test_clients_of_a_proxy_lose_their_time_to_the_server_behind_it_once() -> None:
    (finding,) = find(proxied(8000))
    assert finding.text.startswith("check (app.py:5) sleeps")
    assert [loss.pid for loss in finding.lost_by] == [5, 3]
    assert round(finding.cost, 1) == 0.9
    assert len(find(proxied(7777))) == 2


def test_memory_of_a_proxy_that_grows_does_not_explain_the_waits_of_its_clients() -> None:
    measured = proxied(8000)
    client, proxy, server = measured.processes
    grows = proxy._replace(anon=tuple(range(0, 20 << 20, 2 << 20)))
    found = find(measured._replace(processes=(client, grows, server)))
    assert [one.kind for one in found] == ["loop-blocked", "growth"]
    assert [loss.pid for loss in found[0].lost_by] == [5, 3]
    assert found[1].lost_by == ()
