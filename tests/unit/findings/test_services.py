"""Services that ask too often, hold requests, or may not use the CPUs, and ones that are well."""

from __future__ import annotations

import pytest

from purebpf.findings.facts import (
    CallCount,
    Endpoint,
    Facts,
    Process,
    Socket,
    StackFrame,
    Start,
    ThreadTime,
    Unanswered,
    WaitSum,
)
from purebpf.findings.find import find
from purebpf.findings.finding import Finding
from tests.support.builders.facts import (
    PYTHON,
    THREAD,
    facts,
    library,
    native,
    own,
    running,
    waiting,
)

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
    assert "asks redis-server at 127.0.0.1:6401 300 times for one request (N+1 queries)" in text
    assert "by price_list (app.py:17); 900 round trips a second, 0.4 ms each" in text


def test_slow_questions_are_fewer() -> None:
    text = said(find(asking(times=700, requests=7, seconds=6.0)), "round-trips")
    assert "asks redis-server at 127.0.0.1:6401 100 times for one request" in text
    assert said(find(asking(times=400, requests=7, seconds=6.0)), "round-trips") == ""


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


def scripted(times: int = 90_000, exe: str = PYTHON) -> Facts:
    """A batch job that asks an object of another process by a unix socket."""
    end = Endpoint("socket", "other", inode=31)
    stay = waiting(7, 7, "recvfrom", own("price", 5), own("<module>", 9), seconds=6.0)
    return facts(stay)._replace(
        waits=(WaitSum(7, 7, "recvfrom", 0x1000, 5, 0, end, 6.0, times, 0.01),),
        calls=(CallCount(7, "write", 0, times),),
        descriptors={7: {5: "socket:[31]"}, 9: {8: "socket:[32]"}},
        unix_peers={31: 32, 32: 31},
        unix_names={32: "/tmp/listener-x"},
        processes=(Process(7, 1, "job", exe), Process(9, 1, "manager", PYTHON)),
    )


def test_a_script_asks_thousands_of_questions_a_second() -> None:
    text = said(find(scripted()), "round-trips")
    assert "asks manager at listener-x 9000 times a second, one question after the other" in text
    assert "by price (app.py:5)" in text


@pytest.mark.parametrize("well", [scripted(9000), scripted(exe="/usr/bin/pgbench")])
def test_programs_that_may_ask_often(well: Facts) -> None:
    """Hundreds a second are nothing for a batch job, and a load test has nothing else to do."""
    assert said(find(well), "round-trips") == ""


def test_requests_are_counted_by_the_clients_that_wait_for_them() -> None:
    """An event loop that takes requests of open connections accepts none, and reads from none."""
    measured = asking()
    client = Endpoint("socket", "inet", "127.0.0.1", PORT, 40000, 60)
    waits = (measured.waits[0], WaitSum(8, 8, "poll", 0x1000, 5, 0, client, 9.0, 30, 0.3))
    text = said(find(measured._replace(waits=waits)), "round-trips")
    assert "300 times for one request" in text
    assert said(find(measured._replace(waits=waits[:1])), "round-trips") == ""


def polling(long_fd: int = 5) -> Facts:
    """A client that polls before it reads; only waits of 0.5 ms and more have a peer."""
    measured = asking()
    short = WaitSum(7, 8, "poll", 0x1000, 5, 0, Endpoint(), 2.0, 8900, 0.0005)
    long = WaitSum(7, 8, "poll", 0x1000, long_fd, 0, PEER, 0.5, 100, 0.01)
    return measured._replace(waits=(short, long, measured.waits[1]))


def test_short_polls_are_for_the_peer_of_the_longer_ones() -> None:
    text = said(find(polling()), "round-trips")
    assert "asks redis-server at 127.0.0.1:6401 300 times" in text
    assert said(find(polling(long_fd=9)), "round-trips") == ""


def test_fast_answers_cost_their_calls() -> None:
    assert "1800 round trips" in said(find(asking(18000, sent=18000, seconds=1.1)), "round-trips")


