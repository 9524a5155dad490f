"""The monitors that threads of JVMs wait for, as facts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from purebpf.findings.facts import JavaMonitor
from purebpf.observe.runtimes.hotspot.monitors_now import read_wanted_monitors
from purebpf.syscall.process_memory import reading_others

__all__ = ["java_monitors"]

_MOST_PROCESSES = 8


def java_monitors(pids: Iterable[int]) -> Iterator[JavaMonitor]:
    """The monitors that threads of these processes wait to enter now."""
    with reading_others():
        for pid in list(pids)[:_MOST_PROCESSES]:
            yield from (JavaMonitor(pid, *wanted) for wanted in read_wanted_monitors(pid))
