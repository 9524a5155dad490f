"""The container or unit of each process, during another measurement."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from purebpf.errors import KernelError
from purebpf.syscall import proc

if TYPE_CHECKING:
    from purebpf.wire.process_runs import Happened

__all__ = ["CgroupLabels"]

_KEEP = 1 << 16
_GENERATIONS = 16
_MANAGERS = (0, 1)  # they start their children in other cgroups


class CgroupLabels:
    """Labels of processes (`purebpf.symbols.cgroup_names`), also of those that exited.

    /proc has it while a process lives: it is read for processes that a caller asks about, and for
    processes that go on for `patience_s` after they executed a program. A faster process has the
    label of the process that forked it, unless that was the first one: systemd's children are in
    separate units.

    Args:
        parents: who forked whom.

    Attributes:
        patience_s: 0.1 is enough if `text` is called as soon as a process has a sample.
    """

    def __init__(self, parents: Mapping[int, int] | None = None) -> None:
        self.patience_s = 0.0
        self._parents = {} if parents is None else parents
        self._texts: dict[int, str] = {}
        self._due: dict[int, float] = {}

    def read(self, pid: int) -> None:
        """Read the cgroup of a process now; if it is gone, its last known cgroup stays."""
        self._due.pop(pid, None)
        try:
            text = proc.cgroup(pid)
        except KernelError:
            return
        if text is not None:
            self._note(pid, sys.intern(text))  # thousands of processes share some

    def add(self, happened: Happened) -> None:
        """Read the records of processes."""
        due, texts = self._due, self._texts
        for child, _ in happened.forks:
            texts.pop(child, None)
            due.pop(child, None)
        now = time.monotonic()
        if happened.executed:
            due.update(dict.fromkeys(happened.executed - happened.ended.keys(), now))
        for pid in happened.ended:
            due.pop(pid, None)
        while (
            due and (first := next(iter(due))) is not None and due[first] <= now - self.patience_s
        ):
            self.read(first)  # the parent of a container's process enters the cgroup before

    def forget(self, pids: Iterable[int]) -> None:
        """Forget processes that ended."""
        for pid in pids:
            self._texts.pop(pid, None)
            self._due.pop(pid, None)

    def of(self, pid: int) -> str:
        """The label of a process; "" in the root cgroup, or if unknown."""
        from purebpf.symbols.cgroup_names import cgroup_name  # not before everything is attached

        return cgroup_name(self.text(pid)).label

    def text(self, pid: int) -> str:
        """Return /proc/PID/cgroup of a process; "" if it is unknown."""
        if not pid:
            return ""
        if pid not in self._texts or pid in self._due:
            self.read(pid)
        label = self._texts.get(pid)
        if label is None and (parent := self._parents.get(pid)) is not None:
            label = "" if parent in _MANAGERS else self._inherited(parent)
            self._note(pid, label)
        return label or ""

    def _inherited(self, pid: int) -> str:
        """Return the label of the nearest known one among a process and its ancestors."""
        for _ in range(_GENERATIONS):
            if pid not in self._texts:
                self.read(pid)
            if pid in self._texts:
                return self._texts[pid]
            parent = self._parents.get(pid)
            if parent is None or parent in _MANAGERS:
                break
            pid = parent
        return ""

    def _note(self, pid: int, text: str) -> None:
        self._texts.pop(pid, None)
        self._texts[pid] = text
        if len(self._texts) > _KEEP:
            del self._texts[next(iter(self._texts))]