def transferring(size: int, fd: int) -> Facts:
    """A server of the database's port, and its 9,000 calls a second."""
    times = 90_000
    count = CallCount(DB, "read", 0, times, times * size, fd)
    links = {DB: {4: "socket:[50]", 9: "socket:[61]", 8: "/srv/table"}}
    client = Socket(61, "tcp", "127.0.0.1", DB_PORT, "127.0.0.1", 40000, 1)
    return facts(waiting(DB, DB, "epoll_wait"))._replace(
        calls=(count,), sockets=(*LISTENERS, client), descriptors=links
    )


def test_short_requests_are_no_small_reads() -> None:
    assert "read calls a second of 14 bytes" in said(find(transferring(14, 8)), "small-calls")
    assert "read calls a second of 1 bytes" in said(find(transferring(1, 9)), "small-calls")
    assert said(find(transferring(14, 9)), "small-calls") == ""


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


def test_requests_that_a_broker_holds_until_there_is_a_job() -> None:
    broker = Process(7, 1, "redis-server", "/usr/bin/redis-server")
    assert said(find(holding(age_s=1.7)._replace(processes=(broker,))), "held") == ""


def test_requests_that_wait_for_their_turn_to_ask_another_service() -> None:
    asked = Unanswered(61, 0.9, 0.05, "127.0.0.1", DB_PORT, 40000)
    links = {DB: {4: "socket:[50]"}, 7: {3: "socket:[51]", 6: "socket:[60]", 8: "socket:[61]"}}
    many = holding(unanswered=(asked,))._replace(descriptors=links)
    text = said(find(many), "held")
    assert "it asks 127.0.0.1:6401 0.9 at a time: a lock, or a limit of connections" in text
    one_each = tuple(asked._replace(inode=61 + n, port=40000 + n) for n in range(4))
    links[7] |= {10 + n: f"socket:[{61 + n}]" for n in range(4)}
    assert said(find(many._replace(unanswered=one_each)), "held") == ""


def test_requests_whose_threads_wait_for_somebody_unknown() -> None:
    ask = StackFrame("ask_tax", "/srv/shop")
    waits = [waiting(7, tid, "recvfrom", ask, argument=tid) for tid in (8, 9)]
    unix = Endpoint("socket", "other", inode=77)
    sums = tuple(WaitSum(7, tid, "recvfrom", tid, tid, 0, unix, 9.0, 50, 0.2) for tid in (8, 9))
    measured = holding(waits=sums)
    measured = measured._replace(activities=(*measured.activities, *waits))
    text = said(find(measured._replace(processes=(Process(7, 1, "shop", "/srv/shop"),))), "held")
    assert "2 threads wait: each waits for an answer of a unix socket in ask_tax" in text


def test_requests_whose_pool_of_threads_waits() -> None:
    """Threads beside the event loop: who they wait for stands in the sentence."""
    worker = library("_worker", "/usr/lib/python3.11/concurrent/futures/thread.py")
    waits = [
        waiting(7, tid, "recvfrom", own("load_ledger", 9), worker, argument=tid) for tid in (8, 9)
    ]
    ends = tuple(
        WaitSum(7, tid, "recvfrom", tid, tid, 0, PEER._replace(local_port=tid), 9.0, 40, 0.2)
        for tid in (8, 9)
    )
    measured = holding(waits=ends)
    measured = measured._replace(activities=(*measured.activities, *waits))
    text = said(find(measured), "held")
    assert "200 ms old, and 2 threads wait: each waits for an answer of 127.0.0.1:6401" in text
    assert "in load_ledger (app.py:9)" in text
    assert "idle" not in text


