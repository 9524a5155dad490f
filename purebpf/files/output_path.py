"""The real place of an output: its directory, held open, and a name in it that is not a link.

Root writes where others may write too, as in /tmp. There, another user may have created the file or
a link before, or may exchange one for the other between a check and an open. So every step starts
from a descriptor, links are followed one at a time, and files of other users are refused, by the
rules of fs.protected_symlinks, fs.protected_regular and fs.protected_fifos (proc_sys_fs(5)), even
where they are off.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import NoReturn, SupportsIndex

from purebpf.closable import refuse_copy
from purebpf.tuples import NamedTuple

__all__ = ["OutputPlace", "RefusedError", "resolve"]

_MOST_LINKS = 40  # as the kernel has it (path_resolution(7))
_PROC = "/proc/"


class RefusedError(PermissionError):
    """The file at the path belongs to another user; `strerror` has the sentence."""

    def __init__(self, why: str) -> None:
        super().__init__(errno.EACCES, why)


class OutputPlace(NamedTuple):
    """A name in a directory.

    Attributes:
        directory: an O_PATH descriptor; `close` closes it.
        name: without a slash.
        path: of both, for people.
        old: the file that has the name now; None: none.
        is_magic: the path goes through a link of /proc to an object without a name, as a pipe.
    """

    directory: int
    name: str
    path: str
    old: os.stat_result | None
    is_magic: bool = False

    def __reduce_ex__(self, protocol: SupportsIndex, /) -> NoReturn:
        refuse_copy(self, protocol)

    @property
    def is_special(self) -> bool:
        """True if it exists, and is not a regular file or a directory."""
        if self.is_magic:
            return True
        kind = 0 if self.old is None else self.old.st_mode
        return self.old is not None and not stat.S_ISREG(kind) and not stat.S_ISDIR(kind)

    def close(self) -> None:
        """Close the directory."""
        os.close(self.directory)


def resolve(path: str) -> OutputPlace:
    """Follow the links of a path; the caller closes the result.

    Raises:
        OSError: the directory cannot be opened, or `path` has no name in it.
        RefusedError: another user owns a link, or a file in a directory where others may write.
    """
    given = path
    for _ in range(_MOST_LINKS):
        head, name = os.path.split(path)
        if name in ("", ".", ".."):
            os.stat(path)  # says what is wrong, if it is not this:
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        directory = os.open(head or ".", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        keep = False
        try:
            old, target = _look(directory, name)
            if old is not None:
                _check(os.fstat(directory), old, path)
            is_magic = target is not None and os.path.realpath(head).startswith(_PROC)
            if target is None or (is_magic and not os.path.isabs(target)):
                keep = True
                return OutputPlace(directory, name, path, old, is_magic)
        finally:
            if not keep:
                os.close(directory)
        path = os.path.join(head, target)
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), given)


def _look(directory: int, name: str) -> tuple[os.stat_result | None, str | None]:
    """Return the status of a file, and its target if it is a link: both of the same file."""
    try:
        fd = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
    except FileNotFoundError:
        return None, None
    try:
        status = os.fstat(fd)
        target = os.readlink("", dir_fd=fd) if stat.S_ISLNK(status.st_mode) else None
        return status, target
    finally:
        os.close(fd)


def _check(directory: os.stat_result, status: os.stat_result, path: str) -> None:
    """Refuse a file that another user may have put there for us to write to."""
    owner, us = status.st_uid, os.geteuid()
    if owner in (us, 0):
        return
    if stat.S_ISLNK(status.st_mode):
        raise RefusedError(
            f"{path} is a link that belongs to user {owner}. Name the file that it leads to"
        )
    mode = directory.st_mode
    is_shared = mode & stat.S_IWOTH or (mode & stat.S_IWGRP and mode & stat.S_ISVTX)
    if is_shared and owner != directory.st_uid:
        raise RefusedError(
            f"it is there already, belongs to user {owner}, and others may write to its directory. "
            "Use another name, or a directory of your own"
        )
