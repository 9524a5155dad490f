"""Storms of timers, signals and packets, and locks that nobody gives back."""

from __future__ import annotations

import errno

import pytest

from purebpf.findings.facts import (
    Activity,
    CallCount,
    Endpoint,
    Facts,
    PathCount,
    Process,
    SignalCount,
    Socket,
    Start,
    ThreadTime,
    WaitSum,
    WakerSum,
)
from purebpf.findings.find import find
from tests.support.builders.facts import THREAD, facts, library, native, own, running, waiting

SHOP = Process(7, 1, "shop", "/srv/shop")


def said(measured: Facts) -> list[str]:
    return ["; ".join((one.text, *one.evidence)) for one in find(measured)]


def test_signals_of_a_timer_come_while_any_process_runs() -> None:
    others = tuple(SignalCount(pid, 7, 14, 4_000) for pid in range(100, 110))
    measured = Facts(10.0, 2, processes=(SHOP,), signals=others)
    assert said(measured) == ["gets 4000 signals a second (SIGALRM) from a timer; "]
    assert said(measured._replace(signals=others[:2])) == []


def test_faults_that_a_program_handles_are_of_no_timer() -> None:
    faults = (SignalCount(7, 7, 11, 20_000),)
    calls = (CallCount(7, "mprotect", 0, 20_000),)
    (text,) = said(Facts(10.0, 2, processes=(SHOP,), signals=faults, calls=calls))
    assert text.startswith("gets 2000 signals a second (SIGSEGV): faults of its own code that it")
    assert "which makes 2000 mprotect calls a second" in text


def test_a_thread_that_only_time_limits_wake_is_a_timer() -> None:
    counts = (CallCount(7, "futex", errno.ETIMEDOUT, 50_000), CallCount(7, "futex", 0, 50_000))
    waits = (WaitSum(7, 9, "futex", 0x1000, -1, 0, Endpoint(), 9.0, 50_000, 0.001),)
    thread = waiting(
        7, 9, "futex", native("pthread_cond_timedwait"), native("poll_queue", "/srv/shop")
    )
    measured = facts(thread, exe="/srv/shop", calls=counts, waits=waits)
    (text,) = said(measured)
    assert text.startswith("is woken by timers 5000 times a second")
    assert 'thread 9 "worker" in poll_queue' in text
    few = (CallCount(7, "futex", errno.ETIMEDOUT, 5_000),)
    assert said(measured._replace(calls=few)) == []


def ruby(*seconds: float, times: int = 1) -> Facts:
    calls = ("pthread_cond_wait", "rb_native_cond_wait", "rb_mutex_lock", "rb_vm_exec")
    stack = tuple(map(native, calls))
    threads = [
        waiting(7, tid, "futex", *stack, seconds=s, argument=tid)
        for tid, s in enumerate(seconds, 10)
    ]
    waits = tuple(
        WaitSum(7, tid, "futex", tid, -1, 0, Endpoint(), s, times, s / times)
        for tid, s in enumerate(seconds, 10)
        if times > 1
    )
    return facts(*threads, exe="/usr/bin/ruby3.1", waits=waits)


def test_ruby_threads_that_wait_all_the_time_are_a_deadlock() -> None:
    (finding,) = find(ruby(10.0, 10.0))
    assert finding.kind == "deadlock"
    assert "deadlock, it seems: 2 threads wait for a lock (Mutex) of Ruby" in finding.text
    (convoy,) = find(ruby(9.8, 9.9, times=100))
    assert convoy.kind == "lock-convoy"


def test_another_program_that_reads_what_ruby_wrote_gives_no_mutex() -> None:
    measured = ruby(9.8, 9.9, times=100)
    wakers = (WakerSum(10, "write", 9, 9, 9.0, 90), WakerSum(10, "futex", 7, 11, 4.0, 50))
    processes = (*measured.processes, Process(9, 1, "printer", "/srv/printer"))
    (convoy,) = find(measured._replace(wakers=wakers, processes=processes))
    assert convoy.evidence[0].startswith("thread 11 ")


