"""Which container or unit each process was in, while something else is measured."""

from __future__ import annotations

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
        self._labels: dict[int, str] = {}

    def read(self, pid: int) -> None:
        """Read the cgroup of a process now; if it is gone, its last known cgroup stays."""
        from purebpf.symbols.cgroup_names import cgroup_name  # not before everything is attached

        try:
            text = proc.cgroup(pid)
        except KernelError:
            return
        if text is not None:
            self._note(pid, cgroup_name(text).label)

    def feed(self, record: Change) -> None:
        """Take in what happened to a process."""
        from purebpf.wire.perf_records import Comm, Fork

        if isinstance(record, Fork):
            if record.pid != record.ppid:
                inherited = "" if record.ppid in _MANAGERS else self._labels.get(record.ppid, "")
                self._note(record.pid, inherited)
        elif isinstance(record, Comm) and record.exec:
            self.read(record.pid)  # the parent of a container's process enters the cgroup before

    def forget(self, pid: int) -> None:
        """Forget a process that ended."""
        self._labels.pop(pid, None)

    def of(self, pid: int) -> str:
        """The label of a process; "" in the root cgroup, or if unknown."""
        if pid not in self._labels and pid:
            self.read(pid)
        return self._labels.get(pid, "")

    def _note(self, pid: int, label: str) -> None:
        self._labels.pop(pid, None)
        self._labels[pid] = label
        if len(self._labels) > _KEEP:
            del self._labels[next(iter(self._labels))]
