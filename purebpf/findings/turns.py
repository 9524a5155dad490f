"""Threads that wait for their turn: a pool, a limit, a turnstile or a barrier of their own. Pure.

Takers of jobs wait for a condition, too, and are idle. Two things tell them apart: threads that
share a pool are woken by each other, as who gives a member back wakes the next one; and while they
wait, some of them are at work below the same function.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence

from purebpf.findings.ownership import Program
from purebpf.findings.stays import Stay, seconds_of
from purebpf.findings.waiting import takes_jobs

__all__ = ["take_turns", "with_turns"]

_KINDS = frozenset({"cond", "semaphore"})
_FEWEST = 3
"""Threads that wait for turns."""
_MOSTLY = 0.7
"""The part of the waits that threads of the group end."""
_HELD, _WAITED = 0.5, 0.5
"""Seconds a second of work below the function, and of waits."""
_WORK = frozenset({"cpu", "sleep", "sock-read", "pipe-read", "poll", "child"})


def with_turns(
    stays: Sequence[Stay],
    program: Callable[[int], Program],
    wakers_of: Callable[[Iterable[Stay]], Counter[int]],
    elapsed_s: float,
) -> Iterable[Stay]:
    """Return the stays; waits for turns are of the kind "turn", and in the middle of work.

    Args:
        stays: of all threads.
        program: of a process ID.
        wakers_of: nanoseconds of waits by the thread that ended them.
        elapsed_s: how long the measurement took.
    """
    groups: dict[tuple[int, str], list[Stay]] = defaultdict(list)
    for stay in stays:
        if stay.kind in _KINDS and not stay.is_work and stay.own is not None:
            groups[stay.pid, stay.own.name].append(stay)
    turns = set[int]()
    for (pid, _), waits in groups.items():
        tids = {stay.tid for stay in waits}
        if len(tids) < _FEWEST or seconds_of(waits) < _WAITED * elapsed_s:
            continue
        if not take_turns(wakers_of(waits), waits):
            continue
        callers = _callers(program(pid), waits)
        held = [
            stay
            for stay in stays
            if stay.pid == pid and (stay.is_work or stay.kind in _WORK) and stay.kind != "queue"
            if any(frame.name in callers for frame in stay.user)
        ]
        if seconds_of(held) > _HELD * elapsed_s:
            turns |= {id(stay) for stay in waits}
    for stay in stays:
        yield stay._replace(kind="turn", is_work=True) if id(stay) in turns else stay


def take_turns(wakers: Counter[int], waits: Iterable[Stay]) -> bool:
    """Return True for waits that end, nearly all, by another one of their threads."""
    return sum(wakers[tid] for tid in {stay.tid for stay in waits}) > _MOSTLY * wakers.total()


def _callers(program: Program, waits: Iterable[Stay]) -> set[str]:
    """The own functions below which a thread may hold what these wait for.

    The outermost one is the loop of a worker, if the function that waits is named as one that takes
    jobs.
    """
    callers = set[str]()
    for stay in waits:
        path = list(dict.fromkeys(f.name for f in stay.user if program.owns(f)))
        callers.update(path[1:-1] if path and takes_jobs(path[0]) else path)
    return callers
