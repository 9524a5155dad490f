"""Files that commands of one user keep for each other: $XDG_CACHE_HOME/purebpf, or ~/.cache.

A cache is only used when its directory is the user's own, and no other user may change it or a
directory that it is in; otherwise there is none, which changes nothing but the time. Files that
were not used for the longest time go first.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable
from contextlib import suppress

from purebpf.files.held_files import HeldFiles
from purebpf.files.regular_file import open_regular

__all__ = ["CacheFiles", "CacheReader", "cache_home", "own_directory"]

_WRITABLE_BY_OTHERS = 0o022
_MOST_PARTS = 256


class CacheFiles:
    """Files by key. Holds no descriptors, but those in `held`.

    Args:
        directory: where the files are.
        limit: bytes of all files together.
        held: of files that are read again and again.
    """

    def __init__(self, directory: str, limit: int, held: HeldFiles | None = None) -> None:
        self.directory = directory
        self._limit = limit
        self._held = held or HeldFiles()

    def has(self, key: str) -> bool:
        """Return True if there is a file, which may not be trusted."""
        return os.path.lexists(os.path.join(self.directory, key))

    def open(self, key: str) -> CacheReader:
        """A file, which counts as used now.

        Raises:
            OSError: there is none, or none that can be trusted.
        """
        path = os.path.join(self.directory, key)
        if not _is_trusted(self.directory):
            raise PermissionError(errno.EPERM, os.strerror(errno.EPERM), self.directory)
        reader = CacheReader(path, self._held)
        os.utime(path)
        return reader

    def keep(self, key: str, contents: Iterable[bytes]) -> None:
        """Write a file, if there may be one; others go for it."""
        with suppress(OSError):
            if own_directory(self.directory):
                self._write(key, contents)
                self._forget_oldest()

    def drop(self, key: str) -> None:
        """Remove a file that turned out to be damaged."""
        with suppress(OSError):
            os.unlink(os.path.join(self.directory, key))

    def _write(self, key: str, contents: Iterable[bytes]) -> None:
        """A reader sees all of it or none."""
        path = os.path.join(self.directory, f".{key}.{os.urandom(8).hex()}")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            with open(os.open(path, flags, 0o600), "wb") as file:
                file.writelines(contents)
            os.replace(path, os.path.join(self.directory, key))
        except OSError:
            with suppress(OSError):
                os.unlink(path)
            raise

    def _forget_oldest(self) -> None:
        """Remove files until they fit, leftovers of interrupted runs among them."""
        with os.scandir(self.directory) as entries:
            files = [(entry.stat(follow_symlinks=False), entry.path) for entry in entries]
        total = sum(status.st_size for status, _ in files)
        for status, path in sorted(files, key=lambda file: file[0].st_mtime_ns):
            if total <= self._limit:
                break
            with suppress(OSError):
                os.unlink(path)
            total -= status.st_size


class CacheReader:
    """Reads a file at any place, opening it each time: it must stay the same one.

    Raises:
        OSError: it cannot be read, is not ours alone, or is another one by now.
    """

    def __init__(self, path: str, held: HeldFiles) -> None:
        self.path = path
        self._held = held
        fd = open_regular(path, follow=False)
        try:
            status = os.fstat(fd)
            self._check(_is_own(status))
        finally:
            os.close(fd)
        self._identity, self.size = (status.st_dev, status.st_ino), status.st_size

    def __call__(self, offset: int, size: int) -> bytes:
        """Return some bytes of the file."""
        fd = self._held.get((self.path, self._identity))
        if fd is None:
            fd = self._open()
        try:
            return os.pread(fd, size, offset)
        finally:
            self._held.done((self.path, self._identity), fd)

    def _open(self) -> int:
        fd = open_regular(self.path, follow=False)
        try:
            status = os.fstat(fd)
            self._check((status.st_dev, status.st_ino) == self._identity)
        except OSError:
            os.close(fd)
            raise
        return fd

    def _check(self, is_ours: bool) -> None:  # noqa: FBT001
        if not is_ours:
            raise OSError(errno.ESTALE, os.strerror(errno.ESTALE), self.path)


def cache_home() -> str:
    """Return the user's folder of caches (XDG Base Directory Specification)."""
    home = os.environ.get("XDG_CACHE_HOME", "")
    return home if os.path.isabs(home) else os.path.expanduser("~/.cache")


def own_directory(directory: str) -> bool:
    """Make a directory where only we may write; False: it would be in another user's (sudo -E)."""
    above = directory
    while not os.path.lexists(above):
        above = os.path.dirname(above)
    if os.stat(above).st_uid != os.geteuid() or not _is_safe(above):
        return False
    os.makedirs(directory, 0o700, exist_ok=True)
    return _is_trusted(directory)


def _is_trusted(directory: str) -> bool:
    status = os.lstat(directory)
    return stat.S_ISDIR(status.st_mode) and _is_own(status) and _is_safe(directory)


def _is_safe(path: str) -> bool:
    """Return True if no other user can exchange a part of the path: a directory, or a link to one.

    In a sticky directory others can only exchange their own files.
    """
    for _ in range(_MOST_PARTS):
        status = os.lstat(path)
        if status.st_uid not in (os.geteuid(), 0):
            return False
        if stat.S_ISLNK(status.st_mode):
            if not _is_safe(os.path.join(os.path.dirname(path), os.readlink(path))):
                return False
        elif status.st_mode & _WRITABLE_BY_OTHERS and not status.st_mode & stat.S_ISVTX:
            return False
        above = os.path.dirname(os.path.abspath(path))
        if above == path:
            return True
        path = above
    return False


def _is_own(status: os.stat_result) -> bool:
    return status.st_uid == os.geteuid() and not status.st_mode & _WRITABLE_BY_OTHERS
