"""The measured processes: their descendants so far, and their ends."""

from __future__ import annotations

import os
import select
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress

from purebpf.closable import Closing
from purebpf.errors import KernelError
from purebpf.syscall import proc

__all__ = ["TargetEnds", "descendants", "first_pids", "follow_descendants", "with_descendants"]


def descendants(pids: Iterable[int]) -> set[int]:
    """Return these processes, and all below them in /proc at this moment."""
    left = list(pids)
    if not left:
        return set()
    children: dict[int, list[int]] = {}
    for pid in proc.pids():
        with suppress(KernelError):  # not ours to read
            if (parent := proc.parent(pid)) is not None:
                children.setdefault(parent, []).append(pid)
    family: set[int] = set()
    while left:
        pid = left.pop()
        if pid not in family:
            family.add(pid)
            left += children.get(pid, ())
    return family


def with_descendants(pids: tuple[int, ...]) -> tuple[int, ...]:
    """Yield these processes, and then all below them at this moment; some may have ended since."""
    return (*pids, *descendants(pids).difference(pids))


def first_pids(pids: tuple[int, ...], *, tree: bool) -> tuple[int, ...]:
    """The processes that a run begins with: the chosen ones, with `tree` all below them, too."""
    return with_descendants(pids) if tree else pids


def follow_descendants(pids: Iterable[int], follow: Callable[[Collection[int]], object]) -> None:
    """Pass on all processes below these; the ones below a child come right after it."""
    entered = set(pids)
    while missing := descendants(pids) - entered:
        follow(missing)
        entered |= missing


class TargetEnds(Closing):
    """Readable when one of the processes has ended; true as long as one of them lives.

    Where the kernel gives no pidfd (a limit on descriptors), their end is not noticed.

    Attributes:
        ended: the processes that had ended before, and those that `drop_ended` has found.
    """

    def __init__(self, pids: Iterable[int]) -> None:
        self.ended: list[int] = []
        self._fds: dict[int, int] = {}
        for pid in pids:
            try:
                self._fds[pid] = os.pidfd_open(pid)
            except ProcessLookupError:
                self.ended.append(pid)
            except OSError:
                self.close()
                self.ended.clear()
                return

    def __bool__(self) -> bool:
        return bool(self._fds)

    def are_over(self) -> bool:
        """Return True if all processes have ended."""
        return bool(self.ended) and not self._fds

    def fileno(self) -> int:
        """The pidfd of one that lives."""
        return next(iter(self._fds.values()))

    def drop_ended(self) -> bool:
        """Forget those that have ended; whether there were any."""
        poll = select.poll()
        for fd in self._fds.values():
            poll.register(fd, select.POLLIN)
        ready = {fd for fd, _ in poll.poll(0)}
        ended = [pid for pid, fd in self._fds.items() if fd in ready]
        for pid in ended:
            os.close(self._fds.pop(pid))
        self.ended += ended
        return bool(ended)

    def close(self) -> None:
        """Watch no longer; again is harmless."""
        while self._fds:
            os.close(self._fds.popitem()[1])
