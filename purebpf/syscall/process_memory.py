"""The memory of another process, through /proc/PID/mem.

The descriptor stays bound to the program that the process ran when it was opened: after its
execve(2) or its end nothing can be read any more, and never another process's memory (proc(5)).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING

from purebpf.closable import Closing
from purebpf.syscall import proc

if TYPE_CHECKING:
    from purebpf.syscall.left_reader import LeftReader

__all__ = ["STUCK", "ProcessMemory", "open_process_memory", "read_arguments", "reading_others"]

STUCK = "its memory is in a file system that does not answer (FUSE?)"
_MOST_ARGUMENTS = 1 << 17


class ProcessMemory(Closing):
    """Reads addresses of a process. Needs the same user as the process, or CAP_SYS_PTRACE.

    Pages of another user's process may lie in a file system that never answers; a child reads
    those (`purebpf.syscall.left_reader`).

    Args:
        fd: of /proc/PID/mem; closed with this.
        user: the process's; None: root, or our own.

    Attributes:
        is_stuck: whether a read did not end. After it there are no others.
        is_left: whether a child reads it, which ends with the last of these that is closed.
    """

    def __init__(self, fd: int, user: int | None = None) -> None:
        self._fd = fd
        self._user = user
        self.is_stuck = False
        self.is_left = user is not None
        if user is not None:
            _reader().enter()

    def read(self, address: int, size: int) -> bytes:
        """Bytes; fewer, or none, where nothing is mapped, or when the process has ended."""
        if self._user is not None:
            return self._read_for_user(address, size, self._user)
        try:
            return os.pread(self._fd, size, address)
        except (OSError, OverflowError):
            return b""

    def _read_for_user(self, address: int, size: int, user: int) -> bytes:
        if self.is_stuck or self._fd < 0:
            return b""
        content = _reader().read(self._fd, size, address, user)
        self.is_stuck = content is None
        return content or b""

    def close(self) -> None:
        """Close the descriptor; again is harmless."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
            if self._user is not None:
                _reader().leave()


def open_process_memory(pid: int) -> ProcessMemory | None:
    """The memory of a process; None: it has ended.

    Raises:
        KernelError: EACCES, the process is another user's.
    """
    user = proc.other_user(pid)
    fd = proc.open_memory(pid)
    if fd is None:
        return None
    # again: the number may have become that of another process
    return ProcessMemory(fd, proc.other_user(pid) if user is None else user)


@contextmanager
def reading_others() -> Iterator[None]:
    """Keep the child that reads other users' memory until the context ends.

    If the last such context needed it, it starts at once, so that no read waits for that.
    """
    reader = _reader()
    reader.enter()
    try:
        reader.start_again()
        yield
    finally:
        reader.leave()


def read_arguments(pid: int) -> str | None:
    """The arguments of a process, with blanks between them; "" for a kernel thread.

    None: it has ended, or they cannot be read.
    """
    user = proc.other_user(pid)
    if user is None:
        return proc.command_line(pid)
    try:
        fd = os.open(f"{proc.PROC}/{proc.with_memory(pid)}/cmdline", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    _reader().enter()
    try:
        content = _reader().read(fd, _MOST_ARGUMENTS, 0, user)
    finally:
        _reader().leave()
        os.close(fd)
    if content is None:
        return None
    return content.decode(errors="surrogateescape").replace("\0", " ").strip()


@cache
def _reader() -> LeftReader:
    from purebpf.syscall.left_reader import LeftReader  # for processes of other users: socket

    return LeftReader()