def test_a_victim_of_the_run_queue_says_its_own_function() -> None:
    victim = running(7, 7, own("price", 3), seconds=3.0)
    hog = running(9, 9, own("crunch", 4, "/srv/batch/job.py"), seconds=15.0)
    measured = facts(victim, hog)
    times = (ThreadTime(7, 7, 3.0, 5.0), ThreadTime(9, 9, 15.0, 0.0))
    processes = (Process(7, 1, "shop", "/srv/shop"), Process(9, 1, "batch", "/srv/batch"))
    measured = measured._replace(threads=times, processes=processes)
    finding = next(one for one in find(measured) if one.kind == "run-queue")
    assert finding.evidence[1] == "its own 0.30 CPUs go to price (app.py:3)"


def test_many_victims_of_one_program_leave_room_for_other_findings() -> None:
    hog = running(99, 99, own("crunch", 4, "/srv/batch/job.py"), seconds=18.0)
    processes = [Process(99, 1, "batch", "/srv/batch")]
    times = [ThreadTime(99, 99, 18.0, 0.0)]
    for pid in range(10, 15):
        processes.append(Process(pid, 1, f"shop{pid}", f"/srv/shop{pid}"))
        times.append(ThreadTime(pid, pid, 0.1, 9.0 - 0.1 * pid))
    found = find(facts(hog)._replace(threads=tuple(times), processes=tuple(processes)))
    victims = [one for one in found if one.kind == "run-queue"]
    assert [one.name for one in victims] == ["shop10", "shop11"]
    assert "so do 3 other programs: shop12 (12), shop13 (13), shop14 (14)" in victims[0].evidence


def test_packets_that_are_dropped_cost_more_than_their_cpu_time() -> None:
    sockets = (
        Socket(1, "udp", "127.0.0.1", 8125, "", 0, 7, drops=100_000),
        Socket(2, "udp", "127.0.0.1", 40_000, "127.0.0.1", 8125, 1),
    )
    measured = Facts(
        *(10.0, 2),
        processes=(SHOP, Process(8, 1, "sink", "/srv/sink")),
        sockets=sockets,
        descriptors={7: {3: "socket:[2]"}, 8: {3: "socket:[1]"}},
        calls=(CallCount(7, "write", 0, 110_000, 1_760_000), CallCount(8, "recvfrom", 0, 9_000)),
        counters={"UdpInDatagrams": 9_000.0, "UdpRcvbufErrors": 100_000.0},
    )
    (storm,) = find(measured)
    assert storm.kind == "datagram-storm"
    assert storm.cost > 1  # noqa: PLR2004
    quiet = measured._replace(counters={"UdpInDatagrams": 9_000.0})
    assert [one.kind for one in find(quiet)] == ["small-calls"]


def growing(step: int) -> Facts:
    start = running(7, 7, native("runtime.mallocgc", "/srv/shop"), native("main.keep", "/srv/shop"))
    heap = tuple(range(1 << 20, (1 << 20) + 10 * step, step))
    process = Process(7, 1, "shop", "/srv/shop", anon=heap)
    return facts(start)._replace(processes=(process,))


def test_a_go_heap_that_was_never_collected_is_no_leak() -> None:
    assert "growth" in [one.kind for one in find(growing(2_000_000))]
    assert "growth" not in [one.kind for one in find(growing(200_000))]


def test_threads_that_end_at_once_are_a_storm() -> None:
    calls = (CallCount(7, "clone3", 0, 20_000), CallCount(7, "rt_sigprocmask", 0, 300_000))
    measured = Facts(10.0, 2, processes=(SHOP,), calls=calls)
    (storm,) = find(measured)
    assert "starts 1000 threads a second, which end at once" in storm.text
    forks = (Start(7, "shop", "shop", is_fork=True, times=10_000),)
    assert "thread-storm" not in [one.kind for one in find(measured._replace(starts=forks))]


