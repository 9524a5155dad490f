"""The kernel's work: interrupts, workers, timers."""

from __future__ import annotations

from contextlib import ExitStack

from purebpf.measure.requests import narrow
from purebpf.results import Loss
from purebpf.tools.kwork import request
from purebpf.tools.kwork.rows import Result
from purebpf.tools.kwork.session import Kwork
from purebpf.tools.profile.request import ProfileOptions
from purebpf.tools.top.screens.base import Tallies
from purebpf.tools.top.tally import Tally, columns

__all__ = ["KernelWork", "make"]

_DEFAULTS = ("shares", "kinds", "names", "by_cpu", "stacks", "each_run", "rows", "interval_s")
"""Options of the command that `top` does not have."""


class KernelWork(Tallies):
    """Runs of handlers and work items, of the whole machine."""

    columns = columns("runs")
    deeper = dict.fromkeys(("kind",), "function")
    heat_unit = "runs/s"

    def __init__(self, options: ProfileOptions, command_pid: int = 0) -> None:
        super().__init__(options.pids, options.duration_s)
        self._kwork = Kwork(
            narrow(request.KworkOptions, options, defaults=_DEFAULTS, duration_s=None), command_pid
        )

    def start(self, stack: ExitStack) -> None:
        """Load and attach."""
        stack.enter_context(self._kwork)

    def tallies(self) -> tuple[list[Tally], Loss]:
        """Return the work since the last call of this."""
        return _read(self._kwork.interval())

    def end(self) -> tuple[list[Tally], Loss]:
        """The same for the last time."""
        return _read(self._kwork.stop())


def _read(result: Result) -> tuple[list[Tally], Loss]:
    tallies = [
        Tally(
            row.kind,
            row.kind,
            row.id,
            f"{row.name}  {row.kind}",
            row.runs,
            row.total_ns,
            buckets=row.buckets,
        )
        for row in result.rows
    ]
    return tallies, result.loss


def make(options: ProfileOptions, _by: str, _interval_s: float, command_pid: int) -> KernelWork:
    """The screen."""
    return KernelWork(options, command_pid)
