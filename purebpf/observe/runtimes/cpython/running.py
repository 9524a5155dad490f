"""`running`: processes that run Python, by the name of their program alone."""

from __future__ import annotations

import os

from purebpf.syscall import proc

__all__ = ["program_path", "running", "runs_python"]


def running() -> list[int]:
    """Return the processes whose program has "python" in its name, by /proc/PID/exe.

    Programs that embed Python are missing: their mappings tell.
    """
    return [pid for pid in proc.pids() if runs_python(pid)]


def runs_python(pid: int) -> bool:
    """Return True if the program of a process has "python" in its name."""
    return "python" in program_path(pid).rpartition("/")[2]


def program_path(pid: int) -> str:
    """Return the path of the program of a process, by /proc/PID/exe; "" if it is not known."""
    try:
        return os.readlink(f"{proc.PROC}/{proc.with_memory(pid)}/exe")
    except OSError:
        return ""
