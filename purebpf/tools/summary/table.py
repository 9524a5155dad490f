"""The result of a run, or of an interval of it: groups of rows. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from purebpf.results import Loss
from purebpf.tools.summary.calls import Call
from purebpf.tools.summary.statistics import Statistics
from purebpf.tuples import NamedTuple

__all__ = [
    "SORT_KEYS",
    "Cost",
    "FaultPlace",
    "Faults",
    "Group",
    "Label",
    "OpenCall",
    "SummaryRow",
    "Table",
    "sort_groups",
]


class Label(NamedTuple):
    """The owner of a group's calls: a thread's, a process's or a cgroup's; of mode total, all.

    `number` is the thread, process or cgroup id (0 of mode command), `name` its comm or path; ""
    where it is not known.
    """

    number: int = 0
    name: str = ""


class SummaryRow(NamedTuple):
    """One system call's statistics."""

    call: Call
    statistics: Statistics


class FaultPlace(NamedTuple):
    """The place of page faults.

    Attributes:
        kind: "minor" or "major".
        function: of the program, which touched the page or made the system call that did.
        mapping: a file's name, `[heap]`, `[stack]`, `[anonymous]` or `[unknown]`.
        times: how many.
    """

    kind: str
    function: str
    mapping: str
    times: int = 0


class Faults(NamedTuple):
    """Page faults of a group, as getrusage(2) counts them.

    Attributes:
        minor, major: how many; None: this kind is not counted.
        places: ranked.
    """

    minor: int | None
    major: int | None
    places: tuple[FaultPlace, ...] = ()

    def plus(self, other: Faults) -> Faults:
        """Both together."""
        counts: Counter[FaultPlace] = Counter()
        for place in (*self.places, *other.places):
            counts[place._replace(times=0)] += place.times
        ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        places = tuple(place._replace(times=count) for place, count in ranked)
        minor = _sum(self.minor, other.minor)
        return Faults(minor, _sum(self.major, other.major), places)


def _sum(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one + other


class Group(NamedTuple):
    """A thread, a process, a cgroup, all threads of a name, or everything.

    `faults` None: they are not counted.
    """

    label: Label
    rows: tuple[SummaryRow, ...]
    faults: Faults | None = None

    @property
    def calls(self) -> int:
        """The calls of all rows."""
        return sum(row.statistics.calls for row in self.rows)

    @property
    def total_ns(self) -> int:
        """The time of all rows."""
        return sum(row.statistics.total_ns for row in self.rows)


class OpenCall(NamedTuple):
    """A call that had not returned at the end.

    `elapsed_ns` is None for one that was open when the run began.
    """

    pid: int
    tid: int
    comm: str
    call: Call
    elapsed_ns: int | None


class Cost(NamedTuple):
    """The cost of the programs, while the kernel measured them; zeros if it did not."""

    run_time_ns: int = 0
    run_cnt: int = 0


class Table(NamedTuple):
    """Everything there is to print.

    Attributes:
        mode: one of `purebpf.tools.summary.request.MODES`.
        started_ns, duration_ns: since the start of the run, and the length of this interval.
        interval: its number from 0.
        groups: unsorted; see `arranged`.
        open_calls: at the end of the run; of an interval before the last, ().
        loss: the losses behind the numbers (`purebpf.tools.summary.loss`).
        cost: of the BPF programs.
    """

    mode: str
    started_ns: int
    duration_ns: int
    interval: int
    groups: tuple[Group, ...]
    open_calls: tuple[OpenCall, ...]
    loss: Loss
    cost: Cost


SORT_KEYS: dict[str, Callable[[Statistics], float]] = {
    "total": lambda row: row.total_ns,
    "calls": lambda row: row.calls,
    "errors": lambda row: row.errors,
    "min": lambda row: row.min_ns,
    "avg": lambda row: row.avg_ns,
    "max": lambda row: row.max_ns,
    "stddev": lambda row: row.stddev_pct,
    "p50": lambda row: row.percentile_ns(50) or 0,
    "p95": lambda row: row.percentile_ns(95) or 0,
    "p99": lambda row: row.percentile_ns(99) or 0,
}
"""What rows can be sorted by, the greatest first."""


def sort_groups(
    groups: Sequence[Group], sort: str = "total", top: int | None = None
) -> list[Group]:
    """Groups, only the first `top` of them, with all of their rows; both sorted.

    Groups are sorted by their calls for "calls", else by their total time; equal ones by name.
    Titles and shares of a group need all rows: cut them where they are written.
    """
    key = SORT_KEYS[sort]
    chosen = sorted(
        groups,
        key=lambda group: (-(group.calls if sort == "calls" else group.total_ns), group.label),
    )[:top]
    return [
        group._replace(
            rows=tuple(sorted(group.rows, key=lambda row: (-key(row.statistics), row.call.name)))
        )
        for group in chosen
    ]
