"""`running`: processes that run Python, PHP or Ruby, by the name of their program alone."""

from __future__ import annotations

from purebpf.symbols.runtimes import script_engine
from purebpf.syscall import proc

__all__ = ["program_path", "running", "runs_python"]


def running() -> list[int]:
    """Return the processes whose program has "python" in its name, or is PHP or Ruby.

    The link /proc/PID/exe says it.

    Programs that embed an interpreter are missing: their mappings tell.
    """
    return [pid for pid in proc.pids() if _runs_interpreter(pid)]


def runs_python(pid: int) -> bool:
    """Return True if the program of a process has "python" in its name."""
    return "python" in program_path(pid).rpartition("/")[2]


def _runs_interpreter(pid: int) -> bool:
    path = program_path(pid)
    return "python" in path.rpartition("/")[2] or bool(script_engine(path))


def program_path(pid: int) -> str:
    """Return the path of the program of a process, by /proc/PID/exe; "" if it is not known."""
    return proc.program(pid) or ""