def test_requests_that_a_child_works_on() -> None:
    """A server hands requests to a child through a nameless socket."""
    links = {**DESCRIPTORS, 7: {**DESCRIPTORS[7], 9: "socket:[31]"}, 9: {8: "socket:[32]"}}
    shop = library("Flask.dispatch", "/v/lib/python3.11/site-packages/flask/app.py")
    child = waiting(9, 9, "clock_nanosleep", own("resize", 4), shop, seconds=9.0)

    def handing(parent: int) -> Facts:
        measured = holding(unix_peers={31: 32, 32: 31})
        return measured._replace(
            activities=(*measured.activities, child),
            descriptors=links,
            processes=(*measured.processes, Process(9, parent, "worker", PYTHON)),
        )

    (finding,) = find(handing(7))
    assert finding.name == "worker"
    assert [(one.name, round(one.cost, 1)) for one in finding.lost_by] == [("shop", 3.6)]
    assert len(find(handing(1))) == 2  # noqa: PLR2004
    unread = handing(7)._replace(starts=(Start(9, "worker", "convert", is_fork=False, times=30),))
    text = said(find(unread._replace(activities=unread.activities[:1])), "held")
    assert "it waits for its child worker (9), it seems: , which starts convert 3.0/s" in text


def test_requests_that_wait_for_a_name_server() -> None:
    """An event loop that keeps its socket to a name server, as nginx does."""
    lookups = Socket(60, "udp", "127.0.0.1", 40009, "10.0.0.53", 53, 1, share=1.0)
    sends = (CallCount(7, "sendto", 0, 90),)
    measured = holding(calls=sends)
    measured = measured._replace(sockets=(*LISTENERS, lookups))
    text = said(find(measured), "held")
    assert "it asks the name server 10.0.0.53:53 (DNS) meanwhile" in text
    assert "DNS" not in said(find(measured._replace(calls=())), "held")


def test_a_loop_that_waits_in_a_call_is_not_idle() -> None:
    """A blocking client in an event loop: one finding, which says what it waits for."""
    once = library("BaseEventLoop._run_once", "/usr/lib/python3.11/asyncio/base_events.py")
    blocked = waiting(7, 7, "recvfrom", own("ask_bank", 9), once, argument=8, seconds=8.0)
    ends = WaitSum(7, 7, "recvfrom", 8, 8, 0, PEER, 8.0, 80, 0.1)
    measured = holding(waits=(ends,))._replace(activities=(blocked,))
    assert said(find(measured), "held") == ""
    text = said(find(measured), "downstream")
    assert (
        "in ask_bank (app.py:9): 100 ms each; that blocks its event loop 80 % of the time" in text
    )


def test_a_proxy_holds_what_its_server_does_not_answer() -> None:
    """The proxy waits at a unix socket, in its event loop: the finding is about the server."""
    links = {**DESCRIPTORS, 7: {**DESCRIPTORS[7], 9: "socket:[31]"}, 9: {8: "socket:[32]"}}
    flask = library("Flask.dispatch", "/v/lib/python3.11/site-packages/flask/app.py")
    child = waiting(9, 9, "clock_nanosleep", own("render", 4), flask, seconds=9.0)
    measured = holding(unix_peers={31: 32, 32: 31}, unix_names={32: "/run/app.sock"})
    measured = measured._replace(
        activities=(*measured.activities, child),
        descriptors=links,
        processes=(*measured.processes, Process(9, 1, "app", PYTHON)),
    )
    (finding,) = find(measured)
    assert finding.name == "app"
    assert [(one.name, round(one.cost, 1)) for one in finding.lost_by] == [("shop", 3.6)]
    assert said(find(measured._replace(unix_peers={})), "held") != ""


