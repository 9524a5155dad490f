"""Locks of programs whose functions have no names, and of code that naps for its locks."""

from __future__ import annotations

import pytest

from purebpf.findings.evidence import Evidence
from purebpf.findings.facts import (
    Blocked,
    Endpoint,
    Facts,
    Process,
    StackFrame,
    ThreadTime,
    WaitSum,
)
from purebpf.findings.find import find
from purebpf.findings.ownership import Program
from purebpf.findings.waiting import judge
from tests.support.builders.facts import KERNEL, PYTHON, facts, native, own, running, waiting

EXE = "/srv/ledgerd"
NAMELESS = native("ledgerd!0x1800", EXE)
MUTEX = (native("__GI___lll_lock_wait"), native("pthread_mutex_lock"))
CONDITION = (native("__futex_abstimed_wait_common"), native("pthread_cond_wait"))
STARTED = native("start_thread")
SUPERVISED = ("seccomp_do_user_notification.isra.0", "__seccomp_filter", "__x64_sys_openat")


def queueing(*inside: StackFrame) -> Facts:
    """Three threads wait 8 of 10 seconds for a lock that the fourth has in its sleep."""
    waits = [waiting(7, tid, "futex", *inside, seconds=8.0) for tid in (8, 9, 10)]
    held = waiting(7, 11, "clock_nanosleep", native("usleep"), NAMELESS, STARTED, seconds=9.5)
    sums = tuple(
        WaitSum(7, one.tid, "futex", 0x1000, -1, 11, seconds=8.0, times=400, longest_s=0.1,
                endpoint=Endpoint())
        for one in waits
    )  # fmt: skip
    measured = facts(*waits, held, exe=EXE, waits=sums, threads=(ThreadTime(7, 11, 0.01, 0.0),))
    return measured._replace(processes=(Process(7, 1, "ledgerd", EXE),))


def test_a_stripped_program_has_a_convoy_at_an_address() -> None:
    (finding,) = find(queueing(*MUTEX, NAMELESS, STARTED))
    assert finding.kind == "lock-convoy"
    assert finding.text == "3 threads wait for the lock that ledgerd!0x1800 takes"
    assert "its holder sleeps" in finding.evidence[0]


def test_a_stack_that_was_cut_shows_a_lock_all_the_same() -> None:
    (finding,) = find(queueing(MUTEX[0]))
    assert finding.text == "3 threads wait for a lock"


def test_idle_workers_of_a_stripped_program() -> None:
    assert find(queueing(*CONDITION, NAMELESS, STARTED)) == []


def test_an_interpreter_has_mutexes_of_its_own() -> None:
    frames = (MUTEX[0], native("pthread_mutex_lock"), native("uv_mutex_lock", "/usr/bin/node"))
    assert not judge(Program("/usr/bin/node"), KERNEL["futex"], frames).is_work


@pytest.mark.parametrize(
    ("function", "kind"),
    [
        (StackFrame("SmallLock::lock()", EXE), "lock"),
        (StackFrame("spin_lock", EXE), "lock"),
        (StackFrame("poll_sensor", EXE), "sleep"),
        (StackFrame("unlock_door", EXE), "sleep"),
        (StackFrame("Blocks::block(int)", EXE), "sleep"),
    ],
)
def test_code_that_naps_until_it_has_its_lock(function: StackFrame, kind: str) -> None:
    wait = judge(Program(EXE), KERNEL["clock_nanosleep"], (native("usleep"), function, STARTED))
    assert (wait.kind, wait.is_work) == (kind, kind == "lock")


def test_a_script_that_sleeps_in_lock_is_told_elsewhere() -> None:
    wait = judge(Program(PYTHON), KERNEL["clock_nanosleep"], (native("usleep"), own("lock")))
    assert wait.kind == "sleep"


def test_a_nap_for_a_lock_is_no_futex() -> None:
    naps = [
        waiting(7, tid, "clock_nanosleep", native("usleep"), native("SmallLock::lock()", EXE))
        for tid in (8, 9)
    ]
    (finding,) = find(facts(*naps, exe=EXE))
    assert finding.text == "2 threads wait for the lock that SmallLock::lock takes"
    assert finding.command == ("offcpu", "-p", "7")


@pytest.mark.parametrize("call", ["openat", ""])
def test_a_supervisor_that_decides_on_calls(call: str) -> None:
    user = (native("open64"), native("read_profile", EXE))
    wait = judge(Program(EXE), SUPERVISED, user, call=call)
    assert (wait.kind, wait.is_work) == ("call", True)
    activity = waiting(7, 8, "futex", *user)._replace(kernel=SUPERVISED, call="openat")
    (finding,) = find(facts(activity, exe=EXE))
    assert "(seccomp_do_user_notification), in read_profile" in finding.text
    assert "a supervisor decides on each such call (seccomp)" in finding.evidence


def test_a_sync_whose_stack_was_not_read_is_near_what_its_thread_runs() -> None:
    synced = waiting(7, 8, "fsync", seconds=5.0)
    between = running(7, 8, native("keep_stub", EXE), STARTED, seconds=0.3)
    elsewhere = running(7, 9, native("serve", EXE), STARTED, seconds=0.6)
    (finding, *_) = find(facts(synced, between, elsewhere, exe=EXE))
    assert finding.text.startswith("waits for fsync near keep_stub")
    (finding, *_) = find(facts(synced, elsewhere, exe=EXE))
    assert "near" not in finding.text


@pytest.mark.parametrize(("owner", "second"), [(9, "?"), (0, "move_funds")])
def test_who_owns_another_lock_is_not_like_those_beside_it(owner: int, second: str) -> None:
    """Thread 9 waits for the futex of the others; its stack was not read."""
    user = (*MUTEX, native("move_funds", EXE), STARTED)
    stays = [waiting(7, tid, "futex", *user, argument=0x2000) for tid in (10, 11)]
    stays.append(waiting(7, 9, "futex", argument=0x2000))
    blocked = (Blocked(7, 10, "futex", (0x1000, 0, 0), words=(2, 0, owner)),)
    evidence = Evidence(facts(*stays, exe=EXE, blocked=blocked))
    (unread,) = evidence.by_thread[9]
    assert evidence.spell(unread.own) == second
