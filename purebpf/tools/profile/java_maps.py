"""`JavaMaps`: has JVMs that were sampled write the names of their methods, for --java-perf-map."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable

from purebpf.observe.processes.java_attach import is_java, write_java_perf_map
from purebpf.syscall import proc

__all__ = ["JavaMaps"]

_PATIENCE_S = 30.0
"""For all JVMs of a user: anyone can start processes that look like one and never answer."""
_SHOWN = 8


class JavaMaps:
    """Asks each JVM when it is first seen, so that a live page has names, and at the end again.

    Args:
        clock: seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._problems: dict[int, str] = {}
        self._others: set[int] = set()
        self._waited_s: defaultdict[int | None, float] = defaultdict(float)

    def write(self, pids: Iterable[int], *, again: bool = False) -> None:
        """Have the JVMs among these processes write their maps.

        Args:
            pids: processes that were sampled.
            again: also those that have written one: they may have compiled more since.
        """
        for pid in sorted(set(pids) - self._others):
            if pid in self._problems and not again:
                continue
            if pid in self._problems or is_java(pid):
                self._problems[pid] = self._ask(pid)
            else:
                self._others.add(pid)

    def _ask(self, pid: int) -> str:
        """Why it did not write its map; "" if it did."""
        owner = proc.owner(pid)
        waited_s = self._waited_s[owner]
        if waited_s >= _PATIENCE_S:
            return f"JVMs of user {owner} took {waited_s:.0f} s already"
        begun_s = self._clock()
        try:
            return write_java_perf_map(pid)
        finally:
            self._waited_s[owner] += self._clock() - begun_s

    def hints(self) -> list[str]:
        """Which JVMs did not, and why."""
        problems = [(pid, why) for pid, why in self._problems.items() if why]
        hints = [f"Java (PID {pid}) wrote no perf map: {why}" for pid, why in problems[:_SHOWN]]
        if len(problems) > _SHOWN:
            hints.append(f"{len(problems) - _SHOWN} more JVMs wrote no perf map")
        return hints
