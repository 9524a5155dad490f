"""Each rule on an incident, and on its counter-example, where it is silent."""

from __future__ import annotations

import errno

from purebpf.findings.facts import (
    Activity,
    Blocked,
    CallCount,
    Cgroup,
    Connect,
    Endpoint,
    Facts,
    JavaMonitor,
    MemoryUse,
    PathCount,
    Process,
    SignalCount,
    Socket,
    StackFrame,
    Start,
    ThreadTime,
    Unanswered,
    WaitSum,
    WakerSum,
)
from purebpf.findings.find import find
from purebpf.findings.finding import Finding
from tests.support.builders.facts import (
    LOCKING,
    PYTHON,
    THREAD,
    facts,
    library,
    native,
    own,
    running,
    waiting,
)

CPP = "/srv/quoted"
FLASK = library("Flask.dispatch", "/v/lib/python3.11/site-packages/flask/app.py")


def kinds(measured: Facts) -> list[str]:
    return [finding.kind for finding in find(measured) if not finding.is_busy]


def only(measured: Facts) -> Finding:
    found = [finding for finding in find(measured) if not finding.is_busy]
    assert len(found) == 1, found
    return found[0]


def said(finding: Finding) -> str:
    return "; ".join((finding.text, *finding.evidence))


# Locks


def queueing(*, tids: range, seconds: float = 6.0) -> list:
    stack = (*LOCKING, own("reserve", 22), *THREAD)
    return [waiting(7, tid, "futex", *stack, seconds=seconds) for tid in tids]


def sums(tid: int, owner: int = 0, times: int = 100) -> WaitSum:
    return WaitSum(7, tid, "futex", 0x1000, -1, owner, Endpoint(), 6.0, times, 0.2)


def test_a_convoy_names_the_taker_and_its_holders_activity() -> None:
    asking = waiting(7, 8, "recvfrom", own("ask", 16), own("reserve", 23), *THREAD, seconds=2.0)
    measured = facts(
        *queueing(tids=range(9, 13)),
        asking,
        waits=tuple(sums(tid) for tid in range(9, 13)),
        wakers=tuple(WakerSum(tid, "futex", 7, 8, 6.0, 100) for tid in range(9, 13)),
    )
    finding = next(one for one in find(measured) if one.kind == "lock-convoy")
    assert "4 threads wait for the lock that reserve (app.py:22) takes" in said(finding)
    assert "its holder waits for an answer in ask (app.py:16)" in said(finding)
    assert finding.command == ("lock", "--userspace", "-p", "7")
    assert round(finding.cost, 1) == 2.4


def test_threads_that_come_and_go_are_counted_at_a_time() -> None:
    """A server with a thread for each connection; eight requests are open at any moment."""
    measured = facts(*queueing(tids=range(9, 89), seconds=1.0))
    text = said(next(one for one in find(measured) if one.kind == "lock-convoy"))
    assert "80 threads wait, 8 at a time, for the lock that reserve (app.py:22) takes" in text


def test_the_holder_of_a_lock_may_run_in_fsync() -> None:
    syncing = running(7, 8, native("fsync"), own("append", 24), own("reserve", 23), *THREAD)
    syncing = syncing._replace(kernel=("iowrite16", "blkdev_issue_flush", "ext4_sync_file"))
    measured = facts(
        *queueing(tids=range(9, 13)),
        syncing,
        waits=tuple(sums(tid) for tid in range(9, 13)),
        wakers=tuple(WakerSum(tid, "futex", 7, 8, 6.0, 100) for tid in range(9, 13)),
    )
    finding = next(one for one in find(measured) if one.kind == "lock-convoy")
    assert "its holder runs fsync in append (app.py:24) (100 % of that time)" in said(finding)


def test_the_lock_of_a_library_is_the_library_s() -> None:
    inside = (native("pthread_mutex_lock"), native("sqlite3_free", "/usr/lib/libsqlite3.so.0"))
    stack = (*inside, own("find", 14), *THREAD)
    waits = (waiting(7, tid, "futex", *stack, seconds=6.0) for tid in range(9, 13))
    text = said(only(facts(*waits)))
    assert "4 threads wait for a lock of libsqlite3.so.0 in find (app.py:14)" in text


