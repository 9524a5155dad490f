"""Counts of system calls, grouped by program. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Set as AbstractSet

from purebpf.findings.evidence import Evidence
from purebpf.findings.facts import CallCount

__all__ = ["by_family", "main_pid", "members", "started_by"]


def by_family(evidence: Evidence) -> dict[tuple[str, str], list[CallCount]]:
    """Counts by program; processes that came and went are found by their name."""
    groups: dict[tuple[str, str], list[CallCount]] = defaultdict(list)
    living = {process.comm: process.pid for process in evidence.facts.processes}
    for count in evidence.facts.calls:
        pid = count.pid
        if pid not in evidence.processes:  # it came and went: a loop of short programs
            comm = next((stay.comm for stay in evidence.by_process.get(pid, ())), "")
            if not comm:
                continue
            groups[evidence.family(living[comm]) if comm in living else (comm, "")].append(count)
            continue
        groups[evidence.family(pid)].append(count)
    return groups


def members(
    evidence: Evidence, family: tuple[str, str], counts: list[CallCount]
) -> tuple[int, ...]:
    """The processes of a group, those that live first."""
    return tuple(dict.fromkeys((*evidence.pids_of(family), *(count.pid for count in counts))))


def main_pid(counts: list[CallCount]) -> int:
    """The process with most of these calls."""
    by_pid: Counter[int] = Counter()
    for count in counts:
        by_pid[count.pid] += count.times
    return by_pid.most_common(1)[0][0]


def started_by(evidence: Evidence, comm: str, pids: AbstractSet[int]) -> str:
    """A clause about the parent of processes of one name, if most of them came and went."""
    if 2 * len(pids & evidence.processes.keys()) > len(pids):
        return ""
    parents: Counter[int] = Counter()
    for start in evidence.facts.starts:
        if start.comm == comm:
            parents[start.parent] += start.times
    for parent, times in parents.most_common(1):
        if parent in evidence.processes:
            command = evidence.process(parent).command
            return f"started {times} times by {evidence.name(parent)}: {command}"
    return f"in {len(pids)} processes that came and went"
