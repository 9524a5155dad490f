"""`JavaMaps`: has JVMs that were sampled write the names of their methods, for --java-perf-map."""

from __future__ import annotations

from collections.abc import Iterable

from purebpf.kernel.processes.java_attach import is_java, write_java_perf_map

__all__ = ["JavaMaps"]


class JavaMaps:
    """Asks each JVM when it is first seen, so that a live page has names, and at the end again."""

    def __init__(self) -> None:
        self._problems: dict[int, str] = {}
        self._others: set[int] = set()

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
                self._problems[pid] = write_java_perf_map(pid)
            else:
                self._others.add(pid)

    def hints(self) -> list[str]:
        """Which JVMs did not, and why."""
        return [
            f"Java (PID {pid}) wrote no perf map: {why}"
            for pid, why in self._problems.items()
            if why
        ]