def held_over_a_queue(**more: object) -> Facts:
    """Threads that never get a Python lock, whose holder waits for room in a queue."""
    taking = (*LOCKING, own("take", 20), *THREAD)
    full = (*LOCKING, library("Queue.put", "/usr/lib/python3.11/queue.py"), own("log", 14))
    waits = [waiting(7, tid, "futex", *taking, seconds=10.0) for tid in (20, 21)]
    holder = waiting(7, 30, "futex", *full, *THREAD, seconds=10.0, argument=0x2000)
    blocked = tuple(Blocked(7, tid, "futex", (0x1000, 0, 0)) for tid in (20, 21))
    return facts(
        *waits, holder, blocked=(*blocked, Blocked(7, 30, "futex", (0x2000, 0, 0))), **more
    )


def test_the_holder_of_a_lock_that_nobody_gives_back() -> None:
    known = held_over_a_queue(lock_holders={7: {0x1000: 30}})
    text = said(next(one for one in find(known) if one.kind == "deadlock"))
    assert "a lock that nobody gives back: 2 threads wait all the time for locks, in take" in text
    assert "who has it waits for room in a queue in log (app.py:14) (100 % of that time)" in text
    text = said(next(one for one in find(held_over_a_queue()) if one.kind == "deadlock"))
    assert "their owners could not be read" in text


# Barriers


def meeting(seconds: float) -> Facts:
    """Three threads that wait at a barrier, and the one that computes meanwhile."""
    stack = (native("pthread_barrier_wait"), native("step", CPP), native("start_thread"))
    waits = [waiting(7, tid, "futex", *stack, seconds=seconds) for tid in (20, 21, 22)]
    last = running(7, 30, native("merge", CPP), native("step", CPP), seconds=7.0)
    wakers = tuple(WakerSum(one.tid, "futex", 7, 30, seconds, 50) for one in waits)
    return facts(*waits, last, exe=CPP, wakers=wakers)


def test_threads_that_wait_at_a_barrier_for_the_slowest() -> None:
    text = said(only(meeting(8.0)))
    assert "3 threads wait at a barrier for the slowest of them in step" in text
    assert "the last to come runs in merge (100 % of that time)" in text
    assert kinds(meeting(0.5)) == []


def test_idle_workers_of_a_queue_are_no_convoy() -> None:
    stack = (*LOCKING, library("Queue.get"), own("serve"), *THREAD)
    assert kinds(facts(*(waiting(7, tid, "futex", *stack) for tid in range(9, 13)))) == []


def deadlocked(words: dict[int, int]) -> Facts:
    def stack(name: str) -> tuple:
        return (native("___pthread_mutex_lock"), native(name, CPP), native("start_thread"))

    waits = [
        waiting(7, 8, "futex", *stack("transfer()"), seconds=10.0, argument=0x10),
        waiting(7, 9, "futex", *stack("settle()"), seconds=10.0, argument=0x20),
    ]
    blocked = tuple(
        Blocked(7, tid, "futex", (0x10 * (tid - 7), 0, 2), words=(2, 1, owner))
        for tid, owner in words.items()
    )
    return facts(*waits, exe=CPP, blocked=blocked)


def test_a_deadlock_names_both_sides() -> None:
    finding = only(deadlocked({8: 9, 9: 8}))
    assert finding.kind == "deadlock"
    assert "transfer and settle each wait for the lock that the other holds" in finding.text


def test_waits_for_ever_without_owners_are_no_ring() -> None:
    finding = only(deadlocked({8: 0, 9: 0}))
    assert finding.text.startswith("deadlock, it seems: 2 threads wait all the time")


# Answers


def listening(port: int, inode: int) -> Socket:
    return Socket(inode, "tcp", "127.0.0.1", port, "0.0.0.0", 0, 10)  # noqa: S104


def asking(each_s: float, port: int = 8080) -> Facts:
    endpoint = Endpoint("socket", "inet", "127.0.0.1", port, 40000, 5)
    times = round(9 / each_s)
    return facts(
        waiting(7, 7, "recvfrom", own("fetch", 4), FLASK, argument=3),
        waits=(WaitSum(7, 7, "recvfrom", 3, 3, 0, endpoint, 9.0, times, each_s),),
    )


