"""`JavaMaps`: has JVMs that were sampled write the names of their methods, for --java-perf-map."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from purebpf.observe.processes.java_attach import is_java, write_java_perf_map

__all__ = ["JavaMaps"]

_PATIENCE_S = 6.0
"""Seconds for all JVMs of a run: anyone can start processes that look like one and never answer.
A JVM takes 0.2 s, twice.
"""
_ONE_S = 3.0
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
        self._silent: set[int] = set()
        self._left_s = _PATIENCE_S

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
        """Return the reason why it did not write its map; "" if it did."""
        if pid in self._silent:
            return self._problems[pid]
        if self._left_s <= 0:
            return f"JVMs took {_PATIENCE_S:.0f} s together already"
        begun_s, patience_s = self._clock(), min(_ONE_S, self._left_s)
        try:
            return write_java_perf_map(pid, patience_s)
        finally:
            took_s = self._clock() - begun_s
            self._left_s -= took_s
            if took_s >= patience_s:
                self._silent.add(pid)

    def hints(self) -> list[str]:
        """Lines that name the JVMs that did not, with the reason."""
        problems = [(pid, why) for pid, why in self._problems.items() if why]
        hints = [f"Java (PID {pid}) wrote no perf map: {why}" for pid, why in problems[:_SHOWN]]
        if len(problems) > _SHOWN:
            hints.append(f"{len(problems) - _SHOWN} more JVMs wrote no perf map")
        return hints
