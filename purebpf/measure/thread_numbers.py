"""Thread IDs as a PID namespace of a container has them: those that a program writes to memory."""

from __future__ import annotations

from purebpf.measure.proc_files import entries
from purebpf.syscall import proc

__all__ = ["own_numbers"]


def own_numbers(pid: int) -> dict[int, int]:
    """Return the thread IDs that we see by those that the process itself sees.

    Nothing for a process that is in our PID namespace, where both are the same, and for one that
    has ended.
    """
    if len(_numbers(f"{pid}")) < 2:  # noqa: PLR2004 - NSpid has a number for each namespace
        return {}
    numbers = {}
    for tid in entries(f"/proc/{pid}/task"):
        seen = _numbers(f"{pid}/task/{tid}")
        if seen:
            numbers[int(seen[-1])] = int(tid)
    return numbers


def _numbers(task: str) -> list[str]:
    """The IDs of a task in the PID namespace of /proc and in each one below, down to its own."""
    return (proc.status(task) or {}).get("NSpid", "").split()
