"""A request for a summary of system calls, by a command line or by a program."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["MAP_ENTRIES", "MODES", "Options"]

MODES = ("total", "thread", "process", "cgroup")
MAP_ENTRIES = 131072
"""Rows that the modes other than total have room for: 17 MB."""


class Options(NamedTuple):
    """What to count, and of whom. Empty tuples and None mean: no restriction.

    `histogram` counts durations by size, for percentiles; `errno_summary` counts failed calls by
    their error; `cost` has the kernel measure the programs for a moment, for `Table.cost`.
    `duration_s` None: until a signal, or until `command` ends. `hook` None: the best one that the
    kernel has ("tp_btf", "raw_tp", "tracepoint").
    """

    mode: str = "total"
    pids: tuple[int, ...] = ()
    tids: tuple[int, ...] = ()
    tree: bool = False
    cpus: tuple[int, ...] = ()
    cgroup: str | None = None
    uid: int | None = None
    calls: tuple[str, ...] = ()
    only_failed: bool = False
    errno: int | None = None
    errno_summary: bool = False
    histogram: bool = False
    cost: bool = False
    interval_s: float | None = None
    duration_s: float | None = None
    command: tuple[str, ...] = ()
    map_entries: int = MAP_ENTRIES
    hook: str | None = None

    @property
    def has_filters(self) -> bool:
        """Whether a call of a task that is counted may still be left out."""
        return bool(
            self.only_failed
            or self.errno
            or self.calls
            or self.cpus
            or self.uid is not None
            or self.cgroup is not None
        )