def test_a_slow_peer_is_named_with_its_address() -> None:
    finding = only(asking(0.3))
    assert finding.kind == "downstream"
    assert "waits for answers of 127.0.0.1:8080 in fetch (app.py:4): 300 ms each" in finding.text


def test_a_client_is_a_loss_of_its_busy_server() -> None:
    client = asking(0.005)
    server = running(9, 9, own("render", 7, "/srv/web/render.py"))
    measured = client._replace(
        activities=(*client.activities, server),
        processes=(*client.processes, Process(9, 1, "web", PYTHON)),
        sockets=(listening(8080, 55),),
        descriptors={9: {4: "socket:[55]"}},
    )
    finding = only(measured)
    assert (finding.kind, finding.pid) == ("cpu", 9)
    assert [(loss.name, loss.pid) for loss in finding.lost_by] == [("app7", 7)]


def test_an_event_loop_names_the_peer_that_owes_an_answer() -> None:
    loop = waiting(7, 7, "epoll_wait", native("uv_run"))
    ours = Socket(31, "tcp", "10.0.0.2", 40000, "10.0.0.9", 5432, 1)
    measured = facts(
        loop,
        exe="/usr/bin/node",
        sockets=(ours,),
        descriptors={7: {9: "socket:[31]"}},
        unanswered=(Unanswered(31, 0.8, 0.2),),
    )
    finding = only(measured)
    assert "waits for answers of 10.0.0.9:5432" in finding.text
    assert finding.command == ("trace", "-p", "7")  # no connection is made: a table has no row
    made = Connect(7, 0, "10.0.0.9", 5432, 50)
    assert only(measured._replace(connects=(made,))).command[:2] == ("tcp", "--summary")
    assert kinds(measured._replace(unanswered=(Unanswered(31, 0.8, 0.01),))) == []


def test_dns_is_told_from_other_answers() -> None:
    stack = (native("__res_context_send"), native("getaddrinfo"), own("lookup"), FLASK)
    finding = only(facts(waiting(7, 7, "recvfrom", *stack)))
    assert finding.kind == "dns"
    assert finding.command[0] == "offcpu"


# CPU, the GIL, pools


def test_cpu_time_nobody_waits_for_is_busy() -> None:
    (finding,) = find(facts(running(7, 7, own("crunch", 9), own("main"))))
    assert finding.is_busy
    assert "crunch (app.py:9) 100 %" in finding.text


def test_descriptors_without_a_number_lead_to_nobody() -> None:
    links = {7: {3: "anon_inode:[eventpoll]", 4: "anon_inode:[eventfd]", 5: "/dev/null"}}
    (finding,) = find(facts(running(7, 7, own("crunch", 9), own("main")), descriptors=links))
    assert finding.is_busy


def test_two_scripts_of_one_interpreter_are_two_programs() -> None:
    measured = facts(running(7, 7, own("crunch")), running(8, 8, own("mail", 3, "/srv/mail.py")))
    scripts = (
        Process(7, 1, "python3", PYTHON, "python3 /srv/shop/app.py 80"),
        Process(8, 1, "python3", PYTHON, "python3 /srv/mail.py 25"),
    )
    found = find(measured._replace(processes=scripts))
    assert [finding.pids for finding in found] == [(7,), (8,)]


def test_a_thread_that_keeps_the_gil_is_named() -> None:
    waits = [
        waiting(7, tid, "futex", own("serve"), *THREAD, seconds=3.0, state="gil") for tid in (9, 10)
    ]
    finding = next(
        one
        for one in find(facts(running(7, 8, own("rebuild", 5), *THREAD, seconds=8.0), *waits))
        if one.kind == "gil"
    )
    assert "rebuild (app.py:5) holds it" in finding.text


def test_two_threads_that_share_the_gil_are_well() -> None:
    shared = [
        part
        for tid in (8, 9)
        for part in (
            running(7, tid, own("serve"), *THREAD, seconds=1.0),
            waiting(7, tid, "futex", own("serve"), *THREAD, seconds=0.4, state="gil"),
        )
    ]
    assert "gil" not in kinds(facts(*shared))


