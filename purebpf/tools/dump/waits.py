"""The reason for a thread's sleep, by its system call."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from purebpf.abi import syscalls
from purebpf.observe.instruments.thread_registers import ThreadNow
from purebpf.runtimes.cpython.threads import Gil
from purebpf.syscall import proc

__all__ = ["STATES", "describe_wait"]

STATES = {
    "S": "sleeps",
    "D": "sleeps uninterruptibly",
    "T": "stopped",
    "t": "traced",
    "X": "dead",
    "Z": "zombie",
    "P": "parked",
}
_ON_DESCRIPTOR = frozenset(
    (
        *("read", "write", "pread64", "pwrite64", "readv", "writev", "recvfrom", "recvmsg"),
        *("recvmmsg", "sendto", "sendmsg", "sendmmsg", "sendfile", "accept", "accept4", "connect"),
        *("epoll_wait", "epoll_pwait", "flock", "fcntl", "fsync", "fdatasync", "ioctl"),
        "getdents64",
    )
)
"""System calls with a descriptor as the first argument."""


def describe_wait(
    pid: int, thread: ThreadNow, gils: Iterable[Gil], holders: Mapping[int, int]
) -> str:
    """Describe the reason for a thread's sleep; "" if it does not sleep, or for no known reason.

    Args:
        pid: its process.
        thread: the thread.
        gils: the locks of the process's interpreters.
        holders: the thread of a thread state, by the address of that.
    """
    if not thread.is_asleep or thread.call < 0:
        return ""
    name = syscalls.name(syscalls.machine(os.uname().machine).native, thread.call)
    if name == "futex":
        return _futex(thread.argument, gils, holders)
    if name in _ON_DESCRIPTOR:
        number = thread.argument & (1 << 32) - 1
        return f"{name}({number}{_target(pid, number)})"
    return f"{name}()"


def _futex(address: int, gils: Iterable[Gil], holders: Mapping[int, int]) -> str:
    for gil in gils:
        if gil.has(address):
            holder = holders.get(gil.holder)
            return "the GIL" + (f" (held by {holder})" if holder else "")
    return f"futex({address:#x})"


def _target(pid: int, number: int) -> str:
    try:
        return ": " + os.readlink(f"{proc.PROC}/{pid}/fd/{number}")
    except OSError:
        return ""
