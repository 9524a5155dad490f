"""Directories for data that does not fit into memory, each locked for as long as its process lives.

A process that is killed leaves its directory. The next one removes it: if this user owns it, and if
nobody holds its lock.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress

__all__ = ["remove_abandoned", "scratch_folder"]

_PREFIX = "purebpf-fleet-"
_LOCK = "lock"
_FLAGS = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


@contextmanager
def scratch_folder() -> Iterator[str]:
    """A directory of this process alone, mode 0700; it is removed at the end."""
    with tempfile.TemporaryDirectory(prefix=_PREFIX) as folder:
        fd = os.open(f"{folder}/{_LOCK}.new", _FLAGS | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            # under its own name it is locked from the beginning
            os.rename(f"{folder}/{_LOCK}.new", f"{folder}/{_LOCK}")
            yield folder
        finally:
            os.close(fd)


def remove_abandoned() -> int:
    """Remove the directories that processes of this user left when they were killed.

    Returns:
        How many there were.
    """
    removed = 0
    with suppress(OSError):
        parent = os.open(tempfile.gettempdir(), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for name in os.listdir(parent):
                if name.startswith(_PREFIX):
                    with suppress(OSError):
                        removed += _remove_if_abandoned(name, parent)
        finally:
            os.close(parent)
    return removed


def _remove_if_abandoned(name: str, parent: int) -> bool:
    """Remove a directory whose lock is there and free; return True if it was.

    Raises:
        OSError: it is another user's, in use, without a lock, or it has gone.
    """
    folder = os.open(
        name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent
    )
    try:
        if os.fstat(folder).st_uid != os.geteuid():
            return False
        lock = os.open(_LOCK, _FLAGS, dir_fd=folder)
        try:
            status = os.fstat(lock)
            if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
                return False
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _empty(folder)
            os.rmdir(name, dir_fd=parent)
        finally:
            os.close(lock)
    finally:
        os.close(folder)
    return True


def _empty(folder: int) -> None:
    """Remove the entries of a directory that is held, the lock last; no link is followed."""
    for name in sorted(os.listdir(folder), key=lambda name: name == _LOCK):
        if stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            shutil.rmtree(name, dir_fd=folder)
        else:
            os.unlink(name, dir_fd=folder)