def test_an_accept_queue_is_a_pool_without_a_free_worker() -> None:
    queue = listening(80, 55)._replace(queue=3.0)
    measured = facts(
        running(7, 7, own("x"), seconds=0.1), sockets=(queue,), descriptors={7: {3: "socket:[55]"}}
    )
    assert "3.0 connections wait to be accepted on port 80" in only(measured).text
    idle = waiting(7, 7, "epoll_wait", own("serve"), seconds=9.5)
    free = measured._replace(activities=(*measured.activities, idle))
    few = free._replace(sockets=(queue._replace(queue=1.3),))
    assert kinds(free) == ["accept-queue"]
    assert kinds(few) == []
    assert kinds(measured._replace(sockets=(listening(80, 55),))) == []


def test_workers_without_a_free_one_name_the_programs_that_they_wait_for() -> None:
    wait = waiting(7, 7, "wait4", native("__libc_wait4"), own("send_mail"))
    starts = tuple(
        Start(7, "app7", name, is_fork=False, times=times)
        for name, times in (("sh", 61), ("sendmail", 60))
    )
    measured = facts(
        wait,
        sockets=(listening(80, 55)._replace(queue=3.0),),
        descriptors={7: {3: "socket:[55]"}},
    )._replace(starts=starts)
    (finding,) = (one for one in find(measured) if one.kind == "accept-queue")
    assert "waits for a child process (sendmail) in send_mail" in finding.evidence[0]
    shells = tuple(Start(70 + n, "sh", "qmail", is_fork=False, times=1) for n in range(50))
    by_shells = measured._replace(starts=(starts[0], *shells))
    (finding,) = (one for one in find(by_shells) if one.kind == "accept-queue")
    assert "waits for a child process (qmail) in send_mail" in finding.evidence[0]
    busy = running(7, 7, own("render"), seconds=9.0)
    assert "sendmail" not in str(find(measured._replace(activities=(busy,))))


def test_children_that_run_another_program_own_no_listener_of_their_parent() -> None:
    server, worker = Process(7, 1, "php", "/usr/bin/php"), Process(8, 7, "php", "/usr/bin/php")
    mail = Process(9, 8, "sendmail", "/usr/bin/dash")
    sleep, shell = Process(10, 9, "sleep", "/usr/bin/sleep"), Process(11, 9, "sh", "/usr/bin/dash")
    everybody = (server, worker, mail, sleep, shell)
    measured = facts(
        running(8, 8, own("x"), seconds=0.1),
        sockets=(listening(80, 55)._replace(queue=3.0),),
        descriptors={one.pid: {3: "socket:[55]"} for one in everybody},
    )._replace(processes=everybody)
    assert only(measured).pids == (8, 7)


def test_a_java_monitor_is_named_by_its_class() -> None:
    stack = (native("ObjectMonitor::enter(JavaThread*)", "/jdk/libjvm.so"),)
    waits = [waiting(7, tid, "futex", *stack, seconds=5.0) for tid in (9, 10)]
    owner = waiting(7, 8, "clock_nanosleep", native("os::naked_sleep"), seconds=9.0)
    monitors = tuple(JavaMonitor(7, tid, 0xC000, "shop.OrderBook", 8) for tid in (9, 10))
    finding = only(facts(*waits, owner, exe="/usr/lib/jvm/bin/java", monitors=monitors))
    assert finding.text == "2 threads wait for the monitor (lock) of shop.OrderBook"
    assert "which sleeps" in said(finding)


# Limits


def test_a_throttled_cgroup_is_named_with_its_limit() -> None:
    cgroup = Cgroup("/sys/fs/cgroup/shop", 0.15, periods=100, throttled=90, throttled_s=8.0)
    process = Process(7, 1, "app", PYTHON, cgroup="0::/shop")
    measured = Facts(10.0, 2, processes=(process,), cgroups=(cgroup,))
    assert "throttled by its cgroup's CPU limit in 90 %" in only(measured).text
    assert kinds(measured._replace(cgroups=(cgroup._replace(throttled=2),))) == []


def test_a_noisy_neighbour_is_named_by_its_victim() -> None:
    hog = running(8, 8, native("index()", "/srv/index"), seconds=9.0)
    measured = facts(hog, exe="/srv/index")._replace(
        processes=(Process(7, 1, "web", PYTHON), Process(8, 1, "index", "/srv/index")),
        threads=(ThreadTime(7, 7, 0.4, 6.0), ThreadTime(8, 8, 9.0, 0.1)),
    )
    finding = only(measured)
    assert finding.kind == "run-queue"
    assert "index (8) uses 0.90 CPUs in index" in said(finding)


