"""One agent on a host: two would sample everything twice, and share the spool."""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress

from purebpf.closable import Closing
from purebpf.errors import PurebpfError
from purebpf.syscall import proc
from purebpf.syscall.process_memory import read_arguments

__all__ = ["HostLock", "SecondAgentError"]

_CAPABILITIES = (21, 38, 39)
"""CAP_SYS_ADMIN, CAP_PERFMON, CAP_BPF."""


class SecondAgentError(PurebpfError):
    """Another agent runs; says which."""


class HostLock(Closing):
    """Held as long as it is open, and given back by the kernel when the process ends, however.

    It is a flock(2) on the PID namespace (nsfs, namespaces(7)): agents in containers that share the
    host's processes meet there, whatever files they share. /proc/locks says who holds it. Any user
    can lock that file; one without the capabilities of an agent stops none.

    Attributes:
        problem: the process that keeps the lock from the agents, and the consequence; "" if this
            one has it.

    Raises:
        SecondAgentError: another agent holds it.
    """

    def __init__(self) -> None:
        self.problem = ""
        self._fd = os.open(f"{proc.PROC}/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pid = _holder(os.fstat(self._fd))
            holder = _describe(pid)
            if _may_measure(pid):
                self.close()
                raise SecondAgentError(
                    f"another agent runs on this host: {holder}. Stop it first: two would count "
                    "twice"
                ) from None
            self.problem = (
                f"{holder} holds the lock of the agents, and cannot be one: the agent runs without "
                "it, and will not notice a second one"
            )

    def close(self) -> None:
        """Give it back; again is harmless."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def _holder(locked: os.stat_result) -> int:
    """The process that took the lock of a file; 0: it is not to be seen from here."""
    device = f"{os.major(locked.st_dev):02x}:{os.minor(locked.st_dev):02x}"
    file = f"{device}:{locked.st_ino}"
    with suppress(OSError), open(f"{proc.PROC}/locks") as locks:
        for line in locks:
            words = line.split()
            if "FLOCK" in words and "->" not in words and words[-3] == file:
                return int(words[-4])
    return 0


def _describe(pid: int) -> str:
    """Describe a process and its program."""
    if not pid:
        return "its process is not to be seen from here"
    command = read_arguments(pid)
    return f"process {pid}" if command is None else f"process {pid} ({command[:100]})"


def _may_measure(pid: int) -> bool:
    """Return True if a process has the capabilities of an agent, as far as /proc says.

    Capabilities in a separate user namespace (user_namespaces(7)) do not count.
    """
    status = proc.status(pid) if pid else None
    if status is None:
        return not pid or proc.hides(pid)  # else it has ended, and left the lock to a child
    capabilities = int(status.get("CapEff", "0"), 16)
    if not any(capabilities >> bit & 1 for bit in _CAPABILITIES):
        return False
    try:
        spaces = {os.stat(f"{proc.PROC}/{who}/ns/user").st_ino for who in (pid, "self")}
    except OSError:
        return True
    return len(spaces) == 1
