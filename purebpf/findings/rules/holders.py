"""Finds the thread that holds a lock, and its activity meanwhile."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container

from purebpf.findings.evidence import Evidence, Stay, seconds_of
from purebpf.findings.facts import StackFrame
from purebpf.findings.goroutines import are_coroutines
from purebpf.findings.waiting import Side
from purebpf.findings.words import describe_activity

__all__ = [
    "are_goroutines",
    "describe_holder",
    "dump_of",
    "inside",
    "is_below",
    "is_endless",
    "is_still",
    "owners_now",
]

_NOT_INSIDE = frozenset({"lock", "network"})
_STILL, _STILL_CPUS = 2.0, 0.02
"""Waits a second that end, and CPUs, of a process in which nothing happens."""
_NOT_HOLDING = frozenset({"lock", "queue", "accept", "epoll", "signal"})
"""A thread that holds a lock does not wait for the next request, nor for the lock."""
_NEVER_IDLE = frozenset({"fsync", "disk", "pipe-write", "sock-write"})
"""Waits without a stack that are likely to be below the lock."""
_ALL_THE_TIME = 0.9
"""The part of a measurement that a wait lasts which never ends."""
_MOMENT = 0.05
_EXPLAINS = 0.4
"""The part of the longest wait that work of the holder explains."""


def owners_now(evidence: Evidence, pid: int) -> dict[int, int]:
    """Return the owners, at the end, of the locks of glibc and Python that threads wait for."""
    owner: dict[int, int] = {}
    held = evidence.facts.lock_holders.get(pid, {})
    for blocked in evidence.facts.blocked:
        if blocked.pid != pid or not blocked.call.startswith("futex"):
            continue
        word = blocked.owner
        if word and word != blocked.tid and evidence.process_of_thread.get(word) == pid:
            owner[blocked.tid] = word
        if blocked.arguments[0] in held:
            owner[blocked.tid] = held[blocked.arguments[0]]
    return owner


def is_endless(evidence: Evidence, stay: Stay) -> bool:
    """Return True for a wait that lasts the whole measurement."""
    return stay.is_open and stay.seconds > _ALL_THE_TIME * evidence.elapsed_s


def describe_holder(evidence: Evidence, stays: list[Stay], where: StackFrame | None) -> str:
    """The activity of who holds the lock meanwhile: by its owner word, or as who woke a waiter."""
    owners: Counter[int] = Counter()
    wakers = evidence.wakers_of(stays)
    for stay in stays:
        for one in evidence.sums.get((stay.tid, stay.call, stay.argument), ()):
            owner = evidence.process_of_thread.get(one.owner, 0) if one.owner else 0
            if owner and evidence.may_share(stay.pid, owner):
                owners[one.owner] += round(1e9 * one.seconds)
    now = owners_now(evidence, stays[0].pid)
    if not owners:
        owners.update(now[stay.tid] for stay in stays if stay.tid in now)
    does = [
        stay
        for tid in owners or wakers
        for stay in evidence.by_thread.get(tid, ())
        if stay.kind not in _NOT_HOLDING and stay.side is not Side.SERVER
        if is_below(stay, where) or (not stay.user and stay.kind in _NEVER_IDLE)
    ]
    if are_goroutines(stays):
        does = inside(evidence, stays[0].pid, where)
    text = _near(evidence, stays, does) or describe_activity(evidence, does)
    if text:
        return f"its holder {text}"
    text = describe_activity(evidence, _of_others(evidence, stays, wakers))
    if text:
        return f"who gives it to them {text}"
    holder = next(iter(owners), 0)
    return f"its holder is thread {holder}" if holder else "its holder did not show"


def _near(evidence: Evidence, stays: list[Stay], does: list[Stay]) -> str:
    """A clause about a holder that waits where no stack was read, but ran for a moment."""
    longest_s = max(seconds_of(one for one in stays if one.tid == stay.tid) for stay in stays)
    if are_goroutines(stays) or not 0 < seconds_of(does) < _MOMENT * longest_s:
        return ""
    if any(stay.kind != "cpu" for stay in does):
        return ""
    functions = Counter(evidence.spell(stay.own) for stay in does if stay.own is not None)
    return f"hardly runs: it waits near {functions.most_common(1)[0][0]}" if functions else ""


def are_goroutines(stays: list[Stay]) -> bool:
    """Return True if these are no waits of threads."""
    return all(stay.tid < 0 for stay in stays)


def dump_of(evidence: Evidence, pid: int) -> tuple[str, ...]:
    """Return the command that shows the threads of a process, and coroutines if those wait."""
    waiting = (stay for stay in evidence.goroutines if stay.pid == pid)
    if any(are_coroutines(stay.user) for stay in waiting):
        return ("dump", "--async", str(pid))
    return ("dump", str(pid))


def is_still(evidence: Evidence, pids: tuple[int, ...]) -> bool:
    """Return True for processes that neither run nor are woken: a lock that changes hands does."""
    ended = sum(one.times for pid in pids for one in evidence.waits_of.get(pid, ()))
    cpus = sum(evidence.cpu_of.get(pid, 0.0) for pid in pids)
    return ended < _STILL * evidence.elapsed_s and cpus < _STILL_CPUS


def inside(
    evidence: Evidence, pid: int, where: StackFrame | None, but: Container[str] = _NOT_INSIDE
) -> list[Stay]:
    """The activity of goroutines that have got beyond a mutex: one of them holds it.

    Waits of the kinds in `but` do not count.
    """
    waiting = [stay for stay in evidence.goroutines if stay.pid == pid]
    running = [stay for stay in evidence.by_process.get(pid, ()) if stay.kind == "cpu"]
    return [stay for stay in (*waiting, *running) if stay.kind not in but and is_below(stay, where)]


def _of_others(evidence: Evidence, stays: list[Stay], wakers: Counter[int]) -> list[Stay]:
    """The work of the thread that wakes most of them, and never waits in their place: a writer.

    Its sleeps between two turns count only if its work is too short to explain the waits.
    """
    waiting = {stay.tid for stay in stays}
    waker = next((tid for tid, _ in wakers.most_common() if tid), 0)
    if waker in waiting:
        return []
    does = [
        stay._replace(kind="cpu" if stay.kind == "queue" else stay.kind)
        for stay in evidence.by_thread.get(waker, ())
        if stay.own is not None and stay.kind != "lock"
    ]
    longest_s = max(seconds_of(one for one in stays if one.tid == tid) for tid in waiting)
    work = [stay for stay in does if stay.is_work]
    return work if seconds_of(work) > _EXPLAINS * longest_s else does


def is_below(stay: Stay, where: StackFrame | None) -> bool:
    """Return True for the time of a function, and of those that it called."""
    if where is None:
        return False
    return any(f.name == where.name and f.module == where.module for f in stay.user)