# Storms and failures


def calls(*counts: CallCount, **more: object) -> Facts:
    """Calls of a process of which few samples were taken."""
    polling = running(7, 7, own("poll"), seconds=0.5)
    return facts(polling, calls=counts, threads=(ThreadTime(7, 7, 3.0, 0.0),), **more)


def test_a_storm_of_opens_names_the_path() -> None:
    measured = calls(
        CallCount(7, "openat", 0, 80_000), paths=(PathCount(7, "openat", "/etc/shop.ini", 79_000),)
    )
    assert "100 % of them for /etc/shop.ini" in only(measured).text
    assert kinds(calls(CallCount(7, "openat", 0, 800))) == []


def test_a_full_disk_is_named() -> None:
    finding = only(calls(CallCount(7, "write", errno.ENOSPC, 50)))
    assert "write fails with ENOSPC" in finding.text
    assert kinds(calls(CallCount(7, "openat", errno.ENOENT, 50))) == []


def test_files_of_a_program_stand_before_its_log() -> None:
    """The log has two descriptors, and its disk has room."""
    log, spool = "/var/log/uplink.log", "/srv/spool/readings.bin"
    full = CallCount(7, "write", errno.ENOSPC, 50)
    finding = only(calls(full, descriptors={7: {1: log, 2: log, 3: spool}}))
    assert any(f"files: {spool}, {log}" in clause for clause in finding.evidence)
    finding = only(calls(full, descriptors={7: {1: log, 2: log}}))
    assert any(f"files: {log};" in clause for clause in finding.evidence)


def test_asking_without_waiting_is_a_spin() -> None:
    finding = only(calls(CallCount(7, "recvfrom", errno.EAGAIN, 900_000)))
    assert finding.kind == "spin"
    assert kinds(calls(CallCount(7, "recvfrom", errno.EAGAIN, 900))) == []


def test_small_reads_replace_the_storm_of_calls() -> None:
    assert kinds(calls(CallCount(7, "read", 0, 900_000, 900_000))) == ["small-calls"]
    assert kinds(calls(CallCount(7, "read", 0, 900_000, 900_000 << 12))) == ["call-storm"]


def test_refused_connections_are_named_with_the_port() -> None:
    refused = Connect(7, errno.ECONNREFUSED, "127.0.0.1", 2525, 300)
    finding = only(calls(connects=(refused,)))
    assert "127.0.0.1:2525 30.0 times a second, and is refused (ECONNREFUSED)" in finding.text
    assert kinds(calls(connects=(refused._replace(times=1),))) == []


def test_refusals_of_short_lived_processes_are_their_parents() -> None:
    connects = tuple(Connect(pid, errno.ECONNREFUSED, "127.0.0.1", 9000, 1) for pid in range(100))
    starts = (Start(700, "sh", "sh", True, 190), Start(701, "make", "cc", False, 2))
    script = Process(700, 1, "sh", "/usr/bin/dash", "sh wait-for.sh")
    measured = Facts(10.0, 2, processes=(script,), connects=connects, starts=starts)
    finding = only(measured)
    assert (finding.kind, finding.name, finding.pids) == ("refused", "sh", (700,))
    assert "connects to 127.0.0.1:9000 10.0 times a second, each time in a new" in finding.text
    assert "sh wait-for.sh" in said(finding)
    assert only(measured._replace(starts=starts[1:])).pids == ()


def test_short_programs_are_named_with_their_script() -> None:
    shell = Process(7, 1, "sh", "/usr/bin/dash", "sh /srv/collect.sh", children_cpu_s=6.0)
    starts = (Start(99, "sh", "cut", False, 900), Start(99, "sh", "expr", False, 800))
    finding = only(Facts(10.0, 2, processes=(shell,), starts=starts))
    assert "starts 170 programs a second in collect.sh: cut 90, expr 80" in finding.text
    few = tuple(start._replace(times=20) for start in starts)
    assert kinds(Facts(10.0, 2, processes=(shell,), starts=few)) == []


