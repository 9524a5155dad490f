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
from purebpf.findings.words import describe_activity

__all__ = ["parked_threads"]

_FEWEST, _PARKED, _AT_WORK, _BY_GROUP = 3, 1.0, 0.7, 0.5
"""Threads of a group; how many of them wait, and work, in the mean; wake-ups by each other."""
_BALANCED = re.compile(r"ForkJoin|GC Thread|G1 |C[12] Comp")
"""Groups that wake each other to share work, or belong to the JVM."""
_IDLE = frozenset({"java-park", "cond", "epoll", "accept", "jvm-monitor", "queue"})


def parked_threads(evidence: Evidence) -> Iterator[Finding]:
    """Threads of one name wait for each other, one at a time works."""
    groups: dict[tuple[int, str], list[Stay]] = defaultdict(list)
    for stay in evidence.stays:
        if not _BALANCED.match(stay.comm):
            groups[stay.pid, re.sub(r"\d+", "", stay.comm)].append(stay)
    for (pid, name), stays in groups.items():
        parked = [stay for stay in stays if stay.kind == "java-park"]
        working = [stay for stay in stays if stay.kind not in _IDLE]
        cost = evidence.rate(parked)
        if (
            threads_of(parked) < _FEWEST
            or cost < _PARKED
            or seconds_of(working) < _AT_WORK * evidence.elapsed_s
            or _woken_by(evidence, {stay.tid for stay in stays}) < _BY_GROUP
        ):
            continue
        yield Finding(
            *("lock-convoy", evidence.process(pid).comm, (pid,), cost),
            f'{threads_of(parked)} threads "{name.rstrip("- #")}" wait for each other: a lock or a '
            "pool of java.util.concurrent (park)",
            (f"the one whose turn it is {describe_activity(evidence, working)}",),
            ("offcpu", "-p", str(pid)),
        )


def _woken_by(evidence: Evidence, tids: set[int]) -> float:
    """Return the part of the waits of threads, timers aside, that one of them ended."""
    wakers: Counter[int] = Counter()
    for tid in tids:
        wakers.update(evidence.wakers.get(tid, {}))
    known = {tid: ns for tid, ns in wakers.items() if tid}
    return sum(ns for tid, ns in known.items() if tid in tids) / (sum(known.values()) or 1)
