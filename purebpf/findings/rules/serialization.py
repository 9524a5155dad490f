"""Programs that pack and unpack what their own processes send each other. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from purebpf.findings.evidence import Evidence, Stay, seconds_of
from purebpf.findings.finding import Finding
from purebpf.findings.words import share

__all__ = ["packed_tasks"]

_PACKING = re.compile(r"(ForkingPickler|_?(Un)?[Pp]ickler)\b|pickle_(dump|load)s?$|_Pickle")
_PACKERS = re.compile(r"/_pickle\.[\w.-]*so$|/pickle\.py$|/multiprocessing/reduction\.py$")
_LEAST, _MOSTLY = 0.15, 0.4
"""CPUs of a program and its processes, and the part of them that goes to packing."""


def packed_tasks(evidence: Evidence) -> Iterator[Finding]:
    """Most CPU time goes to the packing of tasks and results, and not to the tasks."""
    families: dict[tuple[str, str], list[Stay]] = {}
    for stay in evidence.cpu:
        families.setdefault(evidence.family(stay.pid), []).append(stay)
    for stays in families.values():
        packing = [stay for stay in stays if _packs(stay)]
        cost = evidence.rate(packing)
        if evidence.rate(stays) < _LEAST or seconds_of(packing) < _MOSTLY * seconds_of(stays):
            continue
        seconds: Counter[int] = Counter()
        for stay in packing:
            seconds[stay.pid] += round(1e6 * stay.seconds)
        pids = tuple(pid for pid, _ in seconds.most_common() if pid in evidence.processes)
        parents = [pid for pid in pids if any(evidence.process(p).ppid == pid for p in pids)]
        if not parents:
            continue
        parent = parents[0]
        waits = [s for s in evidence.by_process.get(parent, ()) if s.is_work and s.own is not None]
        waiter = max(waits, key=lambda stay: stay.seconds, default=None)
        yield Finding(
            *("serialization", evidence.process(parent).comm),
            *((parent, *(pid for pid in pids if pid != parent)), cost),
            f"packs and unpacks (pickle) what {len(pids)} processes of it send each other: "
            f"{share(seconds_of(packing), seconds_of(stays))} of their CPU time",
            (
                f"for {evidence.spell(waiter.own)}" if waiter else "",
                "it sends less if tasks are small, or have what they need already",
            ),
            ("profile", "--tree", "-p", str(parent)),
            own=evidence.source(waiter.own) if waiter else None,
        )


def _packs(stay: Stay) -> bool:
    return any(_PACKERS.search(f.module) or _PACKING.search(f.name) for f in stay.user)
