"""Workers of servers: idle beside a busy one, restarted again and again, stuck, or with a pipe."""

from __future__ import annotations

import pytest

from purebpf.findings.facts import (
    Activity,
    Blocked,
    CallCount,
    Endpoint,
    Facts,
    Process,
    SignalCount,
    Socket,
    Start,
    ThreadTime,
    WaitSum,
)
from purebpf.findings.find import find
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

PORT = 8000
FIRST, WORKERS = 6, (7, 8, 9)
LISTENER = Socket(51, "tcp", "127.0.0.1", PORT, "0.0.0.0", 0, 10)
MODULE = (own("load_rates", 2), own("<module>", 9))


def said(measured: Facts) -> str:
    return "; ".join("; ".join((one.text, *one.evidence)) for one in find(measured))


def serving(*activities: Activity, **more: object) -> Facts:
    """A server with three workers, all of which have its listener."""
    pids = (FIRST, *WORKERS)
    processes = tuple(
        Process(pid, 1 if pid == FIRST else FIRST, "tiles", PYTHON, command="python app.py")
        for pid in pids
    )
    values = {"processes": processes, "descriptors": {pid: {3: "socket:[51]"} for pid in pids}}
    times = tuple(
        ThreadTime(one.pid, one.tid, one.seconds, 0.0) for one in activities if one.kind == "cpu"
    )
    return facts(*activities)._replace(sockets=(LISTENER,), threads=times, **{**values, **more})


# A worker that has all the work


def test_workers_that_are_idle_beside_a_busy_one() -> None:
    busy = running(7, 7, own("render", 8), *THREAD, seconds=6.0)
    assert "2 other workers on port 8000 are idle: the work is not shared" in said(serving(busy))


@pytest.mark.parametrize(
    "measured",
    [
        serving(running(7, 7, own("render", 8), *THREAD, seconds=2.0)),
        serving(*(running(pid, pid, own("render", 8), *THREAD, seconds=6.0) for pid in WORKERS)),
        serving(
            running(7, 7, own("render", 8), *THREAD, seconds=6.0),
            descriptors={7: {3: "socket:[51]"}, FIRST: {3: "socket:[51]"}},
        ),
    ],
    ids=["little work", "all work", "only its first process listens, too"],
)
def test_workers_that_share_their_work(measured: Facts) -> None:
    assert "idle" not in said(measured)


# Workers that do not live long


def restarting(forks: int = 25, cpu_s: float = 4.0, **more: object) -> Facts:
    loading = running(20, 20, *MODULE, seconds=3.0, comm="tiles")
    measured = serving(loading, starts=(Start(FIRST, "tiles", "", is_fork=True, times=forks),))
    first, *others = measured.processes
    processes = (first._replace(children_cpu_s=cpu_s), *others)
    return measured._replace(processes=processes, **more)


def test_an_own_function_comes_before_a_library_s_where_stacks_were_cut() -> None:
    loading = running(20, 20, own("load_model", 8), *MODULE, seconds=0.5, comm="tiles")
    cut = running(20, 21, library("scan_once", "/usr/lib/python3.11/json/decoder.py"), seconds=2.5)
    text = said(restarting()._replace(activities=(loading, cut)))
    assert "they use 0.40 CPUs, in load_model" in text


def test_workers_that_end_after_some_requests() -> None:
    text = said(restarting())
    assert "starts 2.5 workers a second, which soon end again: they use 0.40 CPUs" in text
    assert "in load_rates (app.py:2) 100 %" in text


def test_workers_that_end_before_they_can_be_unwound() -> None:
    """Some of them could be, and stand for the others."""
    measured = restarting()
    cut = tuple(running(21 + n, 21 + n, seconds=1.0, comm="tiles") for n in range(9))
    text = said(measured._replace(activities=(*measured.activities, *cut)))
    assert "in load_rates (app.py:2) 100 %" in text
    few = (measured.activities[0]._replace(seconds=0.2), *cut)
    assert "in load_rates (app.py:2) 2 %" in said(measured._replace(activities=few))


