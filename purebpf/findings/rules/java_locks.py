"""Java threads that take turns: a lock or a pool of java.util.concurrent. Pure.

Such threads park, as idle workers of a pool do, and their Java frames have no names here. Who wakes
them tells the two apart: the next in turn is woken by a thread of the same group, and one of the
group works all the time; idle workers are woken by whoever submits a job.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator

from purebpf.findings.evidence import Evidence, Stay, seconds_of, threads_of
from purebpf.findings.finding import Finding
from purebpf.findings.rules.cpu import busiest_own
from purebpf.findings.words import describe_activity

__all__ = ["parked_threads"]

_FEWEST, _PARKED, _AT_WORK, _BY_GROUP = 3, 1.0, 0.5, 0.5
"""Threads of a group; how many of them wait, and work, in the mean; wake-ups by each other."""
_BALANCED = re.compile(r"ForkJoin|GC Thread|G1 |C[12] Comp")
"""Groups that wake each other to share work, or belong to the JVM."""
_IDLE_WORKERS = re.compile(
    r"java\.util\.concurrent\.(ThreadPoolExecutor\.getTask|ForkJoinPool\.(awaitWork|scan))"
)
_IDLE = frozenset({"java-park", "cond", "epoll", "accept", "jvm-monitor", "queue"})


def parked_threads(evidence: Evidence) -> Iterator[Finding]:
    """Threads of one name wait for each other, or for one thread that holds a lock."""
    groups: dict[tuple[int, str], list[Stay]] = defaultdict(list)
    for stay in evidence.stays:
        if not _BALANCED.match(stay.comm):
            groups[stay.pid, re.sub(r"\d+", "", stay.comm)].append(stay)
    for (pid, name), stays in groups.items():
        parked = [stay for stay in stays if stay.kind == "java-park" and not _awaits_jobs(stay)]
        cost = evidence.rate(parked)
        tids = {stay.tid for stay in stays}
        if threads_of(parked) < _FEWEST or cost < _PARKED or _woken_by(evidence, tids) < _BY_GROUP:
            continue
        text, support = _turns(evidence, stays, tids)
        if not text:
            continue
        where = busiest_own(parked)
        yield Finding(
            *("lock-convoy", evidence.process(pid).comm, (pid,), cost),
            f'{threads_of(parked)} threads "{name.rstrip("- #")}" {text}'
            + (f", in {evidence.spell(where)}" if where else ""),
            (support,),
            ("offcpu", "-p", str(pid)),
            own=evidence.source(where),
        )


def _awaits_jobs(stay: Stay) -> bool:
    """Return True for an idle thread of an executor."""
    return any(_IDLE_WORKERS.match(frame.name) for frame in stay.user)


def _turns(evidence: Evidence, stays: list[Stay], tids: set[int]) -> tuple[str, str]:
    """Name the threads that work while the others wait: one of the group, or one holder.

    "" if neither works much of the time: then the threads wait for jobs.
    """
    least_s = _AT_WORK * evidence.elapsed_s
    working = [stay for stay in stays if stay.kind not in _IDLE]
    if seconds_of(working) >= least_s:
        text = "wait for each other: a lock or a pool of java.util.concurrent (park)"
        return text, f"the one whose turn it is {describe_activity(evidence, working)}"
    others = _wakers(evidence, tids)
    holder = max(set(others) - tids, key=lambda tid: others[tid], default=0)
    busy = [stay for stay in evidence.by_thread.get(holder, ()) if stay.kind not in _IDLE]
    if seconds_of(busy) < least_s:
        return "", ""
    text = f'wait for a lock of java.util.concurrent (park) that thread "{busy[0].comm}" gives them'
    return text, f"which {describe_activity(evidence, busy)}"


def _wakers(evidence: Evidence, tids: set[int]) -> dict[int, int]:
    """Nanoseconds of waits by the thread that ended them, timers aside."""
    wakers: Counter[int] = Counter()
    for tid in tids:
        wakers.update(evidence.wakers.get(tid, {}))
    del wakers[0]
    return wakers


def _woken_by(evidence: Evidence, tids: set[int]) -> float:
    """Return the part of the waits of threads, timers aside, that one of them ended."""
    wakers = _wakers(evidence, tids)
    return sum(ns for tid, ns in wakers.items() if tid in tids) / (sum(wakers.values()) or 1)
