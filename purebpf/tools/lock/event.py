"""Waits for locks, one by one and added up. Pure."""

from __future__ import annotations

from purebpf.tuples import NamedTuple

__all__ = ["LockRow", "Wait"]


class Wait(NamedTuple):
    """A wait that ended.

    Attributes:
        time_ns: of its end, since 1970.
        pid, tid, uid, comm: the task that waited.
        type: one of `purebpf.tools.lock.request.TYPES`.
        lock: its address; `name` describes it, or is "" for an unknown lock.
        took_ns: how long the task waited, spun or slept.
        owner, owner_pid, owner_tid: who held it when the wait began; "" and 0 for types that do not
            say: all but mutexes, and semaphores that a writer holds.
        caller: the function that asked for the lock; "": not asked for.
        stack: names of the functions, the innermost first; empty without `LockOptions.stacks`.
        owner_stack: the same of the owner, if it slept while it was waited for.
        known_from: where `name` is from: as of `LockRow`.
    """

    time_ns: int
    pid: int
    tid: int
    uid: int
    comm: str
    type: str
    lock: int
    name: str
    took_ns: int
    owner: str
    owner_pid: int
    owner_tid: int
    caller: str
    stack: tuple[str, ...]
    owner_stack: tuple[str, ...] = ()
    known_from: str = ""


class LockRow(NamedTuple):
    """Waits of one caller, lock, process, thread, owner or cgroup, added up.

    Attributes:
        name: of the group: the caller's function, a lock, a command, a cgroup.
        pid, tid: of the process, thread or owner; 0: not known, or not grouped by.
        type: one of `purebpf.tools.lock.request.TYPES`, where waits are grouped by caller or lock.
        waits: that ended; `open`: those that had not, when the run did.
        total_ns: of both; max_ns: of both, the longest.
        buckets: of nanoseconds, of those that ended: see `purebpf.results.shape.histogram`.
        stack: the kernel stack of most of its time, as in `Wait`.
        owner_stack: the last stack of an owner that was seen, as in `Wait`.
        known_from: where the name of a lock is from: "task", "CPU", "slab CACHE", "symbol"; "".
    """

    name: str
    pid: int
    tid: int
    type: str
    waits: int
    open: int
    total_ns: int
    max_ns: int
    buckets: tuple[int, ...]
    stack: tuple[str, ...]
    owner_stack: tuple[str, ...] = ()
    known_from: str = ""
