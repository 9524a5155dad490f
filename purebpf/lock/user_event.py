"""Waits for locks of user space, added up. Pure."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["UserRow"]

_QUEUE = 3


class UserRow(NamedTuple):
    """Waits of one caller, lock, process, thread, owner or cgroup, added up.

    Attributes:
        name: of what they are grouped by: the caller's function, a lock, a command, a cgroup.
        pid, tid: of the process, thread or owner; 0: not known, or not grouped by. An owner has the
            number that its own PID namespace gives it.
        type: one of `purebpf.lock.request.USER_TYPES`.
        address: of the lock in the process, where waits are grouped by lock; else 0.
        waits: that ended; `open`: those that had not, when the run did.
        total_ns: of both.
        timeouts: of the waits, those that ended by the clock.
        woken, wake_ns: waits of which the waker was seen, and the time from its call to their end.
        most_waiting: threads that waited for one lock at the same time.
        handed_on: waits that ended with the lock while others still waited for it.
        buckets: of nanoseconds, of those that ended: see `purebpf.results.shape.histogram`.
        stack: names of the functions of most of the time, the innermost first; empty without
            `Options.stacks`. `waker`: the same of the thread that last let go.
    """

    name: str
    pid: int
    tid: int
    type: str
    address: int
    waits: int
    open: int
    total_ns: int
    timeouts: int
    woken: int
    wake_ns: int
    most_waiting: int
    handed_on: int
    buckets: tuple[int, ...]
    stack: tuple[str, ...]
    waker: tuple[str, ...]

    @property
    def is_convoy(self) -> bool:
        """Whether most waits ended with a queue behind them: work goes through one at a time."""
        return self.most_waiting >= _QUEUE and 2 * self.handed_on > self.waits >= _QUEUE
