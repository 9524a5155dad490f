"""Opening files that other processes name: never a device or a pipe, not even for a moment.

To open a device node may rewind a tape, arm a watchdog or hang up a line, and to open a pipe wakes
the process that waits at its other end; a check before the open races with a rename. An O_PATH
descriptor opens nothing (open(2)), and /proc/self/fd opens its file.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["open_regular", "opened_regular"]


def open_regular(path: str, *, follow: bool = True) -> int:
    """A descriptor of a regular file, for reading; the caller closes it.

    Args:
        path: of the file.
        follow: whether the last part of the path may be a link.

    Raises:
        OSError: it cannot be opened; FileNotFoundError also when it is not a regular file.
    """
    flags = os.O_PATH | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW)
    fd = os.open(path, flags)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise FileNotFoundError(path)
        # O_NONBLOCK: another process's lease on the file is not waited for (fcntl(2))
        return os.open(f"/proc/self/fd/{fd}", os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    finally:
        os.close(fd)


@contextmanager
def opened_regular(path: str) -> Iterator[int]:
    """The same, closed at the end of the context."""
    fd = open_regular(path)
    try:
        yield fd
    finally:
        os.close(fd)
