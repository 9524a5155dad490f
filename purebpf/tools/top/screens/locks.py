"""The kernel's locks that threads wait for."""

from __future__ import annotations

from contextlib import ExitStack

from purebpf.measure.requests import narrow
from purebpf.results import Loss
from purebpf.tools.lock import request
from purebpf.tools.lock.event import LockRow
from purebpf.tools.lock.session import Locks
from purebpf.tools.profile.request import ProfileOptions
from purebpf.tools.top.screens.base import Tallies
from purebpf.tools.top.tally import Tally, columns, differences

__all__ = ["KernelLocks", "make"]

_DEFAULTS = (
    *("rows", "types", "functions", "locks", "sort", "slower_ms", "stacks", "userspace"),
    "interval_s",
)
"""Options of the command that `top` does not have."""


class KernelLocks(Tallies):
    """Waits for locks; those that go on count up to now."""

    columns = columns("waits")
    heat_unit = "waits/s"
    reloads = True

    def __init__(self, options: ProfileOptions, by: str, command_pid: int = 0) -> None:
        super().__init__(options.pids, options.duration_s)
        self._locks = Locks(
            narrow(request.LockOptions, options, defaults=_DEFAULTS, by=by), command_pid
        )
        self._before: list[Tally] = []

    def start(self, stack: ExitStack) -> None:
        """Load and attach."""
        stack.enter_context(self._locks)

    def tallies(self) -> tuple[list[Tally], Loss]:
        """Waits since the last call of this."""
        return self._since_last(self._locks.so_far()), Loss()

    def end(self) -> tuple[list[Tally], Loss]:
        """The same for the last time."""
        loss = self._locks.stop().loss
        return self._since_last(self._locks.rows), loss

    def _since_last(self, rows: tuple[LockRow, ...]) -> list[Tally]:
        now = list(map(_tally, rows))
        before, self._before = self._before, now
        return list(differences(now, before))


def _tally(row: LockRow) -> Tally:
    name = f"{row.name} ({row.tid or row.pid})" if row.pid and "(" not in row.name else row.name
    if row.type:
        name = f"{name}  {row.type}"
    key = (row.name, row.pid, row.tid, row.type)
    return Tally((), "", key, name, row.waits, row.total_ns, buckets=row.buckets)


def make(options: ProfileOptions, by: str, _interval_s: float, command_pid: int) -> KernelLocks:
    """The screen."""
    return KernelLocks(options, by, command_pid)
