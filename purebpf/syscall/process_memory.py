"""The memory of another process, through /proc/PID/mem.

The descriptor stays that of the program which the process executed when it was opened: after its
execve(2) or its end nothing can be read any more, and never something of another process (proc(5)).
"""

from __future__ import annotations

import os

from purebpf.closable import Closing
from purebpf.syscall import proc

__all__ = ["ProcessMemory", "open_process_memory"]


class ProcessMemory(Closing):
    """Reads addresses of a process. Needs the same user as the process, or CAP_SYS_PTRACE.

    Args:
        fd: of /proc/PID/mem; closed with this.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def read(self, address: int, size: int) -> bytes:
        """Bytes; fewer, or none, where nothing is mapped, or when the process has ended."""
        try:
            return os.pread(self._fd, size, address)
        except (OSError, OverflowError):
            return b""

    def close(self) -> None:
        """Close the descriptor; again is harmless."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def open_process_memory(pid: int) -> ProcessMemory | None:
    """The memory of a process; None: it has ended.

    Raises:
        KernelError: EACCES, the process is another user's.
    """
    fd = proc.open_memory(pid)
    return None if fd is None else ProcessMemory(fd)
