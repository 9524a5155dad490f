"""The measured work, added up. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from purebpf.results import Loss
from purebpf.tuples import NamedTuple

if TYPE_CHECKING:
    from purebpf.observe.instruments.cpu_shares import Shares

__all__ = ["SOFTIRQS", "Host", "KworkRow", "Result", "Run", "merge", "subtract", "subtract_hosts"]

SOFTIRQS = (
    *("hi", "timer", "net_tx", "net_rx", "block", "irq_poll", "tasklet", "sched", "hrtimer"),
    "rcu",
)
"""The numbers of include/linux/interrupt.h; the names of /proc/softirqs, in small letters."""


class KworkRow(NamedTuple):
    """The runs of one function, handler or softirq. Times in nanoseconds.

    Attributes:
        kind: one of `purebpf.tools.kwork.request.KINDS`.
        id: the number of the interrupt or softirq, or the address of the function.
        name: of the handler, softirq or function.
        cpu: where it ran; -1: everywhere.
        runs: those that ended.
        total_ns, max_ns: their duration, and the longest of them.
        max_end_ns: when that ended, of CLOCK_MONOTONIC.
        delayed: runs with a wait that began while purebpf measured.
        delay_ns, max_delay_ns: how long they waited, and the longest wait.
        max_delay_end_ns: when that ended.
        buckets, delay_buckets: of nanoseconds; see `purebpf.results.shape.histogram`.
        stack: the functions that queued it, the innermost first; () if that was not asked for.
    """

    kind: str
    id: int
    name: str
    cpu: int
    runs: int
    total_ns: int
    max_ns: int
    max_end_ns: int
    delayed: int
    delay_ns: int
    max_delay_ns: int
    max_delay_end_ns: int
    buckets: tuple[int, ...]
    delay_buckets: tuple[int, ...]
    stack: tuple[str, ...] = ()

    @property
    def place(self) -> tuple[object, ...]:
        """The key of the row: kind, id, CPU and stack."""
        return (self.kind, self.id, self.cpu, self.stack)


class Host(NamedTuple):
    """The time of a softirq in a process that it interrupted.

    What the process did may have raised it: a packet to this machine is received while it is sent.

    Attributes:
        softirq: its name, as of `KworkRow.name`.
        pid, comm: of the process.
        total_ns: the time.
    """

    softirq: str
    pid: int
    comm: str
    total_ns: int


class Run(NamedTuple):
    """A run of an interrupt, a softirq, work or a timer. Times are nanoseconds of CLOCK_MONOTONIC.

    Attributes:
        began_ns, ended_ns: when.
        cpu: where.
        kind: one of `purebpf.tools.kwork.request.KINDS`.
        name: of the handler, softirq or function.
        wait_ns: from the request until it began; None: unknown.
    """

    began_ns: int
    ended_ns: int
    cpu: int
    kind: str
    name: str
    wait_ns: int | None


class Result(NamedTuple):
    """The measured work of an interval or a whole run; `time_s` is its end, since the start.

    `shares`: the time of each CPU and each task; None: not asked for. `hosts`: the processes that
    softirqs interrupted, most time first.
    """

    rows: tuple[KworkRow, ...]
    elapsed_s: float
    time_s: float
    cpus: int
    loss: Loss
    notes: tuple[str, ...] = ()
    shares: Shares | None = None
    hosts: tuple[Host, ...] = ()


def merge(rows: Iterable[KworkRow]) -> list[KworkRow]:
    """One row for each place, in the order of their first."""
    merged: dict[tuple[object, ...], KworkRow] = {}
    for row in rows:
        merged_row = merged.get(row.place)
        merged[row.place] = row if merged_row is None else _add(merged_row, row)
    return list(merged.values())


def _add(one: KworkRow, other: KworkRow) -> KworkRow:
    longer = max(one, other, key=lambda row: row.max_ns)
    later = max(one, other, key=lambda row: row.max_delay_ns)
    return one._replace(
        runs=one.runs + other.runs,
        total_ns=one.total_ns + other.total_ns,
        max_ns=longer.max_ns,
        max_end_ns=longer.max_end_ns,
        delayed=one.delayed + other.delayed,
        delay_ns=one.delay_ns + other.delay_ns,
        max_delay_ns=later.max_delay_ns,
        max_delay_end_ns=later.max_delay_end_ns,
        buckets=tuple(map(sum, zip(one.buckets, other.buckets, strict=True))),
        delay_buckets=tuple(map(sum, zip(one.delay_buckets, other.delay_buckets, strict=True))),
    )


def subtract(now: Iterable[KworkRow], before: Iterable[KworkRow]) -> list[KworkRow]:
    """Return the differences between two readings; the longest remain the ones of the run so
    far.
    """
    earlier = {row.place: row for row in before}
    return [
        left
        for row in now
        if (left := _less(row, earlier[row.place]) if row.place in earlier else row).runs
    ]


def _less(row: KworkRow, before: KworkRow) -> KworkRow:
    pairs = zip(row.buckets, before.buckets, strict=True)
    delays = zip(row.delay_buckets, before.delay_buckets, strict=True)
    return row._replace(
        runs=row.runs - before.runs,
        total_ns=row.total_ns - before.total_ns,
        delayed=row.delayed - before.delayed,
        delay_ns=row.delay_ns - before.delay_ns,
        buckets=tuple(count - less for count, less in pairs),
        delay_buckets=tuple(count - less for count, less in delays),
    )


def subtract_hosts(now: Iterable[Host], before: Iterable[Host]) -> tuple[Host, ...]:
    """Return the differences between two readings, most time first."""
    earlier = {(host.softirq, host.pid): host.total_ns for host in before}
    left = (
        host._replace(total_ns=host.total_ns - earlier.get((host.softirq, host.pid), 0))
        for host in now
    )
    return tuple(sorted((host for host in left if host.total_ns), key=lambda host: -host.total_ns))
