"""Descriptors and threads that grow in number."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

from purebpf.findings.evidence import Evidence
from purebpf.findings.facts import Process
from purebpf.findings.finding import Finding
from purebpf.findings.words import call_site

__all__ = ["descriptor_leaks", "thread_leaks"]

_LEAST, _FEWEST = 1.0, 30
"""A second, and in all."""
_UP, _EARLY, _READINGS = 0.6, 0.8, 5
_FEW_READINGS, _MUCH = 3, 90
"""On a busy machine there are fewer readings, which are enough for a number that grows by much."""
_NUMBER = re.compile(r"\[\d+\]|\d+")


def descriptor_leaks(evidence: Evidence) -> Iterator[Finding]:
    """A process opens descriptors all the time and closes none of them."""
    for process in evidence.facts.processes:
        rate = _growth(process.files, evidence.elapsed_s)
        if rate < _LEAST or process.is_new:
            continue
        links = evidence.facts.descriptors.get(process.pid, {})
        kinds = Counter(_NUMBER.sub("*", link) for link in links.values())
        target, times = kinds.most_common(1)[0] if kinds else ("", 0)
        function = call_site(evidence, (process.pid,), _call_of(target))
        yield Finding(
            *("growth", process.comm, (process.pid,), min(1.0, 0.2 + rate / 100)),
            f"opens {rate:.0f} descriptors a second that it does not close "
            f"({process.files[-1]} open files now)",
            (
                f"{times} of {len(links)} are {_spell(links, target)}" if times else "",
                f"in {function}" if function else "",
            ),
            ("open", "-p", str(process.pid)) if target.startswith("/") else _trace(process),
        )


def _call_of(target: str) -> str:
    """Return the part of a kernel function's name that makes a descriptor of this kind."""
    return (
        "sock" if target.startswith("socket") else "pipe" if target.startswith("pipe") else "open"
    )


def _spell(links: dict[int, str], target: str) -> str:
    """Return the path of all descriptors alike, or else the pattern."""
    alike = {link for link in links.values() if _NUMBER.sub("*", link) == target}
    return alike.pop() if len(alike) == 1 else target


def _trace(process: Process) -> tuple[str, ...]:
    return ("trace", "-p", str(process.pid))


def thread_leaks(evidence: Evidence) -> Iterator[Finding]:
    """A process starts threads all the time that do not end."""
    for process in evidence.facts.processes:
        rate = _growth(process.thread_counts, evidence.elapsed_s)
        if rate < _LEAST or process.is_new:
            continue
        places: Counter[str] = Counter()
        for tid in {s.tid for s in evidence.by_process.get(process.pid, ()) if s.tid > 0}:
            owns = (stay.own for stay in evidence.by_thread[tid] if stay.own is not None)
            places[next(map(evidence.spell, owns), "")] += 1
        del places[""]
        where = places.most_common(1)[0] if places else None
        yield Finding(
            *("growth", process.comm, (process.pid,), min(1.0, 0.2 + rate / 100)),
            f"starts {rate:.0f} threads a second that do not end "
            f"({process.thread_counts[-1]} threads now)",
            (f"{where[1]} of them are in {where[0]}" if where else "",),
            ("dump", str(process.pid)),
        )


def _growth(counts: Sequence[int], elapsed_s: float) -> float:
    """Return the growth a second of a number that rises in most steps and never falls, else 0.0.

    It is read at the start, then each second; a busy machine leaves readings out.
    """
    if len(counts) < _FEW_READINGS or counts[-1] < _FEWEST:
        return 0.0
    steps = [after - before for before, after in pairwise(counts)]
    grown = counts[-1] - counts[0]
    if len(counts) < _READINGS and grown < _MUCH:
        return 0.0
    if min(steps) < 0 or sum(step > 0 for step in steps) < _UP * len(steps):
        return 0.0
    is_early = counts[len(counts) // 2] - counts[0] > _EARLY * grown
    return 0.0 if is_early else grown / max(len(steps), elapsed_s - 1.0)
