"""Methods of Java on stacks: own ones, the JDK's, and the purpose of a parked thread."""

from __future__ import annotations

import pytest

from purebpf.findings.facts import (
    Activity,
    Facts,
    JavaMonitor,
    Process,
    StackFrame,
    ThreadTime,
    WakerSum,
)
from purebpf.findings.find import find
from purebpf.findings.finding import Finding
from purebpf.findings.ownership import Program
from purebpf.findings.places import sum_places
from purebpf.findings.waiting import judge
from tests.support.builders.facts import KERNEL, facts, native, running, waiting

JAVA = "/usr/lib/jvm/java-17/bin/java"
JVM = "/usr/lib/jvm/java-17/lib/server/libjvm.so"
PARK = (native("pthread_cond_wait"), native("Unsafe_Park", JVM))
ENTER = (native("pthread_cond_wait"), native("ObjectMonitor::enter(JavaThread*)", JVM))
UTIL = "java.util.concurrent"
SYNC = f"{UTIL}.locks.AbstractQueuedSynchronizer"
AWAIT = f"{SYNC}$ConditionObject.await"


def method(name: str, line: int = 7) -> StackFrame:
    """A method, as the stacks of a JVM have them."""
    return StackFrame(name, "[jit]", line, "user")


RUN = (method("Orders.lambda$main$0"), method("Orders$$Lambda.run"), method("java.lang.Thread.run"))
PROGRAM = Program(JAVA)


@pytest.mark.parametrize(
    ("name", "is_own", "is_library"),
    [
        ("Orders.book", True, False),
        ("com.shop.Orders$Line.price", True, False),
        ("Orders$$Lambda.run", False, False),
        ("java.util.HashMap.get", False, True),
        ("org.springframework.web.Dispatcher.dispatch", False, True),
        ("java.util.concurrent.FutureTask.run", False, True),
        ("java.lang.Thread.run", False, False),
        ("Interpreter", False, False),
    ],
)
def test_methods_are_own_or_of_a_library(name: str, *, is_own: bool, is_library: bool) -> None:
    assert PROGRAM.owns(method(name)) is is_own
    assert PROGRAM.is_library(method(name)) is is_library


@pytest.mark.parametrize(
    ("names", "kind", "is_work"),
    [
        ((f"{SYNC}.acquire", "java.util.concurrent.locks.ReentrantLock.lock"), "lock", True),
        ((f"{SYNC}.acquire", "java.util.concurrent.Semaphore.acquire"), "permit", True),
        ((AWAIT, "com.zaxxer.hikari.pool.HikariPool.getConnection"), "permit", True),
        ((AWAIT, f"{UTIL}.ArrayBlockingQueue.put"), "queue-full", True),
        ((AWAIT, f"{UTIL}.LinkedBlockingQueue.take"), "java-park", False),
        (("java.util.concurrent.SynchronousQueue$TransferStack.transfer",), "java-park", False),
    ],
)  # fmt: skip
def test_the_purpose_of_a_parked_thread(
    names: tuple[str, ...], kind: str, *, is_work: bool
) -> None:
    judged = judge(
        PROGRAM, KERNEL["futex"], (*PARK, *map(method, names), method("Orders.book"), *RUN)
    )
    assert (judged.kind, judged.is_work) == (kind, is_work)


def test_a_sleep_in_a_handler_of_a_library_is_work() -> None:
    sleep = (native("JVM_Sleep", JVM), method("java.lang.Thread.sleep"), method("Orders.handle"))
    server = method("com.sun.net.httpserver.Filter$Chain.doFilter")
    for outer, is_work in (((server,), True), ((), False)):
        judged = judge(PROGRAM, KERNEL["futex"], (*sleep, *outer, RUN[-1]))
        assert (judged.kind, judged.is_work) == ("sleep", is_work)


def convoy(kind: tuple[StackFrame, ...]) -> Facts:
    waits = [waiting(7, tid, "futex", *kind, method("Orders.book"), *RUN) for tid in (8, 9)]
    write = waiting(
        7, 10, "write", method("java.io.PrintStream.write"), method("Orders.book"), *RUN
    )
    monitors = (JavaMonitor(7, 8, 1, "Orders", 10), JavaMonitor(7, 9, 1, "Orders", 10))
    measured = facts(*waits, write, monitors=monitors if kind is ENTER else ())
    return measured._replace(processes=(Process(7, 1, "java", JAVA),))


