"""Threads by which the kernel knows probed processes, and the end of a probe with its thread."""

from __future__ import annotations

from collections.abc import Iterable

from purebpf.syscall import proc

__all__ = ["ProbeThreads", "ProbedThread"]


class ProbedThread:
    """The thread that a probe was opened for; the probe ends with it.

    Args:
        pid: the process, or one of its threads: the kernel probes the whole process then, too.

    Attributes:
        pid: the process.
        tid: the thread.
    """

    def __init__(self, pid: int) -> None:
        self.pid = int((proc.status(pid) or {}).get("Tgid", pid))
        self.tid = proc.with_memory(self.pid)
        self._started = proc.start_ticks(self.tid)

    def has_ended(self) -> bool:
        """Return True if the thread has ended, even if others of the process go on."""
        return (
            proc.start_ticks(self.tid) != self._started
            or proc.with_memory(self.tid) != self.tid
            or proc.program(self.tid) is None
        )


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