def killing(workers: int, number: int = 9) -> Facts:
    """A server that has killed its workers, each of which slept in a request."""
    handler = (own("render", 8), library("Flask.dispatch", "/v/site-packages/flask/app.py"))
    sleeps = [waiting(30 + n, 30 + n, "clock_nanosleep", *handler) for n in range(3)]
    measured = restarting()
    children = tuple(Process(30 + n, FIRST, "tiles", PYTHON) for n in range(3))
    return measured._replace(
        activities=(*measured.activities, *sleeps),
        processes=(*measured.processes, *children),
        signals=tuple(SignalCount(FIRST, 30 + n, number, 2) for n in range(workers)),
    )


def test_workers_that_their_server_kills() -> None:
    text = said(killing(3))
    assert "starts 2.5 workers a second, and kills them again (SIGKILL 6 times)" in text
    assert "while each sleeps in render (app.py:8) (100 % of that time)" in text


@pytest.mark.parametrize("well", [killing(2), killing(3, number=1)], ids=["two", "reloads"])
def test_workers_that_end_by_themselves(well: Facts) -> None:
    assert "kills" not in said(well)


@pytest.mark.parametrize(
    "well",
    [
        restarting(forks=3),
        restarting(cpu_s=0.5),
        restarting(descriptors={FIRST: {3: "socket:[51]"}}),
    ],
    ids=["seldom", "they load nothing", "a process for each connection"],
)
def test_servers_that_start_processes(well: Facts) -> None:
    assert "workers" not in said(well)


# Workers that all wake up


