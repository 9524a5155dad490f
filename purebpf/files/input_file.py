"""Opening a file that a user named for reading, without waiting forever at a named pipe.

open(2) waits at a named pipe until another process writes to it: in a directory that others may
change, that is forever.
"""

from __future__ import annotations

import errno
import os
import select
import stat

__all__ = ["NO_WRITER", "open_input", "open_seekable"]

NO_WRITER = "no process has this pipe open for writing"

_PATIENCE_S = 2.0
"""How long a pipe may be without a writer: as long as outputs wait for a reader."""


def open_seekable(path: str, flags: int = os.O_RDONLY) -> int:
    """Return a descriptor of a regular file; an `opener` for open().

    Raises:
        OSError: the file cannot be opened; ESPIPE if it is a pipe, a device or a socket.
    """
    fd = os.open(path, flags | os.O_CLOEXEC | os.O_NONBLOCK)
    kind = os.fstat(fd).st_mode
    if not stat.S_ISREG(kind):
        os.close(fd)
        number = errno.EISDIR if stat.S_ISDIR(kind) else errno.ESPIPE
        raise OSError(number, os.strerror(number), path)
    return fd


def open_input(path: str, flags: int = os.O_RDONLY) -> int:
    """Return a descriptor of any file, which blocks; an `opener` for open().

    Raises:
        OSError: the file cannot be opened; EPIPE if it is a pipe, and no process has opened it for
            writing within two seconds.
    """
    fd = os.open(path, flags | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        if stat.S_ISFIFO(os.fstat(fd).st_mode):
            _wait_for_writer(fd)
        os.set_blocking(fd, True)
    except BaseException:
        os.close(fd)
        raise
    return fd


def _wait_for_writer(fd: int) -> None:
    """Return when the pipe has bytes or has ended, or after two seconds if it has a writer.

    A read of an empty pipe says EAGAIN if there is a writer, and 0 if there is none (pipe_read() of
    fs/pipe.c).
    """
    if select.select([fd], [], [], _PATIENCE_S)[0]:
        return
    try:
        os.read(fd, 1)
    except BlockingIOError:
        return
    raise OSError(errno.EPIPE, NO_WRITER)
