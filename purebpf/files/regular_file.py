"""Opening files that other processes name: never a device or a pipe, not even for a moment.

To open a device node may rewind a tape, arm a watchdog or hang up a line, and to open a pipe wakes
the process that waits at its other end; a check before the open races with a rename. An O_PATH
descriptor opens nothing (open(2)), and /proc/self/fd opens its file.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager

from purebpf.errors import AttachError
from purebpf.files.path_steps import open_place

__all__ = ["Identity", "identify", "open_regular", "opened_regular", "opened_same"]

Identity = tuple[int, int, int]
"""st_dev, st_ino and st_ctime_ns: a file that was not changed since (stat(2))."""


def open_regular(path: str, *, follow: bool = True) -> int:
    """A descriptor of a regular file, for reading; the caller closes it.

    Args:
        path: of the file.
        follow: whether the last part of the path may be a link.

    Raises:
        OSError: it cannot be opened; FileNotFoundError also when it is not a regular file,
            PermissionError when it is in a file system that another user runs.
    """
    fd = open_place(path, follow=follow)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise FileNotFoundError(path)
        # O_NONBLOCK: another process's lease on the file is not waited for (fcntl(2))
        return os.open(f"/proc/self/fd/{fd}", os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    finally:
        os.close(fd)


@contextmanager
def opened_regular(path: str, *, follow: bool = True) -> Iterator[int]:
    """The same, closed at the end of the context."""
    fd = open_regular(path, follow=follow)
    try:
        yield fd
    finally:
        os.close(fd)


def identify(fd: int) -> Identity:
    """Return the identity and the state of a descriptor's file."""
    status = os.fstat(fd)
    return status.st_dev, status.st_ino, status.st_ctime_ns


@contextmanager
def opened_same(path: str, identity: Identity | None, what: str) -> Iterator[str]:
    """A path that leads to the file with this identity, and to no other, inside the `with` block.

    Between a look at the symbols and the probes, a process may have put another file in its place:
    probes at the offsets of one, in the middle of instructions of the other, for everyone.

    Args:
        path: of the file.
        identity: of the file that was read; None: any regular file.
        what: the program to attach, for the error.

    Raises:
        AttachError: ENOENT, another file is there now.
        OSError: it cannot be opened.
    """
    with opened_regular(path) as fd:
        if identity is not None and identify(fd) != identity:
            why = f"another file took the place of {path}, or it was changed, after it was read"
            raise AttachError("uprobe", errno.ENOENT, what, why=why)
        yield f"/proc/self/fd/{fd}"