def test_cpu_time_in_the_allocator_is_named() -> None:
    def spent(*names: str) -> Facts:
        return facts(
            running(7, 7, *map(native, names), native("split", "/srv/shop")), exe="/srv/shop"
        )

    (busy,) = find(spent("_int_malloc", "malloc"))
    assert "100 % in the memory allocator (malloc, free)" in busy.evidence
    (other,) = find(spent("memcpy"))
    assert not any("allocator" in clause for clause in other.evidence)


def test_young_heaps_of_interpreters_grow() -> None:
    def grown(exe: str, step: int) -> list[str]:
        heap = tuple(range(1 << 20, (1 << 20) + 10 * step, step))
        return said(Facts(10.0, 2, processes=(Process(7, 1, "shop", exe, anon=heap),)))

    assert grown("/usr/bin/ruby3.1", 300_000) == []
    assert len(grown("/usr/bin/ruby3.1", 3_000_000)) == 1
    assert len(grown("/usr/bin/python3.11", 300_000)) == 1


def test_a_loop_that_wakes_up_for_nothing_is_named() -> None:
    spinning = CallCount(7, "epoll_wait", 0, 600_000)
    measured = Facts(10.0, 2, processes=(SHOP,), calls=(spinning,))
    (finding,) = find(measured)
    assert finding.kind == "wakeups"
    assert finding.text.startswith("its event loop wakes up 60000 times a second")
    serving = measured._replace(calls=(spinning, CallCount(7, "recvfrom", 0, 500_000, 5 << 30)))
    assert "wakeups" not in [one.kind for one in find(serving)]
    calm = CallCount(7, "epoll_wait", 0, 6_000)
    assert find(measured._replace(calls=(calm,))) == []


def test_the_thread_that_looks_after_a_pool_of_python_is_no_event_loop() -> None:
    """It polls the pipe of the results until another thread has read them."""
    pool = "/usr/lib/python3.11/multiprocessing/pool.py"
    stack = (library("wait", "/usr/lib/python3.11/multiprocessing/connection.py"),)
    kept = waiting(7, 20, "epoll_wait", native("poll"), *stack, library("Pool._keep", pool))
    polls = (CallCount(7, "poll", 0, 14_000), CallCount(7, "read", 0, 570, 8246))

    def wakeups(*stays: Activity) -> list[str]:
        found = find(facts(*stays, calls=polls))
        return [one.text for one in found if one.kind == "wakeups"]

    assert wakeups(kept._replace(call="poll")) == []
    own_loop = waiting(7, 7, "epoll_wait", native("poll"), own("pump"))._replace(call="poll")
    assert len(wakeups(kept._replace(call="poll"), own_loop)) == 1


def switching(waker: str) -> Facts:
    """Thirty threads that wake up 20,000 times a second, without a stack of their waits."""
    sums = tuple(
        WaitSum(7, tid, "futex", 0x10, -1, 0, Endpoint(), 6.0, 10_000, 0.01)
        for tid in range(10, 40)
    )
    take = running(7, 10, native("futex_wait"), native("take_job", "/srv/shop"), seconds=3.0)
    push = running(7, 7, native(waker), native("main", "/srv/shop"), seconds=1.0)
    return facts(take, push, exe="/srv/shop", waits=sums)


def test_a_herd_is_seen_by_who_wakes_it() -> None:
    (finding,) = (one for one in find(switching("pthread_cond_broadcast")) if "switch" in one.kind)
    assert "a condition wakes its 30 threads at once (a thundering herd" in finding.text
    assert finding.evidence[0].startswith("between take_job")
    (finding,) = (one for one in find(switching("pthread_cond_signal")) if "switch" in one.kind)
    assert "herd" not in finding.text


