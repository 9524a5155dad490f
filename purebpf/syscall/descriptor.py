"""A file descriptor with one owner."""

from __future__ import annotations

import fcntl
import os
import warnings

from purebpf.closable import Closing, refuse_copy

__all__ = ["Descriptor", "Fresh", "close_own", "directory", "keep_only"]

_CLOSED = -1


class Fresh(int):
    """The number of a descriptor on its way from the system call to its `Descriptor`.

    A signal handler may raise at any instruction between the two, and most probably does right
    after the call that it interrupted. The number would be lost with the frame; the C code that
    made the call makes this one, which closes itself when it is dropped.
    """

    taken = False

    __reduce_ex__ = refuse_copy

    def __del__(self) -> None:
        if self >= 0 and not self.taken:
            self.taken = True
            os.close(self)


class Descriptor(Closing):
    """An owned file descriptor: closed once, by `close()`, by `with`, or at last by the collector.

    Has `fileno()`, so select, mmap and os functions take it. A collected descriptor that was never
    closed is a `ResourceWarning`: the owner forgot it.

    Attributes:
        fd: the number; -1 when it is closed.
        owner: its use, for that warning: "map 'counts'"; or "".
    """

    __slots__ = ("__weakref__", "fd", "owner")

    def __init__(self, fd: int) -> None:
        if isinstance(fd, Fresh):
            fd.taken = True  # nothing is called, and so no handler runs, between this and the next
        self.fd = fd
        self.owner = ""

    def fileno(self) -> int:
        """The number.

        Raises:
            ValueError: it is closed.
        """
        if self.fd == _CLOSED:
            raise ValueError("the file descriptor is closed")
        return self.fd

    @property
    def closed(self) -> bool:
        """True if it was closed or given away."""
        return self.fd == _CLOSED

    def close(self) -> None:
        """Close it; again is harmless."""
        fd, self.fd = self.fd, _CLOSED
        if fd != _CLOSED:
            os.close(fd)

    def detach(self) -> int:
        """Give the number away: the caller now closes it.

        Raises:
            ValueError: it is closed.
        """
        fd = self.fileno()
        self.fd = _CLOSED
        return fd

    def duplicate(self) -> Descriptor:
        """A second descriptor of the same open file (F_DUPFD_CLOEXEC), with its own owner.

        Raises:
            ValueError: it is closed.
            OSError: EMFILE, the process is out of descriptors.
        """
        return Descriptor(fcntl.fcntl(self.fileno(), fcntl.F_DUPFD_CLOEXEC, 0))

    def __repr__(self) -> str:
        return "Descriptor(closed)" if self.closed else f"Descriptor({self.fd})"

    def __del__(self) -> None:
        if getattr(self, "fd", _CLOSED) != _CLOSED:
            what = f"{self.owner} ({self!r})" if self.owner else repr(self)
            try:  # the warning may be an error
                warnings.warn(f"unclosed {what}", ResourceWarning, stacklevel=2, source=self)
            finally:
                self.close()


def directory(path: str | os.PathLike[str]) -> Descriptor:
    """A directory, opened to stand for it.

    Raises:
        OSError: open(2) refused: ENOENT, ENOTDIR, EACCES, EMFILE.
    """
    return Descriptor(os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))


def keep_only(*fds: int) -> None:
    """In a forked child: make these the descriptors 0, 1, 2 ..., and close all others.

    A child that its parent may abandon must not keep maps, links or events of its parent alive.

    Raises:
        OSError: EBADF.
    """
    count = len(fds)
    # copies beyond all of the targets, so that no target is overwritten before it is copied
    copies = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, count) for fd in fds]
    for number, fd in enumerate(copies):
        os.dup2(fd, number, inheritable=False)
    _close_from(count)


def close_own(*kept: int) -> None:
    """In a forked child: close every descriptor that execve(2) would close, but these.

    All of purebpf's have FD_CLOEXEC. Others came from the process that started purebpf, and are for
    the command.
    """
    for fd in _open_fds():
        try:
            if fd not in kept and fcntl.fcntl(fd, fcntl.F_GETFD) & fcntl.FD_CLOEXEC:
                os.close(fd)
        except OSError:
            continue  # the listing's own


def _close_from(first: int) -> None:
    # os.closerange() would try every number where the kernel has no close_range(2), before 5.9
    for fd in _open_fds():
        if fd >= first:
            os.closerange(fd, fd + 1)


def _open_fds() -> list[int]:
    """Return the numbers of all descriptors, with the listing's; without /proc, the first 4,096."""
    try:
        return [int(name) for name in os.listdir("/proc/self/fd")]
    except OSError:
        return list(range(4096))
