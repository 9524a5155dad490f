"""`ProbeThreads`: whether the threads still run by which the kernel knows probed processes."""

from __future__ import annotations

from collections.abc import Iterable

from purebpf.syscall import proc

__all__ = ["ProbeThreads"]


class ProbeThreads:
    """The thread of each process that a uprobe was opened for; when it ends, so does the probe.

    A perf event for a process belongs to one of its threads. When a thread has ended, the kernel
    does not know its memory, and takes the probe out of the process (uprobe_perf_filter() of
    kernel/trace/trace_uprobe.c).

    Args:
        pids: the processes, as of now.
    """

    def __init__(self, pids: Iterable[int]) -> None:
        self._threads = {pid: proc.with_memory(pid) for pid in pids if pid > 0}

    def __bool__(self) -> bool:
        """Return True if there are processes."""
        return bool(self._threads)

    def left(self) -> list[int]:
        """Return the processes that go on without the thread."""
        return [
            pid
            for pid, tid in self._threads.items()
            if (now := proc.with_memory(pid)) != tid and proc.maps(now)
        ]
