"""Which container or unit each process was in, while something else is measured."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from purebpf.errors import KernelError
from purebpf.syscall import proc

if TYPE_CHECKING:
    from purebpf.kernel.processes.sideband import Change

__all__ = ["CgroupLabels"]

_KEEP = 1 << 16
_MANAGERS = (0, 1)  # they start their children in other cgroups


class CgroupLabels:
    """Labels of processes (`purebpf.symbols.cgroup_names`), also of those that exited.

    /proc tells while a process lives. One that came and went faster has the label of the process
    that forked it, unless that was the first one: systemd's children are in units of their own.
    """

    def __init__(self) -> None:
        self._texts: dict[int, str] = {}

    def read(self, pid: int) -> None:
        """Read the cgroup of a process now; if it is gone, its last known cgroup stays."""
        try:
            text = proc.cgroup(pid)
        except KernelError:
            return
        if text is not None:
            self._note(pid, sys.intern(text))  # thousands of processes share some

    def feed(self, record: Change, *, is_over: bool = False) -> None:
        """Take in what happened to a process; `is_over`: it has ended, /proc need not be asked."""
        from purebpf.wire.perf_records import Comm, Fork

        if isinstance(record, Fork):
            if record.pid != record.ppid:
                inherited = "" if record.ppid in _MANAGERS else self._texts.get(record.ppid, "")
                self._note(record.pid, inherited)
        elif isinstance(record, Comm) and record.exec and not is_over:
            self.read(record.pid)  # the parent of a container's process enters the cgroup before

    def forget(self, pid: int) -> None:
        """Forget a process that ended."""
        self._texts.pop(pid, None)

    def of(self, pid: int) -> str:
        """The label of a process; "" in the root cgroup, or if unknown."""
        from purebpf.symbols.cgroup_names import cgroup_name  # not before everything is attached

        return cgroup_name(self.text(pid)).label

    def text(self, pid: int) -> str:
        """What /proc/PID/cgroup of a process said; "" if it is unknown."""
        if pid not in self._texts and pid:
            self.read(pid)
        return self._texts.get(pid, "")

    def _note(self, pid: int, text: str) -> None:
        self._texts.pop(pid, None)
        self._texts[pid] = text
        if len(self._texts) > _KEEP:
            del self._texts[next(iter(self._texts))]
