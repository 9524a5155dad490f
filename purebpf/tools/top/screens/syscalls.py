"""The system calls of tasks, and their durations."""

from __future__ import annotations

from contextlib import ExitStack

from purebpf.measure.requests import narrow
from purebpf.results import Loss
from purebpf.tools.profile.request import ProfileOptions
from purebpf.tools.summary import request
from purebpf.tools.summary.session import Summary
from purebpf.tools.summary.table import Label, Table
from purebpf.tools.top.screens.base import Tallies
from purebpf.tools.top.tally import Tally, columns

__all__ = ["SystemCalls", "make"]

_DEFAULTS = (
    "calls",
    "only_failed",
    "errno",
    "errno_summary",
    "histogram",
    "cost",
    "faults",
    "fault_places",
    "map_entries",
    "hook",
)
"""Options of the command that `top` does not have."""

_OWNERS = ("process", "thread", "cgroup")


class SystemCalls(Tallies):
    """System calls that returned."""

    columns = columns("calls", errors=True)
    deeper = dict.fromkeys(_OWNERS, "syscall")
    heat_unit = "calls/s"
    reloads = True

    def __init__(
        self, options: ProfileOptions, by: str, interval_s: float, command_pid: int = 0
    ) -> None:
        super().__init__(options.pids, options.duration_s)
        mode = by if by in _OWNERS else "total"
        wanted = narrow(
            request.SummaryOptions, options, defaults=_DEFAULTS, mode=mode, interval_s=interval_s
        )
        self._summary = Summary(wanted, command_pid)

    def start(self, stack: ExitStack) -> None:
        """Load and attach."""
        stack.enter_context(self._summary)

    def tallies(self) -> tuple[list[Tally], Loss]:
        """Return the calls that returned since the last call of this."""
        return _read(self._summary.interval())

    def end(self) -> tuple[list[Tally], Loss]:
        """The same for the last time."""
        return _read(self._summary.stop())


def _read(table: Table) -> tuple[list[Tally], Loss]:
    tallies = [
        Tally(
            group.label,
            _spell(table.mode, group.label),
            call,
            call.name,
            row.calls,
            row.total_ns,
            row.errors,
            row.max_ns,
        )
        for group in table.groups
        for call, row in group.rows
    ]
    return tallies, table.loss


def _spell(mode: str, label: Label) -> str:
    if mode == "cgroup":
        return label.name or f"id:{label.number}"
    return f"{label.name or '?'} ({label.number})"


def make(options: ProfileOptions, by: str, interval_s: float, command_pid: int) -> SystemCalls:
    """The screen."""
    return SystemCalls(options, by, interval_s, command_pid)
