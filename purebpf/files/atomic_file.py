"""A file that has its name when it is complete: the open descriptor, and the rename."""

from __future__ import annotations

import errno
import os
import stat
import time
from contextlib import suppress

from purebpf.closable import SoleOwner
from purebpf.files.output_path import OutputPlace, RefusedError, resolve

__all__ = ["NotRegularError", "PartFile", "link_part", "open_part", "open_special", "why_refused"]

_TRIES = 100
_LONGEST = 200  # of a name with a suffix; NAME_MAX is 255
_NO_UNNAMED = (errno.EOPNOTSUPP, errno.EISDIR, errno.ENOENT, errno.EINVAL)
"""What file systems and kernels without O_TMPFILE say (open(2))."""
_READER_S = 2.0
_RETRY_S = 0.05


class NotRegularError(OSError):
    """There is a device or a pipe, which nothing can replace."""


class PartFile(SoleOwner):
    """A new file beside the one at `path`, which it replaces when it is committed.

    The file behind a link is replaced, not the link. A file that cannot be written or replaced is
    refused at once. Until it is committed it has no name, so that a killed run leaves nothing;
    where the file system cannot do that, or if `named`, it has a random one.

    Args:
        path: its final name.
        private: its owner only may read it, and that is this user. Else it has the owner and the
            mode of the file that it replaces.
        named: it has a name from the start: `path`, random digits, `.part`.

    Attributes:
        path: its final name, without links in its last part.
        fd: its descriptor, open for reading and writing; the caller closes it.

    Raises:
        OSError: open(2) failed; or `path` is empty, a directory or may not be written.
        NotRegularError: `path` is a device or a pipe.
        RefusedError: it is another user's, who may have put it there for us.
    """

    def __init__(self, path: str, *, private: bool = False, named: bool = False) -> None:
        place = resolve(path)
        try:
            old = _check_path(place)
            mode = 0o600 if private or old else 0o666
            self._temporary, self.fd = open_part(place, mode, named=named)
            self._held = os.dup(self.fd)
        except BaseException:
            place.close()
            raise
        self.path = place.path
        self._place = place
        if old and not private:
            _take_after(self.fd, old)

    def commit(self) -> None:
        """Give the file its name; if that fails, remove all of it.

        Raises:
            OSError: link(2) or rename(2) failed, or another user has exchanged the file.
        """
        directory = self._place.directory
        try:
            if not self._temporary:
                self._temporary = link_part(self._held, self._place)
            _check_same(
                os.stat(self._temporary, dir_fd=directory, follow_symlinks=False),
                os.fstat(self._held),
            )
            os.rename(self._temporary, self._place.name, src_dir_fd=directory, dst_dir_fd=directory)
        except OSError:
            with suppress(FileNotFoundError):
                self.discard()
            raise
        self._close()

    def discard(self) -> None:
        """Leave nothing behind.

        Raises:
            OSError: unlink(2) failed.
        """
        try:
            if self._temporary:
                os.unlink(self._temporary, dir_fd=self._place.directory)
        finally:
            self._close()

    @property
    def name(self) -> str:
        """The temporary name until it is committed; "" if it has none."""
        if not self._temporary:
            return ""
        return os.path.join(os.path.dirname(self.path), self._temporary)

    def keep(self) -> None:
        """Leave it where it is."""
        self._close()

    def _close(self) -> None:
        os.close(self._held)
        self._place.close()


def open_special(path: str) -> int | None:
    """A descriptor for writing to a device or pipe; None: the path is not such a thing.

    It is never waited for long: a pipe that no process reads may be another user's trap.

    Raises:
        OSError: it cannot be opened; ENXIO: no process reads the pipe.
        RefusedError: it is another user's, who may have put it there for us.
    """
    place = resolve(path)
    try:
        if not place.is_special:
            return None
        fd = _open_writer(place)
        os.set_blocking(fd, True)
        return fd
    finally:
        place.close()


def why_refused(error: OSError) -> str:
    """More than the error's number says, or ""."""
    if isinstance(error, RefusedError):
        return str(error.strerror)
    if error.errno == errno.ENXIO:
        return "no process reads from it: start the reader first"
    return ""


def _open_writer(place: OutputPlace) -> int:
    flags = os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    flags |= 0 if place.is_magic else os.O_NOFOLLOW
    end = time.monotonic() + _READER_S
    while True:
        try:
            fd = os.open(place.name, flags, dir_fd=place.directory)
        except OSError as error:
            if error.errno != errno.ENXIO or time.monotonic() > end:
                raise
            time.sleep(_RETRY_S)
            continue
        if place.old is not None and not place.is_magic:
            try:
                _check_same(place.old, os.fstat(fd))
            except OSError:
                os.close(fd)
                raise
        return fd


def _check_same(one: os.stat_result, other: os.stat_result) -> None:
    """Raise OSError if another user exchanged a file since."""
    if not os.path.samestat(one, other):
        raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))


def _check_path(place: OutputPlace) -> os.stat_result | None:
    """Return the file that has the name now, if there is one; raise OSError if no file could be
    written.
    """
    old = place.old
    if old is None:
        return None
    if stat.S_ISDIR(old.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if place.is_special:
        raise NotRegularError(errno.EINVAL, os.strerror(errno.EINVAL))
    if not os.access(place.name, os.W_OK, dir_fd=place.directory):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    return old


def open_part(place: OutputPlace, mode: int, *, named: bool = False) -> tuple[str, int]:
    """Return the name that a new file has for now, if it has one, and its descriptor.

    Raises:
        OSError: open(2) failed.
    """
    if not named and os.path.isdir("/proc/self/fd"):  # else it could not be linked later
        try:
            flags = os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC
            return "", os.open(".", flags, mode, dir_fd=place.directory)
        except OSError as error:
            if error.errno not in _NO_UNNAMED:
                raise
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    for _ in range(_TRIES):
        name = _random_name(place)
        with suppress(FileExistsError):
            return name, os.open(name, flags, mode, dir_fd=place.directory)
    raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))


def link_part(fd: int, place: OutputPlace) -> str:
    """Give an unnamed file a random name, and return that.

    Raises:
        OSError: link(2) failed.
    """
    for _ in range(_TRIES):
        name = _random_name(place)
        with suppress(FileExistsError):
            os.link(f"/proc/self/fd/{fd}", name, dst_dir_fd=place.directory, follow_symlinks=True)
            return name
    raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))


def _random_name(place: OutputPlace) -> str:
    base = os.fsdecode(os.fsencode(place.name)[:_LONGEST])
    return f"{base}.{os.urandom(4).hex()}.part"


def _take_after(fd: int, old: os.stat_result) -> None:
    """Give it the owner and the mode of the old file.

    If that owner is refused, its group is another one as well, which gets the permissions of
    everybody.
    """
    mode = old.st_mode & 0o777
    try:
        os.fchown(fd, old.st_uid, old.st_gid)
    except OSError:
        mode &= 0o707 | (mode & 7) << 3
    with suppress(OSError):  # a file system without modes
        os.fchmod(fd, mode)