def test_a_monitor_is_told_with_the_method_that_wants_it_and_its_owners() -> None:
    finding = next(one for one in find(convoy(ENTER)) if one.kind == "lock-convoy")
    assert finding.text == "2 threads wait for the monitor (lock) of Orders in Orders.book"
    assert "waits to write a full pipe (pipe_write) in Orders.book" in finding.evidence[0]


def locking(*more: Activity) -> list[Finding]:
    lock = (*PARK, method("java.util.concurrent.locks.ReentrantLock.lock"))
    waits = [
        waiting(7, tid, "futex", *lock, method("Orders.book"), *RUN, seconds=10.0, is_open=True)
        for tid in (8, 9)
    ]
    measured = facts(*waits, *more)._replace(processes=(Process(7, 1, "java", JAVA),))
    return [one for one in find(measured) if one.kind in ("lock-convoy", "deadlock")]


def test_a_lock_of_the_library_that_nobody_gives_back() -> None:
    (finding,) = locking()
    assert finding.kind == "deadlock"
    assert "2 threads wait all the time for locks, in Orders.book" in finding.text


def test_threads_that_never_get_an_unfair_lock_are_a_convoy() -> None:
    holder = running(7, 10, method("Orders.price"), method("Orders.book"), *RUN)
    (finding,) = locking(holder)
    assert (finding.kind, finding.command) == ("lock-convoy", ("offcpu", "-p", "7"))
    assert finding.text == "2 threads wait for the lock that Orders.book takes"


def test_the_writer_that_wakes_readers_is_their_holder() -> None:
    write = (native("JVM_Sleep", JVM), method("Orders.reload"), *RUN)
    writer = waiting(7, 10, "futex", *write, argument=0x20)
    measured = convoy((*PARK, method("java.util.concurrent.locks.ReentrantReadWriteLock.readLock")))
    wakers = tuple(WakerSum(tid, "futex", 7, 10, 5.0, 20) for tid in (8, 9))
    times = tuple(ThreadTime(7, tid, 0.1, 0.0) for tid in (8, 9, 10))
    readers = [one for one in measured.activities if one.tid != 10]  # noqa: PLR2004
    found = find(measured._replace(activities=(*readers, writer), wakers=wakers, threads=times))
    finding = next(one for one in found if one.kind == "lock-convoy")
    assert finding.evidence[0].startswith("who gives it to them sleeps in Orders.reload")


def test_what_a_writer_does_between_two_turns_is_not_what_it_holds_the_lock_for() -> None:
    code = (native("Book::recalculate()", "/srv/quoted"), native("main", "/srv/quoted"))
    busy = running(7, 10, *code, seconds=2.0)
    queued = busy._replace(kind="queue", seconds=1.5)
    home = waiting(7, 10, "clock_nanosleep", native("main", "/srv/quoted"), seconds=6.0)
    read = (native("__pthread_rwlock_rdlock"), native("Book::quote()", "/srv/quoted"))
    readers = [waiting(7, tid, "futex", *read, seconds=4.0) for tid in (8, 9)]
    wakers = tuple(WakerSum(tid, "futex", 7, 10, 4.0, 70) for tid in (8, 9))
    times = tuple(ThreadTime(7, tid, 2.0, 0.0) for tid in (8, 9, 10))
    measured = facts(*readers, busy, queued, home, wakers=wakers, threads=times)
    found = find(measured._replace(processes=(Process(7, 1, "quoted", "/srv/quoted"),)))
    finding = next(one for one in found if one.kind == "lock-convoy")
    assert finding.evidence[0].startswith("who gives it to them runs in Book::recalculate")


def in_a_pool(function: str, *, working: str = "Orders$Session.query") -> str:
    """The use of the threads that wait in a function of a pool, beside one that works."""
    handler = (method("Orders.answer"), method(f"{UTIL}.FutureTask.run"), RUN[-1])
    parked = (*PARK, method(AWAIT), method(function), *handler)
    asks = (native("__libc_recv"), method(working), *handler)
    waits = waiting(7, 8, "futex", *parked, seconds=4.0)
    works = waiting(7, 9, "recvfrom", *asks, seconds=4.0)
    places = sum_places([waits, works])
    return next(place.use for place in places if place.kind == "java-park")


def test_threads_that_wait_for_a_pool_of_the_program_s_own_are_not_idle() -> None:
    assert in_a_pool("Orders$SessionBag.borrowSession") == "work"
    assert in_a_pool("Orders$Inbox.takeMail") == "idle"
    assert in_a_pool("Orders$Inbox.await", working="Orders$Inbox.await") == "idle"
