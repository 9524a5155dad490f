"""A file that is opened, or is not. Pure."""

from __future__ import annotations

from purebpf.tuples import NamedTuple

__all__ = ["Opened"]


class Opened(NamedTuple):
    """A call of open(2), creat(2), openat(2) or openat2(2), when it returns.

    Attributes:
        time_ns: since 1970.
        comm: the name of the thread.
        cgroup: a label of `purebpf.symbols.cgroup_names`.
        path: whole, as the process sees it: a relative path follows its directory. It begins with
            `...` where the directory is unknown. It may contain `..` and symbolic links.
        given: the path as the program gave it; None if it was not in memory.
        flags: O_* of open(2).
        dirfd: the directory that a relative path starts from; AT_FDCWD (-100): the current
            directory.
        fd: the new descriptor; None if the call failed.
        errno: why it failed; 0 if it did not.
        duration_ns: how long the call took; None: only its return was seen, as it was in progress
            when the run began, or was refused by seccomp or a tracer.
    """

    time_ns: int
    pid: int
    tid: int
    uid: int
    comm: str
    cgroup: str
    path: str
    given: str | None
    flags: int
    dirfd: int
    fd: int | None
    errno: int
    duration_ns: int | None
