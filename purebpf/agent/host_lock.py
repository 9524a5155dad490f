"""One agent on a host: two would sample everything twice, and share the spool."""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress

from purebpf.closable import Closing
from purebpf.errors import PurebpfError
from purebpf.syscall import proc

__all__ = ["HostLock", "SecondAgentError"]


class SecondAgentError(PurebpfError):
    """Another agent runs; says which."""


class HostLock(Closing):
    """Held as long as it is open, and given back by the kernel when the process ends, however.

    It is a flock(2) on the PID namespace (nsfs, namespaces(7)): agents in containers that share the
    host's processes meet there, whatever files they share. /proc/locks says who holds it.

    Raises:
        SecondAgentError: another process holds it.
    """

    def __init__(self) -> None:
        self._fd = os.open(f"{proc.PROC}/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = _holder(os.fstat(self._fd).st_ino)
            self.close()
            raise SecondAgentError(
                f"another agent runs on this host: {holder}. Stop it first: two would count twice"
            ) from None

    def close(self) -> None:
        """Give it back; again is harmless."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def _holder(inode: int) -> str:
    """The process that has a lock: its number and what it executes."""
    with suppress(OSError), open(f"{proc.PROC}/locks") as file:
        for line in file:
            words = line.split()
            if "FLOCK" in words and words[-3].rpartition(":")[2] == str(inode):
                pid = words[-4]
                with suppress(OSError), open(f"{proc.PROC}/{pid}/cmdline") as cmdline:
                    command = " ".join(cmdline.read().split("\0")).strip()
                    return f"process {pid} ({command[:100]})"
                return f"process {pid}"
    return "its process is not to be seen from here"
