"""Waits for locks of user space, added up. Pure."""

from __future__ import annotations

from purebpf.tuples import NamedTuple

__all__ = ["UserRow", "UserWait"]

_QUEUE = 3


class UserWait(NamedTuple):
    """A wait for a lock of user space that ended.

    Attributes:
        time_ns: of its end, since 1970.
        pid, tid, comm: the thread that waited.
        type: one of `purebpf.tools.lock.request.USER_TYPES`.
        lock: its address in the process; `name` describes the memory there.
        took_ns: how long the thread slept.
        owner_tid: who held a mutex of glibc when the wait began; 0: not known.
        wake_ns: from the call of who let go to the end of the wait; 0: not seen.
        caller: the function that asked for the lock.
        stack, waker: names of functions, as of `UserRow`.
    """

    time_ns: int
    pid: int
    tid: int
    comm: str
    type: str
    lock: int
    name: str
    took_ns: int
    owner_tid: int
    wake_ns: int
    caller: str
    stack: tuple[str, ...]
    waker: tuple[str, ...]


class UserRow(NamedTuple):
    """Waits of one caller, lock, process, thread, owner or cgroup, added up.

    Attributes:
        name: of the group: the caller's function, a lock, a command, a cgroup.
        pid, tid: of the process, thread or owner; 0: not known, or not grouped by.
        type: one of `purebpf.tools.lock.request.USER_TYPES`.
        address: of the lock in the process, where waits are grouped by lock; else 0.
        waits: that ended; `open`: those that had not, when the run did.
        total_ns: of both; max_ns: of both, the longest.
        timeouts: of the waits, those that ended by the clock.
        woken, wake_ns: waits with a recorded waker, and the time from its call to their end.
        most_waiting: threads that waited for one lock at the same time.
        handed_on: waits that ended with the lock while others still waited for it.
        buckets: of nanoseconds, of those that ended: see `purebpf.results.shape.histogram`.
        stack: names of the functions of most of the time, the innermost first; empty without
            `LockOptions.stacks`. `waker`: the same of the thread that last let go.
        released_in: own functions of the thread that let go, innermost first: it had the lock.
            () if it is not known, or if the lock is none that its holder lets go.
    """

    name: str
    pid: int
    tid: int
    type: str
    address: int
    waits: int
    open: int
    total_ns: int
    max_ns: int
    timeouts: int
    woken: int
    wake_ns: int
    most_waiting: int
    handed_on: int
    buckets: tuple[int, ...]
    stack: tuple[str, ...]
    waker: tuple[str, ...]
    released_in: tuple[str, ...] = ()

    @property
    def is_convoy(self) -> bool:
        """True if most waits ended with a queue behind them: work goes through one at a time.

        A semaphore lets several through; threads that wait for one may be workers without a job.
        """
        if self.type == "semaphore":
            return False
        return self.most_waiting >= _QUEUE and 2 * self.handed_on > self.waits >= _QUEUE
