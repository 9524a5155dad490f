"""The name of each process, which is its leader's, whatever its threads are called."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from typing import TYPE_CHECKING

from purebpf.errors import KernelError
from purebpf.syscall import proc

if TYPE_CHECKING:
    from purebpf.observe.processes.change_decoder import Change

__all__ = ["ProcessNames"]

_KEEP = 1 << 16


class ProcessNames:
    """Names of processes, also of those that exited; a process that executed has its last name.

    Attributes:
        unread, read: as in `AddressSpaces`.
    """

    def __init__(self) -> None:
        self.unread: Container[int] = ()
        self.read: Callable[[int], object] = bool
        self._names: dict[int, str] = {}
        self._doubted: set[int] = set()

    def note(self, pid: int, name: str) -> None:
        """Take in the name of a process's leader."""
        self._names.pop(pid, None)
        self._names[pid] = name
        if len(self._names) > _KEEP:
            del self._names[next(iter(self._names))]

    def feed(self, record: Change) -> None:
        """Read the records of a process."""
        from purebpf.wire.perf_records import Comm, Fork

        if isinstance(record, Comm):
            if record.pid == record.tid:
                self.note(record.pid, record.comm)
        elif isinstance(record, Fork) and record.pid != record.ppid:
            self._names.pop(record.pid, None)  # the number may have been that of another one
            parent = self._names.get(record.ppid)
            if parent is not None:
                self.note(record.pid, parent)

    def doubt(self, seen: Container[tuple[int, str]]) -> None:
        """Read names once more before they are used: records of newer ones may have been lost.

        A process that has exited has no name then, unless it was `seen` with the one that is noted.

        Args:
            seen: the PID and the name of tasks that ran.
        """
        self._doubted = {pid for pid, name in self._names.items() if (pid, name) not in seen}

    def forget(self, pids: Iterable[int]) -> None:
        """Forget processes that ended."""
        for pid in pids:
            self._names.pop(pid, None)

    def of(self, pid: int) -> str:
        """The name of a process; "" if it is not known."""
        if pid in self.unread:
            self.read(pid)
        if pid in self._doubted:
            self._doubted.discard(pid)
            self._names.pop(pid, None)
        if pid not in self._names and pid:
            try:
                self.note(pid, proc.comm(pid) or "")
            except KernelError:
                self.note(pid, "")
        return self._names.get(pid, "")