def test_signals_are_counted_by_their_sender() -> None:
    measured = calls(CallCount(7, "kill", 0, 60_000), signals=(SignalCount(7, 8, 10, 60_000),))
    measured = measured._replace(processes=(*measured.processes, Process(8, 1, "target")))
    assert "sends 6000 signals a second (SIGUSR1) to target (8)" in only(measured).text


def test_zombies_are_their_parents() -> None:
    dead = [Process(pid, 7, "job", state="Z") for pid in range(100, 130)]
    finding = only(Facts(10.0, 2, processes=(Process(7, 1, "boss"), *dead)))
    assert "has 30 zombies" in finding.text
    assert kinds(Facts(10.0, 2, processes=(Process(7, 1, "boss"), *dead[:5]))) == []


# Memory, disks, pipes, databases


def test_growth_names_the_function_that_uses_new_pages() -> None:
    leaking = Process(7, 1, "app", PYTHON, anon=tuple(range(0, 20_000_000, 2_000_000)))
    use = MemoryUse(7, "faults", 4000, (own("remember", 3), FLASK))
    measured = Facts(10.0, 2, processes=(leaking,), memory=(use,))
    assert "remember (app.py:3) 100 %" in said(only(measured))
    heap = leaking._replace(exe="/usr/lib/jvm/bin/java")
    assert kinds(measured._replace(processes=(heap,))) == []
    cache = (6361088, 6500352, 6688768, 7061504, 7344128, 7413760, 7462912)  # of SQLite, recorded
    assert find(Facts(12.0, 2, processes=(leaking._replace(anon=cache),))) == []
    grown = tuple(50_000_000 + size for size in cache)
    assert find(Facts(6.0, 2, processes=(leaking._replace(anon=grown),))) != []
    warm = leaking._replace(anon=(0, *[18_000_000] * 9))
    assert kinds(measured._replace(processes=(warm,))) == []


def test_stacks_that_are_cut_in_the_allocator_come_last() -> None:
    leaking = Process(7, 1, "app", PYTHON, anon=tuple(range(0, 20_000_000, 2_000_000)))
    uses = (
        MemoryUse(7, "faults", 600, (native("sysmalloc"), native("_int_malloc"), native("malloc"))),
        MemoryUse(7, "faults", 400, (native("malloc"), own("remember", 3), FLASK)),
    )
    measured = Facts(10.0, 2, processes=(leaking,), memory=uses)
    assert "first used in remember (app.py:3) 40 %, sysmalloc 60 %" in said(only(measured))
    measured = measured._replace(memory=uses[:1])
    assert "first used in sysmalloc 100 %" in said(only(measured))


def test_a_full_pipe_is_named_with_its_reader() -> None:
    pipe = Endpoint("pipe", inode=77)
    measured = facts(
        waiting(7, 7, "write", own("log"), *THREAD, argument=2),
        waiting(8, 8, "clock_nanosleep", own("ship"), own("main")),
        waits=(WaitSum(7, 7, "write", 2, 2, 0, pipe, 9.0, 20, 1.0),),
        descriptors={7: {2: "pipe:[77]"}, 8: {0: "pipe:[77]"}},
    )
    finding = only(measured)
    assert "blocks in pipe_write of log (app.py:10): fd 2 is full" in finding.text
    assert "read by app8 (8), which sleeps in ship" in said(finding)


def test_a_full_connection_is_named_with_its_reader() -> None:
    end = Endpoint("socket", "inet", "127.0.0.1", 9000, 40000, 55)
    sending = waiting(7, 7, "write", native("write"), native("main", CPP), argument=3)
    full = sending._replace(kernel=("sk_stream_wait_memory", "tcp_sendmsg_locked"))
    reading = waiting(8, 8, "clock_nanosleep", own("digest", 11))
    measured = facts(
        *(full, reading),
        waits=(WaitSum(7, 7, "write", 3, 3, 0, end, 9.0, 4, 3.0),),
        sockets=(Socket(56, "tcp", "127.0.0.1", 9000, "127.0.0.1", 40000, 1),),
        descriptors={8: {4: "socket:[56]"}},
    )
    exes = (Process(7, 1, "exporter", CPP), Process(8, 1, "sink", PYTHON))
    finding = only(measured._replace(processes=exes))
    assert finding.kind == "full-pipe"
    assert "a socket's write of main" in finding.text
    assert "read by sink (8), which sleeps in digest (app.py:11)" in said(finding)


