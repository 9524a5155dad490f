"""The tasks that wait for a CPU."""

from __future__ import annotations

from contextlib import ExitStack

from purebpf.measure.latency import Interval, Latency, Request
from purebpf.measure.requests import narrow
from purebpf.results import Loss
from purebpf.tools.profile.request import ProfileOptions
from purebpf.tools.top.screens.base import Tallies
from purebpf.tools.top.tally import Tally, columns

__all__ = ["RunQueue", "make"]

_KINDS = {"process": "pid", "thread": "tid", "cgroup": "cgroup"}


class RunQueue(Tallies):
    """Waits in run queues."""

    columns = columns("waits")
    heat_unit = "waits/s"
    reloads = True

    def __init__(self, options: ProfileOptions, by: str, command_pid: int = 0) -> None:
        super().__init__(options.pids, options.duration_s)
        wanted = narrow(
            *(Request, options),
            defaults=("groups", "interval_s", "times"),
            measure="run_queue",
            by=_KINDS[by],
            unit_ns=1,
        )
        self._latency = Latency(wanted, command_pid)

    def start(self, stack: ExitStack) -> None:
        """Load and attach."""
        stack.enter_context(self._latency)

    def tallies(self) -> tuple[list[Tally], Loss]:
        """Waits since the last call of this."""
        return _read(self._latency.interval())

    def end(self) -> tuple[list[Tally], Loss]:
        """The same for the last time."""
        return _read(self._latency.stop())


def _read(interval: Interval) -> tuple[list[Tally], Loss]:
    tallies = []
    for group, buckets, total_ns in interval.distributions:
        name = group.name or "?"
        if group.kind != "cgroup":
            name = f"{name} ({group.number})"
        tallies.append(
            Tally((), "", group.number, name, sum(buckets), total_ns, buckets=tuple(buckets))
        )
    return tallies, interval.loss


def make(options: ProfileOptions, by: str, _interval_s: float, command_pid: int) -> RunQueue:
    """The screen."""
    return RunQueue(options, by, command_pid)
