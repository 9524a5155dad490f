"""Waits for Python's GIL by the condition variable that its threads wait at. Pure.

Looks see a thread at random moments, and on a busy machine there are few of them. The sums of waits
are exact, and tell the GIL by its futex: CPython's take_gil (Python/ceval_gil.c) waits for 5 ms
at a time at one pthread_cond_t, which has two futex words side by side. Each lock of threading has
a word of its own, and a wait for it has no time limit.
"""

from __future__ import annotations

import errno
import re
from collections import Counter, defaultdict

from purebpf.findings.evidence import Evidence

__all__ = ["python_gil_waits"]

_PYTHON = re.compile(r"/python[\d.]*t?$")
_NEXT_WORD = 4
_SHORT_S, _MANY = 0.05, 50
"""The mean of waits that end with the interval of 5 ms, even if no CPU is free then."""
_TIMED_OUT = 5.0
"""Waits a second whose time limit expired."""
_FEWEST = 2
"""Threads at one condition variable."""


def python_gil_waits(evidence: Evidence, pid: int) -> dict[int, float]:
    """Return the seconds that threads of a process waited for the GIL; none if there is no sign."""
    if not _PYTHON.search(evidence.process(pid).exe) or not _expires(evidence, pid):
        return {}
    words: dict[int, Counter[int]] = defaultdict(Counter)
    seconds: dict[int, Counter[int]] = defaultdict(Counter)
    for one in evidence.waits_of.get(pid, ()):
        if one.call == "futex":
            words[one.argument][one.tid] += one.times
            seconds[one.argument][one.tid] += round(1e9 * one.seconds)
    best: Counter[int] = Counter()
    for word, by_thread in words.items():
        others = words.get(word + _NEXT_WORD, Counter[int]())
        times = (by_thread + others).total()
        waited = seconds[word] + seconds.get(word + _NEXT_WORD, Counter())
        is_pair = min(len(by_thread), len(others)) >= _FEWEST
        is_short = waited.total() < 1e9 * _SHORT_S * times
        if is_pair and is_short and times >= _MANY and waited.total() > best.total():
            best = waited
    return {tid: nanoseconds / 1e9 for tid, nanoseconds in best.items()}


def _expires(evidence: Evidence, pid: int) -> bool:
    times = evidence.count_calls((pid,), ("futex",), errno.ETIMEDOUT)
    return times >= _TIMED_OUT * evidence.elapsed_s