def herd(workers: int = 12, times: int = 2600, accepted: int = 2600, first: int = 2600) -> Facts:
    pids = range(20, 20 + workers)
    woken = tuple(
        WaitSum(
            pid, pid, "epoll_wait", 4, -1, 0, Endpoint(), 9.0, times if pid > 20 else first, 0.1
        )
        for pid in pids
    )
    processes = tuple(Process(pid, FIRST, "hub", "/srv/hub") for pid in pids)
    calls = tuple(CallCount(pid, "accept4", 0, accepted // workers) for pid in pids)
    return Facts(
        *(10.0, 2),
        processes=processes,
        waits=woken,
        calls=calls,
        sockets=(LISTENER,),
        descriptors={pid: {3: "socket:[51]"} for pid in pids},
    )


def test_workers_that_each_connection_wakes() -> None:
    text = said(herd())
    assert "12 workers on port 8000 wake up 3120 times a second in all for 259 connections" in text
    assert "each wakes them all (a thundering herd)" in text


@pytest.mark.parametrize(
    "well",
    [herd(workers=6, times=9000, first=9000), herd(times=200, first=200), herd(accepted=24000)],
    ids=["few", "seldom", "each has work"],
)
def test_workers_that_share_their_connections(well: Facts) -> None:
    assert said(well) == ""


def test_a_worker_that_wakes_up_alone_is_no_herd() -> None:
    assert "herd" not in said(herd(times=300, first=26_000))


# A pipe that is not closed


def reading(holder: int) -> Facts:
    """A handler reads from a pipe, which another process has open."""
    handler = library("Handler.do_GET", "/usr/lib/python3.11/http/server.py")
    stack = (library("run", "/usr/lib/python3.11/subprocess.py"), own("run_hook", 7), handler)
    pipe = ("anon_pipe_read", "vfs_read", "__x64_sys_read")
    wait = waiting(7, 20, "write", *stack, *THREAD, seconds=10.0)
    wait = wait._replace(kernel=pipe, call="read", argument=5)
    idle = waiting(holder, holder, "clock_nanosleep", native("watch", "/srv/watchd"), seconds=10.0)
    links = {7: {3: "socket:[51]", 5: "pipe:[99]"}, holder: {1: "pipe:[99]"}}
    measured = serving(wait, idle, descriptors=links)
    watch = Process(11, 1, "watchd", "/srv/watchd")
    return measured._replace(
        processes=(*measured.processes, watch), blocked=(Blocked(7, 20, "read", (5,), 5),)
    )


def test_the_process_that_keeps_a_pipe_open_is_named() -> None:
    text = said(reading(11))
    assert "run_hook (app.py:7) waits for a child process 100 % of the time" in text
    assert "the pipe is open in watchd (11), which sleeps in watch" in text
    assert "the pipe is open" not in said(reading(7))


# Children


def test_the_output_of_a_child_is_waited_for() -> None:
    handler = library("Handler.do_GET", "/usr/lib/python3.11/http/server.py")
    stack = (library("Popen._communicate", "/usr/lib/python3.11/subprocess.py"), own("to_pdf", 7))
    poll = ("poll_schedule_timeout", "do_sys_poll", "__x64_sys_poll")
    wait = waiting(7, 20, "write", *stack, handler, *THREAD, seconds=8.0)
    wait = wait._replace(kernel=poll, call="poll")
    starts = (Start(7, "tiles", "wkhtmltopdf", False, 70),)
    text = said(serving(wait, starts=starts))
    assert "to_pdf (app.py:7) waits for a child process 80 % of the time" in text
    assert "it starts wkhtmltopdf 7.0/s" in text
    forks = (Start(7, "tiles", "", True, 90),)
    assert "it forks 9.0 processes a second" in said(serving(wait, starts=forks))
    assert "the child is older than this look" in said(serving(wait))


# Processes of a pool


def pooling(file: str = "/usr/lib/python3.11/multiprocessing/pool.py") -> Facts:
    """Six threads of a service that wait for results, and the only process of its pool."""
    get = (library("Event.wait"), library("Pool.apply", file), own("score", 9))
    flask = library("Flask.dispatch", "/v/lib/python3.11/site-packages/flask/app.py")
    waits = [waiting(FIRST, tid, "futex", *get, flask, *THREAD) for tid in range(20, 26)]
    measured = serving(*waits, running(7, 7, own("add_up", 3), seconds=9.0))
    return measured._replace(processes=measured.processes[:2])


def test_threads_that_wait_for_the_processes_of_a_pool() -> None:
    text = said(pooling())
    assert "6 threads wait in score (app.py:9) for Pool.apply" in text
    assert "the pool has 1 process: tiles (7) runs in add_up (app.py:3)" in text
    assert "the pool has" not in said(pooling("/srv/shop/pool.py"))


def agent(times: int = 9, cpu_s: float = 4.0, children_cpu_s: float = 9.0) -> Facts:
    """An agent that starts a costly program about once a second."""
    command, parent = "sh watch.sh", Process(7, 1, "sh", "/usr/bin/dash")
    dump = running(90, 91, native("JVM_DumpThreads"), seconds=cpu_s)._replace(comm="jstack")
    compiler = running(90, 92, native("compile"), seconds=0.0)._replace(comm="C1 Compiler")
    old = running(95, 95, native("render"), seconds=9.0)._replace(comm="batch")
    measured = facts(waiting(7, 7, "wait4", native("__libc_wait4")), dump, compiler, old)
    return measured._replace(
        processes=(parent._replace(command=command, children_cpu_s=children_cpu_s),),
        starts=(Start(7, "sh", "jstack", is_fork=False, times=times),),
    )


def test_costly_programs_that_one_parent_starts_now_and_then_are_cpu_time() -> None:
    (finding,) = find(agent())
    assert (finding.kind, finding.pids, finding.is_busy) == ("cpu", (7,), True)
    assert finding.text == "starts programs that use 0.40 CPUs and soon end, a second: jstack 0.9"
    assert "sh watch.sh" in finding.evidence


@pytest.mark.parametrize(
    "well", [agent(times=2), agent(cpu_s=0.5), agent(times=900), agent(children_cpu_s=0.0)]
)
def test_programs_that_cost_little_or_are_a_storm(well: Facts) -> None:
    assert "soon end" not in str(find(well))
