"""`running`: processes that run Python, by the name of their program alone."""

from __future__ import annotations

import os

from purebpf.syscall import proc

__all__ = ["running", "runs_python"]


def running() -> list[int]:
    """Return the processes whose program has "python" in its name, by /proc/PID/exe.

    Programs that embed Python are missing: their mappings tell.
    """
    return [pid for pid in proc.pids() if runs_python(pid)]


def runs_python(pid: int) -> bool:
    """Return True if the program of a process has "python" in its name."""
    try:
        return (
            "python" in os.readlink(f"{proc.PROC}/{proc.with_memory(pid)}/exe").rpartition("/")[2]
        )
    except OSError:
        return False