def test_a_proxy_in_front_of_a_client_of_another_service() -> None:
    """Its server waits for a service elsewhere: that finding has the proxy's loss."""
    links = {**DESCRIPTORS, 7: {**DESCRIPTORS[7], 9: "socket:[31]"}, 9: {8: "socket:[32]"}}
    away = Endpoint("socket", "inet", "10.0.0.7", 443, 40009, 77)
    php = StackFrame("zif_file_get_contents", "/usr/sbin/php-fpm8.2")
    wait = waiting(9, 9, "recvfrom", php, argument=5, seconds=9.0)
    ends = WaitSum(9, 9, "recvfrom", 5, 5, 0, away, 9.0, 30, 0.3)
    measured = holding(unix_peers={31: 32, 32: 31}, unix_names={32: "/run/app.sock"}, waits=(ends,))
    measured = measured._replace(
        activities=(*measured.activities, wait),
        descriptors=links,
        processes=(*measured.processes, Process(9, 1, "php-fpm8.2", "/usr/sbin/php-fpm8.2")),
    )
    (finding,) = find(measured)
    assert (finding.name, finding.place) == ("php-fpm8.2", "10.0.0.7:443")
    assert [(one.name, round(one.cost, 1)) for one in finding.lost_by] == [("shop", 3.6)]


def test_requests_that_wait_for_a_loop_that_computes() -> None:
    loop = running(7, 7, native("lookup", "/srv/shop"), native("serve", "/srv/shop"), seconds=3)
    measured = holding(threads=(ThreadTime(7, 7, 3.0, 4.0),))
    measured = measured._replace(activities=(*measured.activities, loop))
    text = said(find(measured), "held")
    assert "and one thread computes 70 % of the time; it is in lookup" in text
    (command,) = (one.command for one in find(measured) if one.kind == "held")
    assert command == ("profile", "-p", "7")


# Servers of clients that wait


def asked(*, client_serves: bool = False, server: str = "answer") -> Facts:
    """A client that waits 0.8 s for each answer, and a server that sleeps or waits for requests."""
    peer = Endpoint("socket", "inet", "127.0.0.1", DB_PORT, 40000, 31)
    sleep = waiting(
        DB, 15, "clock_nanosleep", native(server, "/srv/gate"), native("run", "/srv/gate")
    )
    idle = waiting(DB, 15, "epoll_wait", native("run", "/srv/gate"))
    ask = waiting(7, 8, "recvfrom", own("fetch", 17), *THREAD)
    measured = facts(ask, sleep if server else idle)
    return measured._replace(
        waits=(WaitSum(7, 8, "recvfrom", 0x1000, 5, 0, peer, 9.0, 11, 0.9),),
        sockets=LISTENERS,
        descriptors=DESCRIPTORS if client_serves else {DB: {4: "socket:[50]"}},
        processes=(Process(7, 1, "shop", PYTHON), Process(DB, 1, "gate", "/srv/gate")),
    )


def test_a_server_that_keeps_its_clients_waiting() -> None:
    (finding,) = find(asked())
    assert (finding.kind, finding.pids) == ("slow-server", (DB,))
    assert finding.text.startswith(
        "answers late on 127.0.0.1:6401: after 818 ms; it sleeps in answer"
    )
    assert finding.evidence[0] == "shop (7) waits for it in fetch (app.py:17)"
    assert finding.lost_by[0].pid == 7  # noqa: PLR2004


def test_a_server_whose_function_is_not_known_is_told_by_its_wait() -> None:
    measured = asked(server="")
    fifo = waiting(DB, DB, "epoll_wait")._replace(call="openat", kernel=("fifo_open", "vfs_open"))
    opening = measured._replace(activities=(measured.activities[0], fifo))
    (finding,) = find(opening)
    assert (finding.kind, finding.pids) == ("slow-server", (DB,))
    assert "it waits until somebody opens the other end of a named pipe" in finding.text
    other = opening._replace(activities=(measured.activities[0], fifo._replace(tid=15)))
    assert [one.kind for one in find(other)] == ["downstream"]


def little_work() -> Facts:
    """The server runs a little, and waits for requests."""
    measured = asked(server="")
    run = running(DB, 15, native("answer", "/srv/gate"), seconds=0.2)
    return measured._replace(activities=(*measured.activities, run))


@pytest.mark.parametrize("measured", [asked(client_serves=True), asked(server=""), little_work()])
def test_a_service_in_the_middle_is_told_of_itself(measured: Facts) -> None:
    (finding,) = find(measured)
    assert (finding.kind, finding.pids) == ("downstream", (7,))