def test_synced_writes_are_counted() -> None:
    measured = facts(
        waiting(7, 7, "fsync", own("append"), argument=4, seconds=3.0),
        calls=(CallCount(7, "fsync", 0, 500),),
        descriptors={7: {4: "/var/lib/orders.wal"}},
    )
    assert (
        "fsync in append (app.py:10): 50 times a second, of /var/lib/orders.wal"
        in only(measured).text
    )


def quickly(times: int, exe: str = CPP) -> Facts:
    """A program on a fast disk: 0.02 seconds a second in all."""
    waits = waiting(7, 7, "fsync", native("append", CPP), argument=4, seconds=0.2)
    return facts(waits, calls=(CallCount(7, "fsync", 0, times),), exe=exe)


def test_syncs_of_a_fast_disk_are_named_if_they_are_many() -> None:
    assert "fsync in append: 200 times a second" in only(quickly(2000)).text


def test_syncs_of_a_fast_disk_that_are_well() -> None:
    database = quickly(2000, "/usr/lib/postgresql/15/bin/postgres")
    assert "fsync" not in {*kinds(quickly(500)), *kinds(database)}


def test_backends_that_wait_name_the_idle_transaction() -> None:
    waits = Process(7, 1, "postgres", titles={"postgres: shop db [local] UPDATE waiting": 9})
    idle = Process(8, 1, "postgres", titles={"postgres: shop db [local] idle in transaction": 9})
    finding = only(Facts(10.0, 2, processes=(waits, idle)))
    assert "UPDATE waiting" in finding.text
    assert "postgres (8)" in said(finding)
    assert kinds(Facts(10.0, 2, processes=(idle,))) == []


def test_the_client_of_the_idle_transaction_is_named_with_what_it_waits_for() -> None:
    waits = Process(7, 1, "postgres", titles={"postgres: shop db UPDATE waiting": 9})
    often = {"postgres: shop db idle in transaction": 9}
    seldom = {"postgres: shop db idle in transaction": 1, "postgres: shop db SELECT": 8}
    backends = (Process(6, 1, "postgres", titles=seldom), Process(8, 1, "postgres", titles=often))
    sleep = waiting(9, 9, "clock_nanosleep", own("charge", 4), own("settle", 9))
    measured = facts(sleep)._replace(
        processes=(waits, *backends, Process(9, 1, "worker", PYTHON)),
        sockets=(
            Socket(61, "tcp", "127.0.0.1", 5432, "127.0.0.1", 40000, 1),
            Socket(62, "tcp", "127.0.0.1", 40000, "127.0.0.1", 5432, 1),
        ),
        descriptors={8: {9: "socket:[61]"}, 9: {3: "socket:[62]"}},
    )
    finding = next(one for one in find(measured) if one.kind == "db-lock")
    assert finding.text.startswith("1 backend waits for a lock of a row or table")
    assert finding.evidence[0] == (
        "idle in transaction: postgres (8), postgres (6) for worker (9), which sleeps in "
        "charge (app.py:4) (100 % of that time)"
    )


def test_sleeps_in_a_library_are_told_with_its_function_and_the_file() -> None:
    flask = library("Flask.dispatch", "/v/lib/python3.11/site-packages/flask/app.py")
    retry = library("Database.execute", "/v/lib/python3.11/site-packages/peewee.py")

    def sleeping(*inside: StackFrame) -> Facts:
        sleep = waiting(7, 7, "clock_nanosleep", *inside, own("add_visit", 4), flask)
        beat = "/run/beat-1 (deleted)"
        links = {7: {4: beat, 5: "/srv/visits.db"}, 9: {3: beat, 4: "/srv/visits.db"}}
        measured = facts(sleep)._replace(descriptors=links)
        return measured._replace(processes=(*measured.processes, Process(9, 1, "report")))

    finding = only(sleeping(native("usleep"), retry))
    assert finding.text == (
        "add_visit (app.py:4) sleeps 90 % of the time in Database.execute (peewee.py:5) of a "
        "library, which tries again"
    )
    assert finding.evidence[0] == "/srv/visits.db is also open in report (9)"
    plain = only(sleeping(native("usleep")))
    assert plain.text == "add_visit (app.py:4) sleeps 90 % of the time in the middle of work"


