"""`LaterLooks`: processes to look at again, since their interpreter is about to start."""

from __future__ import annotations

import time
from collections.abc import Callable

from purebpf.tuples import NamedTuple

__all__ = ["LaterLooks"]

_FIRST_S = 0.005
_GROWTH = 1.5
_YOUNG_S = 0.25
"""Time since the first look in which each sample is a reason for another one."""
_SHARE = 0.1
"""Of the time since the first look: so long no sample is a reason for another one."""
_MOST_S = 5.0
"""How long a process may take from its first sample to its first thread state."""
_IDLE_S = 5.0
"""Samples wake the reader by what they send: this is for what is to be forgotten."""


class _Look(NamedTuple):
    """`process` is the tgid in the initial PID namespace, `identity` its program's."""

    process: int
    identity: int
    began_s: float
    looked_s: float
    due_s: float


class LaterLooks:
    """Schedules the looks at each process: soon at first, then less and less often.

    Args:
        clock: seconds, as time.monotonic().
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._looks: dict[int, _Look] = {}

    def add(self, tgid: int, process: int, identity: int) -> None:
        """Look at a process again: later than the last time, until it is too old."""
        now = self._clock()
        last = self._looks.get(tgid)
        began = last.began_s if last else now
        if now < began + _MOST_S:
            wait = max(_FIRST_S, (_GROWTH - 1) * (now - began))
            self._looks[tgid] = _Look(process, identity, began, now, now + wait)
        else:
            self.drop(tgid)

    def drop(self, tgid: int) -> None:
        """Look at it no more."""
        self._looks.pop(tgid, None)

    def may_look(self, tgid: int) -> bool:
        """Return True if a sample is a reason to look at a process, which was just not ready.

        A busy process can have thousands of samples a second, and a look takes a millisecond.
        """
        look = self._looks.get(tgid)
        if look is None or look.looked_s - look.began_s < _YOUNG_S:
            return True
        return self._clock() >= look.looked_s + _SHARE * (look.looked_s - look.began_s)

    def due(self) -> list[tuple[int, int, int]]:
        """The processes to look at now: `add` or `drop` each of them. (tgid, process, identity)."""
        now = self._clock()
        return [
            (tgid, look.process, look.identity)
            for tgid, look in self._looks.items()
            if look.due_s <= now
        ]

    def next_s(self) -> float:
        """Seconds until the next look; five when there is none."""
        now = self._clock()
        waits = [look.due_s - now for look in self._looks.values()]
        return max(0.001, min([_IDLE_S, *waits]))