def test_a_server_whose_wait_does_not_show_is_behind_its_client() -> None:
    """It holds requests, and nothing tells why: the service that asks has a function, at least."""
    held = tuple(Unanswered(50, 0.9, 0.2, "127.0.0.1", 40000 + n, DB_PORT) for n in range(3))

    def puzzling(*, client_serves: bool) -> Facts:
        measured = asked(client_serves=client_serves, server="")
        return measured._replace(held=held)

    (finding,) = find(puzzling(client_serves=True))
    assert (finding.kind, finding.name) == ("downstream", "shop")
    assert finding.evidence[2].startswith("that one answers late on port 6401: it holds 2.7")
    (finding,) = find(puzzling(client_serves=False))
    assert (finding.kind, finding.name) == ("held", "gate")


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


def test_a_batch_on_one_cpu_and_the_service_that_waits_for_the_same_cpu() -> None:
    batch = wanting((1,))

    def beside(allowed: tuple[int, ...], queued_s: float) -> str:
        other = Process(40, 1, "locator", "/srv/locator", allowed=allowed)
        threads = (*batch.threads, ThreadTime(40, 41, 0.4, queued_s))
        measured = batch._replace(threads=threads, processes=(*batch.processes, other))
        return said(find(measured), "affinity")

    assert "so does locator (40), 0.42 s a second; they run render" in beside((1,), 4.2)
    for well in (beside((0,), 4.2), beside((), 4.2), beside((1,), 0.2)):
        assert "locator" not in well
        assert "they run render" in well


def workers(*allowed: tuple[int, ...]) -> Facts:
    pids = range(8, 8 + len(allowed))
    stays = [running(pid, pid, native("render", "/srv/tiles")) for pid in pids]
    times = tuple(ThreadTime(pid, pid, 2.0, 6.0) for pid in pids)
    processes = tuple(
        Process(pid, 7, "tiles", "/srv/tiles", allowed=one)
        for pid, one in zip(pids, allowed, strict=True)
    )
    return facts(*stays)._replace(threads=times, processes=processes)


def test_workers_that_share_one_cpu_and_workers_that_have_one_each() -> None:
    text = said(find(workers((0,), (0,), (0,))), "affinity")
    assert "may run on CPU 0 only (1 of 2; taskset or cpuset): 3 processes wait 1.80 s" in text
    assert said(find(workers((0,), (1,))), "affinity") == ""


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
    measured = growing(1.0, 0.5)
    (process,) = measured.processes
    ended = measured._replace(processes=(process._replace(is_gone=True),))
    assert said(find(ended), "growth") == ""


def test_a_neighbour_on_the_same_cpu_is_named_however_busy_the_others_are() -> None:
    victim = running(7, 7, own("render", 8), *THREAD, seconds=0.9)
    neighbour = running(8, 8, native("build_segment", "/srv/index"), seconds=3.5)
    stranger = running(9, 9, native("compile", "/srv/cc"), seconds=9.0)
    measured = facts(victim, neighbour, stranger)
    processes = (
        Process(7, 1, "shop", PYTHON, allowed=(1,)),
        Process(8, 1, "index", "/srv/index", allowed=(1,)),
        Process(9, 1, "cc", "/srv/cc"),
    )
    times = tuple(ThreadTime(*one) for one in ((7, 7, 0.9, 2.5), (8, 8, 3.5, 0.1), (9, 9, 9.0, 0)))
    text = said(find(measured._replace(processes=processes, threads=times)), "run-queue")
    assert "(run queue); index takes it" in text
    crowd = tuple(Process(pid, 1, f"job{pid}", f"/srv/job{pid}") for pid in range(20, 30))
    queues = tuple(ThreadTime(one.pid, one.pid, 1.0, 6.0) for one in crowd)
    crowded = measured._replace(processes=(*processes, *crowd), threads=(*times, *queues))
    victims = [one for one in find(crowded, 30) if one.kind == "run-queue" and one.name == "shop"]
    assert "index takes it" in said(victims, "run-queue")
    free = (processes[0]._replace(allowed=()), processes[1]._replace(allowed=()), processes[2])
    text = said(find(measured._replace(processes=free, threads=times)), "run-queue")
    assert "cc takes it" in text