def scanning(folder: str, times: int = 2000, seconds: float = 4.0) -> Facts:
    paths = tuple(PathCount(7, "openat", f"/{folder}/{n}/maps", times // 10) for n in range(10))
    agent = running(7, 7, native("read"), native("scan", "/srv/agent"), seconds=seconds)
    counts = (CallCount(7, "openat", 0, 10 * times), CallCount(7, "getdents64", 0, times))
    return facts(agent, exe="/srv/agent", paths=paths, calls=counts)


def test_an_agent_that_scans_all_processes() -> None:
    (finding,) = (one for one in find(scanning("proc")) if one.kind == "file-storm")
    assert finding.text.endswith("for 10 or more files, 100 % in /proc/PID")
    for well in (scanning("srv"), scanning("proc", times=200), scanning("proc", seconds=0.5)):
        assert not [one for one in find(well) if one.kind == "file-storm"]


def test_a_storm_without_whole_stacks_names_the_function_that_runs_most() -> None:
    cut = running(7, 7, native("syscall"), seconds=3.0)
    whole = running(
        7, 7, native("split", "/srv/mail"), native("subjects", "/srv/mail"), seconds=0.1
    )
    counts = (CallCount(7, "openat", 0, 100_000),)
    measured = facts(cut, whole, exe="/srv/mail", calls=counts)
    (finding,) = (one for one in find(measured) if one.kind == "file-storm")
    assert "of its own code, split runs most" in finding.evidence
    at_call = facts(
        whole,
        running(7, 7, native("open64"), native("subjects", "/srv/mail")),
        exe="/srv/mail",
        calls=counts,
    )
    (finding,) = (one for one in find(at_call) if one.kind == "file-storm")
    assert "in subjects" in finding.evidence


def forking(memory: int = 600 << 20, copy: str = "copy_page_range") -> Facts:
    fork = running(7, 7, native("_Fork"), native("start_job", "/srv/plan"), seconds=3.0)
    fork = fork._replace(kernel=(copy, "copy_process", "kernel_clone"))
    starts = (Start(7, "plan", "", is_fork=True, times=200),)
    process = Process(7, 1, "plan", "/srv/plan", anon=(memory,) * 10)
    return facts(fork, exe="/srv/plan", starts=starts)._replace(processes=(process,))


def test_forks_of_a_large_process() -> None:
    (finding,) = (one for one in find(forking()) if one.kind == "costly-fork")
    assert "it forks 200 times (20.0 a second) with 600 MiB of memory" in finding.text
    assert finding.evidence == ("15 ms each", "in start_job")
    for well in (forking(memory=8 << 20), forking(copy="alloc_pid")):
        assert not [one for one in find(well) if one.kind == "costly-fork"]


def test_a_loop_of_short_programs_is_one_storm() -> None:
    """Fifty processes that have ended, each with 2,000 calls."""
    ended = range(100, 150)
    stays = tuple(
        running(pid, pid, native("stat"), seconds=0.05, comm="walk")._replace(comm="walk")
        for pid in ended
    )
    measured = Facts(
        *(10.0, 2),
        activities=stays,
        processes=(Process(7, 1, "sh", "/bin/dash", "sh sizes.sh"),),
        calls=tuple(CallCount(pid, "newfstatat", 0, 2000) for pid in ended),
        paths=tuple(PathCount(pid, "newfstatat", "/srv/tree/a", 8) for pid in ended),
        starts=(Start(7, "sh", "walk", is_fork=False, times=50),),
    )
    (finding,) = (one for one in find(measured) if one.kind == "file-storm")
    assert finding.name == "walk"
    assert finding.text.startswith("calls newfstatat 100000 times (10000 a second), 100 % of them")
    assert finding.evidence[1] == "started 50 times by sh (7): sh sizes.sh"
    unknown = measured._replace(activities=())
    assert not [one for one in find(unknown) if one.kind == "file-storm"]


def waking(calls: int, *, threads: int = 20, uneven: int = 1) -> Facts:
    """A thread ends 5,000 waits of each of the others, with so many calls beside the waits."""
    tids = range(20, 20 + threads)
    waits = tuple(
        WaitSum(7, tid, "futex", 0x1000, -1, 0, Endpoint(), 9.0, 15_000, 0.01) for tid in tids
    )
    wakers = tuple(
        WakerSum(tid, "futex", 7, 8, 9.0, 5_000 // (uneven if tid % 2 else 1)) for tid in tids
    )
    counts = (CallCount(7, "futex", 0, 15_000 * threads + calls),)
    thread = waiting(7, 20, "futex", native("syscall"), native("take_job", "/srv/shop"))
    return facts(thread, exe="/srv/shop", calls=counts, waits=waits, wakers=wakers)


def test_a_thread_that_wakes_all_others_at_once() -> None:
    (text,) = said(waking(5_000))
    assert "; one thread wakes 20 others at once (a thundering herd: notify_all)" in text


@pytest.mark.parametrize(
    "well",
    [waking(100_000), waking(5_000, threads=7, uneven=1), waking(5_000, uneven=9)],
    ids=["one by one", "few", "some more than others"],
)
def test_threads_that_are_woken_one_by_one(well: Facts) -> None:
    assert not any("herd" in text for text in said(well))


def saving(*titles: str) -> Facts:
    """A database with children of these titles."""
    server = Process(7, 1, "redis-server", "/usr/bin/redis-server", children_cpu_s=1.5)
    children = [
        Process(20 + at, 7, "redis-server", "/usr/bin/redis-server", title, is_new=True)
        for at, title in enumerate(titles)
    ]
    stay = running(20, 20, native("rdbSaveObject", "/srv/redis-server"), seconds=0.5)
    return facts(stay)._replace(processes=(server, *children))


def test_a_database_that_saves_its_data_again_and_again() -> None:
    found = find(saving("redis-rdb-bgsave *:6379", "redis-rdb-bgsave *:6379"))
    (finding,) = (one for one in found if one.kind == "costly-fork")
    assert finding.pid == 7
    assert "2 children (redis-rdb-bgsave) in 10 s, which use 0.15 CPUs" in finding.text
    one = saving("redis-rdb-bgsave *:6379", "redis-server *:6379")
    assert [one for one in find(one) if one.kind == "costly-fork"] == []


def handing_over(*tids: int) -> Facts:
    """Threads that make 60,000 calls of futex a second."""
    waits = tuple(WaitSum(7, tid, "futex", 0x1000, -1, 0, Endpoint(), 0.1, 9, 0.1) for tid in tids)
    calls = (CallCount(7, "futex", 0, 600_000),)
    return facts(running(7, 7, native("wake"), seconds=1.0), calls=calls, waits=waits)


def test_calls_of_futex_are_threads_that_wake_each_other() -> None:
    (text,) = (text for text in said(handing_over(7, 8, 9)) if "mostly futex" in text)
    assert "3 threads wait for each other and wake each other" in text
    assert "wake each other" not in "; ".join(said(handing_over(7)))


def polling(*, in_between: bool) -> Facts:
    """A worker that sleeps seldom, and threads of requests whose short sleeps have no stacks."""
    handler = library("Handler.handle", "/v/lib/python3.11/site-packages/web/server.py")
    naps = [
        waiting(7, tid, call, seconds=seconds, argument=1)
        for tid in range(20, 50)
        for call, seconds in (("clock_nanosleep", 9.0), ("recvfrom", 0.5))
    ]
    runs = [running(7, tid, own("await_answer", 8), handler, seconds=0.02) for tid in (20, 30)]
    worker = waiting(7, 8, "clock_nanosleep", own("work", 3), *THREAD, argument=1)
    sums = [
        WaitSum(7, tid, "clock_nanosleep", 1, -1, 0, Endpoint(), 9.0, 3000, 0.01)
        for tid in range(20, 50)
    ]
    slow = WaitSum(7, 8, "clock_nanosleep", 1, -1, 0, Endpoint(), 9.0, 200, 0.1)
    return facts(
        *(worker, *naps, *(runs if in_between else ())),
        waits=(*sums, slow),
        calls=(CallCount(7, "clock_nanosleep", 0, 90_200),),
    )


def test_timers_belong_to_the_threads_that_sleep_most() -> None:
    (finding,) = (one for one in find(polling(in_between=True)) if one.kind == "timers")
    assert finding.evidence[0].startswith("in await_answer (app.py:8)")
    assert not any("work" in " ".join(one.evidence) for one in find(polling(in_between=True)))
