"""Java threads that take turns, and idle workers, which park likewise."""

from __future__ import annotations

import pytest

from purebpf.findings.facts import (
    Activity,
    Endpoint,
    Facts,
    JavaMonitor,
    WaitSum,
    WakerSum,
)
from purebpf.findings.find import find
from tests.support.builders.facts import facts, native, running, waiting

JAVA = "/usr/lib/jvm/jdk/bin/java"
PARKED = (native("pthread_cond_wait"), native("Parker::park(bool, long)"), native("Unsafe_Park"))
ASLEEP = (native("pthread_cond_timedwait"), native("JavaThread::sleep(long)"), native("JVM_Sleep"))
ENTERING = (native("pthread_cond_timedwait"), native("ObjectMonitor::enter(JavaThread*)"))


def named(activity: Activity, name: str) -> Activity:
    return activity._replace(comm=name)


def turns(
    *, waker: int, asleep_s: float = 2.4, name: str = "checkout", caller: str = "Lock.lock"
) -> Facts:
    parked = (*PARKED, native(f"java.util.concurrent.{caller}", ""))
    stays = [
        named(waiting(7, tid, "futex", *stack, seconds=seconds), f"{name}-{tid}")
        for tid in range(20, 24)
        for stack, seconds in ((parked, 7.5), (ASLEEP, asleep_s))
    ]
    wakers = tuple(WakerSum(tid, "futex", 7, waker, 7.5, 100) for tid in range(20, 24))
    return facts(*stays, exe=JAVA, wakers=wakers)


def test_threads_that_take_turns_wait_for_a_lock() -> None:
    (finding,) = find(turns(waker=21))
    assert finding.kind == "lock-convoy"
    assert finding.text.startswith('4 threads "checkout" wait for each other')
    assert finding.evidence == ("the one whose turn it is sleeps (100 % of that time)",)


@pytest.mark.parametrize(
    "measured",
    [
        turns(waker=99),
        turns(waker=21, asleep_s=0.5),
        turns(waker=21, name="ForkJoinPool-1-worker"),
        turns(waker=21, caller="ThreadPoolExecutor.getTask"),
    ],
    ids=["woken by who submits", "hardly at work", "share their work", "await tasks"],
)
def test_idle_workers_take_no_turns(measured: Facts) -> None:
    assert find(measured) == []


def entering(*owners: tuple[int, int]) -> Facts:
    stays = [named(waiting(7, tid, "futex", *ENTERING), f"mover-{tid}") for tid, _ in owners]
    wanted = tuple(JavaMonitor(7, tid, 0x100 + tid, "Account", owner) for tid, owner in owners)
    return facts(*stays, exe=JAVA, monitors=wanted)


def test_a_ring_of_monitors_is_a_deadlock() -> None:
    (finding,) = find(entering((20, 21), (21, 20), (22, 20)))
    assert finding.kind == "deadlock"
    assert finding.text == "deadlock: 2 threads wait for monitors of each other, of Account"
    assert finding.evidence == (
        'thread 20 "mover-20", thread 21 "mover-21"; 1 more wait behind them',
    )


def test_a_monitor_whose_owner_works_is_no_deadlock() -> None:
    (finding,) = find(entering((20, 99), (21, 20)))
    assert finding.kind == "lock-convoy"


def reading(*, writer_s: float) -> Facts:
    """Readers wake each other after a writer has woken the first."""
    readers = [
        named(waiting(7, tid, "futex", *PARKED, seconds=9.0), f"quote-{tid}")
        for tid in range(20, 24)
    ]
    writer = named(waiting(7, 8, "futex", *ASLEEP, seconds=writer_s), "reload")
    wakers = [WakerSum(tid, "futex", 7, 23, 7.0, 30) for tid in range(20, 23)]
    first = [WakerSum(tid, "futex", 7, 8, 1.0, 10) for tid in range(20, 24)]
    strange = [WakerSum(20, "futex", 99, 99, 100.0, 10)]
    waits = (WaitSum(7, 20, "futex", 0x1000, -1, 0, Endpoint(), 9.0, 40, 0.3),)
    return facts(*readers, writer, exe=JAVA, wakers=(*wakers, *first, *strange), waits=waits)


def test_readers_wait_for_the_thread_that_holds_the_lock() -> None:
    (finding,) = find(reading(writer_s=9.0))
    assert 'that thread "reload" gives them' in finding.text
    assert finding.evidence == ("which sleeps (100 % of that time)",)


def test_workers_that_an_idle_thread_wakes_wait_for_jobs() -> None:
    assert find(reading(writer_s=1.0)) == []


def test_the_function_that_waits_for_its_turn_is_named() -> None:
    measured = turns(waker=21, caller="locks.AbstractQueuedSynchronizer.acquire")
    lend = native("shop.Store.lend", "[jit]")
    measured = measured._replace(
        activities=tuple(
            one._replace(user=(*one.user, lend)) if one.user[0].name == "pthread_cond_wait" else one
            for one in measured.activities
        )
    )
    (finding,) = find(measured)
    assert finding.text.endswith("(park), in shop.Store.lend")


def unread(*, waker: int, exe: str = JAVA) -> Facts:
    """Four threads, one of which runs at a time; no stack of their waits was read."""
    stays = [
        named(one, f"checkout-{tid}")
        for tid in range(20, 24)
        for one in (
            waiting(7, tid, "futex", seconds=7.5),
            running(7, tid, native("JIT_frame", ""), seconds=2.4),
        )
    ]
    wakers = tuple(WakerSum(tid, "futex", 7, waker, 7.5, 100) for tid in range(20, 24))
    return facts(*stays, exe=exe, wakers=wakers)


def test_threads_whose_waits_were_not_read_may_take_turns() -> None:
    found = [finding for finding in find(unread(waker=21)) if finding.kind == "lock-convoy"]
    assert found[0].text.startswith('4 threads "checkout" wait for each other')


@pytest.mark.parametrize(
    "measured",
    [unread(waker=99), unread(waker=21, exe="/usr/bin/app")],
    ids=["woken by who submits", "no JVM"],
)
def test_unread_waits_are_not_always_turns(measured: Facts) -> None:
    assert "lock-convoy" not in {finding.kind for finding in find(measured)}