def faulting(times: int) -> Facts:
    fault = ("filemap_fault", "do_fault", "exc_page_fault")
    busy = running(7, 7, native("lookup_term", "/srv/index"), seconds=2.0)._replace(kernel=fault)
    process = Process(7, 1, "index", "/srv/index", major_faults=times, read_bytes=100_000_000)
    return facts(busy)._replace(processes=(process,))


def test_pages_that_are_not_in_memory() -> None:
    text = said(find(faulting(28000)), "page-faults")
    assert "reads 2800 pages a second from the disk by major page faults, in lookup_term" in text
    assert said(find(faulting(300)), "page-faults") == ""


def test_a_process_that_renamed_itself_says_its_interpreter() -> None:
    busy = running(7, 7, native("JsonParse", "/usr/bin/node"))
    process = Process(7, 1, "shop-worker", "/usr/bin/node")
    (finding,) = find(facts(busy)._replace(processes=(process,)))
    assert finding.text.startswith("uses 0.50 CPUs (node)")
    (finding,) = find(facts(busy)._replace(processes=(process._replace(comm="node"),)))
    assert "(node)" not in finding.text


def sleeping(*user: StackFrame) -> Facts:
    """A thread that sleeps 900 times a second; its stack is known from its CPU time only."""
    kernel = ("schedule", "do_nanosleep", "hrtimer_nanosleep")
    busy = running(7, 7, native("clock_nanosleep"), *user, seconds=0.5)._replace(kernel=kernel)
    waits = (WaitSum(7, 7, "clock_nanosleep", 0, -1, 0, Endpoint(), 9.0, 9000, 0.01),)
    calls = (CallCount(7, "clock_nanosleep", 0, 9000),)
    return facts(busy, exe="/srv/sched")._replace(waits=waits, calls=calls)


def test_a_thread_that_sleeps_for_moments_is_found_by_its_cpu_time() -> None:
    text = said(find(sleeping(native("next_job", "/srv/sched"))), "timers")
    assert "sets 900 timers a second (clock_nanosleep); in next_job" in text
    assert said(find(sleeping(native("start_thread"))), "timers") == ""


# Page faults


def touching(pids: tuple[int, ...] = (7, 8, 9), faults: int = 45_000, user_s: float = 0.2) -> Facts:
    """Workers that take new pages for each request."""
    fault = ("clear_page_erms", "do_anonymous_page", "exc_page_fault", "asm_exc_page_fault")
    code = (native("memset"), native("scale", "/srv/scaled"), native("main", "/srv/scaled"))
    activities = [
        stay
        for pid in pids
        for stay in (
            running(pid, pid, *code, seconds=1.0)._replace(kernel=fault),
            running(pid, pid, *code, seconds=user_s),
        )
    ]
    workers = tuple(
        Process(pid, 1, "scaled", "/srv/scaled", minor_faults=faults, cpu_s=1.2) for pid in pids
    )
    return facts(*activities)._replace(processes=workers)


def test_page_faults_of_equal_workers_are_one_finding() -> None:
    found = find(touching())
    text = said(found, "page-faults")
    assert "has 13500 page faults a second, most in scale" in text
    assert said(found, "cpu") == ""


def test_workers_that_compute_and_have_few_page_faults() -> None:
    found = find(touching(user_s=9.0))
    assert "page faults" not in said(found, "cpu")
    assert said(found, "cpu") != ""
    found = find(touching(faults=30_000))
    assert said(found, "page-faults") == ""
    assert "83 % in the kernel (page faults)" in said(found, "cpu")
