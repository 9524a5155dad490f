"""Selects the machine's open calls that the options ask for."""

from __future__ import annotations

import os

from purebpf.abi.syscalls import X32_BIT
from purebpf.measure.targets import is_in_scope
from purebpf.observe.instruments.process_tree import processes_called
from purebpf.tools.summary.calls import slots
from purebpf.tools.summary.inflight import UNDECIDED, WANTED, Open
from purebpf.tools.summary.request import SummaryOptions

__all__ = ["InFlightFilter"]


class InFlightFilter:
    """A predicate. It decides as the programs would have at the call's return.

    A call that is still open has no result and no CPU where it ends: -x, -e and -C take it.
    """

    def __init__(self, options: SummaryOptions, command_pid: int) -> None:
        self._options = options
        self._follows_command = command_pid != 0
        self._named = () if options.comm is None else frozenset(processes_called(options.comm))
        self._slots = [frozenset(numbers) for numbers in slots(options.calls)]

    def __call__(self, call: Open) -> bool:
        """Return True if the options ask for the call."""
        options = self._options
        if call.verdict != WANTED and not (call.verdict == UNDECIDED and self._matches_task(call)):
            return False
        if options.calls and not self._matches_name(call):
            return False
        return is_in_scope(call.tid, options)

    def _matches_task(self, call: Open) -> bool:
        """Decide for tasks that the programs did not, as the task did nothing during the run."""
        if self._follows_command or call.pid == os.getpid():
            return False
        if self._options.comm is not None:
            return call.pid in self._named
        if self._options.pids:
            return call.pid in self._options.pids
        return not self._options.tids or call.tid in self._options.tids

    def _matches_name(self, call: Open) -> bool:
        if call.nr & X32_BIT:
            return call.nr & ~X32_BIT in self._slots[2]
        return call.nr in self._slots[call.abi]
