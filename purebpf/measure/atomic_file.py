"""A file that has its name when it is complete: the open descriptor, and the rename."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress

__all__ = ["PartFile", "is_special"]


class PartFile:
    """A new file beside the one at `path`, which it replaces when it is committed.

    The file behind a link is replaced, not the link. What could not be written to, or cannot be
    replaced, is refused at once.

    Args:
        path: what it will be called.
        private: its owner only may read it, and that is this user. Else it has the owner and the
            mode of the file that it replaces.

    Attributes:
        path: what it will be called, without links.
        fd: its descriptor, open for reading and writing; the caller closes it.

    Raises:
        OSError: open(2) failed; or `path` is empty, a directory or may not be written.
    """

    def __init__(self, path: str, *, private: bool = False) -> None:
        old = _checked(path)
        self.path = os.path.realpath(path)
        self._temporary = f"{self.path}.{os.getpid()}.part"
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        self.fd = os.open(self._temporary, flags, 0o600 if private or old else 0o666)
        if old and not private:
            _take_after(self.fd, old)

    def commit(self) -> None:
        """Let it have its name; where that fails, nothing is left of it.

        Raises:
            OSError: rename(2) failed.
        """
        try:
            os.replace(self._temporary, self.path)
        except OSError:
            self.discard()
            raise

    def discard(self) -> None:
        """Leave nothing behind.

        Raises:
            OSError: unlink(2) failed.
        """
        os.unlink(self._temporary)


def _checked(path: str) -> os.stat_result | None:
    """What `path` is now, if there is something; OSError where no file could be written."""
    try:
        old = os.stat(path)
    except FileNotFoundError:
        if os.path.basename(path):
            return None
        raise  # no name, or that of a directory
    if stat.S_ISDIR(old.st_mode):
        raise IsADirectoryError(errno.EISDIR, "")
    if not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, "")
    return old


def _take_after(fd: int, old: os.stat_result) -> None:
    """Give it the owner and the mode of the old file.

    Where that owner is refused, its group is another one too, which may do what everybody may.
    """
    mode = old.st_mode & 0o777
    try:
        os.fchown(fd, old.st_uid, old.st_gid)
    except OSError:
        mode &= 0o707 | (mode & 7) << 3
    with suppress(OSError):  # a file system without modes
        os.fchmod(fd, mode)


def is_special(path: str) -> bool:
    """Whether it is there and no regular file, as a device or a pipe.

    Raises:
        OSError: stat(2) failed.
    """
    try:
        return not stat.S_ISREG(os.stat(path).st_mode)
    except FileNotFoundError:
        return False
