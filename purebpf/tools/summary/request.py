"""A request for a summary of system calls, by a command line or by a program."""

from __future__ import annotations

from purebpf.measure.options import RunOptions, TargetOptions

__all__ = ["FAULTS", "HISTOGRAMS", "MAP_ENTRIES", "MODES", "SummaryOptions"]

MODES = ("total", "thread", "process", "cgroup", "command")
FAULTS = ("maj", "min", "all")
"""Which page faults can be counted: major, minor or both."""
MAP_ENTRIES = 131072
"""Rows that the modes other than total have room for: 17 MB."""
HISTOGRAMS = 8192
_ERRORS = 16384
"""Histograms (1.6 kB each) and pairs of row and error that there is room for by default."""


class SummaryOptions(TargetOptions, RunOptions):
    """The calls to count, and their tasks. Empty tuples and None mean: no restriction.

    `histogram` counts durations by size, for percentiles; `errno_summary` counts failed calls by
    their error; `cost` has the kernel measure the programs for a moment, for `Table.cost`.
    `faults` is one of FAULTS, or "" for no page faults; `fault_places` with mappings and functions.
    `map_entries` is the number of rows in the modes other than total, None: `MAP_ENTRIES`, fewer of
    them with a histogram. `duration_s` None: until a signal, or until `command` ends. `hook` None:
    the best one that the kernel has ("tp_btf", "raw_tp", "tracepoint").
    """

    mode: str = "total"
    calls: tuple[str, ...] = ()
    only_failed: bool = False
    errno: int | None = None
    errno_summary: bool = False
    histogram: bool = False
    cost: bool = False
    faults: str = ""
    fault_places: bool = False
    interval_s: float | None = None
    map_entries: int | None = None
    hook: str | None = None

    @property
    def row_entries(self) -> int:
        """Rows that there is room for in the modes other than total."""
        return self.map_entries or MAP_ENTRIES

    @property
    def histogram_entries(self) -> int:
        """The room for histograms: one for each row of a wanted number."""
        return self.map_entries or HISTOGRAMS

    @property
    def error_entries(self) -> int:
        """Pairs of a row and an error that there is room for."""
        return max(self.map_entries or 0, _ERRORS)

    @property
    def has_filters(self) -> bool:
        """True if a filter may still reject a call of a counted task."""
        return bool(
            self.only_failed
            or self.errno
            or self.calls
            or self.cpus
            or self.uid is not None
            or self.cgroup is not None
        )