def test_a_write_with_o_sync_waits_for_the_disk() -> None:
    kernel = ("folio_wait_bit", "folio_wait_writeback", "__filemap_fdatawait_range")
    kernel += ("file_write_and_wait_range", "ext4_sync_file")
    journal = native("append_record", CPP)
    ready = Activity(7, 7, "ledger", "queue", "R", 4.0, kernel, (), "write", 3)
    busy = running(7, 7, native("write"), journal)._replace(kernel=("iowrite16", "ext4_sync_file"))
    written = CallCount(7, "write", 0, 3000, 1_500_000)
    measured = facts(ready, busy, exe=CPP, calls=(written,))
    finding = next(one for one in find(measured) if one.kind == "fsync")
    assert "waits for write with O_SYNC or O_DSYNC in append_record: 300 times" in said(finding)
    plain = facts(ready._replace(kernel=("ext4_buffered_write_iter",)), busy, exe=CPP)
    assert "fsync" not in kinds(plain)


def test_a_limit_of_processes_fails_starts_and_not_reads() -> None:
    forks = CallCount(7, "clone", errno.EAGAIN, 370)
    finding = only(facts(waiting(7, 7, "epoll_wait"), exe=CPP, calls=(forks,)))
    assert "clone fails with EAGAIN (a limit of processes or threads" in finding.text
    reads = CallCount(7, "read", errno.EAGAIN, 370)
    assert kinds(facts(waiting(7, 7, "epoll_wait"), exe=CPP, calls=(reads,))) == []


def test_a_profiler_may_read_where_nothing_is_mapped() -> None:
    reads = CallCount(7, "pread64", errno.EIO, 500)
    disk, memory = {3: "/srv/ledger.db"}, {3: "/srv/ledger.db", 4: "/proc/812/mem"}
    idle = waiting(7, 7, "epoll_wait")
    finding = only(facts(idle, exe=CPP, calls=(reads,), descriptors={7: disk}))
    assert "pread64 fails with EIO (input/output error)" in finding.text
    assert kinds(facts(idle, exe=CPP, calls=(reads,), descriptors={7: memory})) == []


def above_high(hits: int, *, seconds: float = 8.0) -> Facts:
    """Threads of a cgroup that sleep because it has more memory than memory.high."""
    slept = ("schedule_timeout_killable", "__mem_cgroup_handle_over_high", "resume_user_mode_work")
    wait = waiting(7, 7, "futex", native("keep", CPP), seconds=seconds)
    wait = wait._replace(kernel=slept, call="", state="D")
    group = Cgroup(
        "/sys/fs/cgroup/shop", memory_high=24 << 20, high_hits=hits, memory_used=30 << 20
    )
    process = Process(7, 1, "shop", CPP, cgroup="0::/shop\n")
    return facts(wait)._replace(cgroups=(group,), processes=(process,))


def test_a_program_that_memory_high_slows_down() -> None:
    text = said(only(above_high(8)))
    assert "is slowed down by its cgroup's memory.high 1 times a second" in text
    assert "its threads wait 0.80 s a second for that" in text
    assert "memory.high of shop is 24 MiB, in use are 30" in text
    assert kinds(above_high(8, seconds=0.5)) == kinds(above_high(0, seconds=0.5)) == []


def test_both_ends_of_a_library_that_works_for_a_script_are_named() -> None:
    """A pool that pickles: neither end has a function of the program's own in its stack."""
    folder = "/usr/lib/python3.11/multiprocessing"
    reading = (library("Queue.get", f"{folder}/queues.py"), library("worker", f"{folder}/pool.py"))
    writing = (library("dumps", f"{folder}/reduction.py"), library("put", f"{folder}/pool.py"))
    measured = facts(running(7, 8, *reading, seconds=6.0), running(7, 9, *writing, seconds=5.0))
    finding = next(one for one in find(measured) if one.kind == "cpu")
    assert "Queue.get (multiprocessing/queues.py:5) 55 %, dumps (multiprocessing/" in finding.text
    assert "reduction.py:5) 45 %; by worker (multiprocessing/pool.py:5)" in finding.text
