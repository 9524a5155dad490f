"""`Pieces`: hands out parts of a row of numbers, and takes them back after a while."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections import deque
from collections.abc import Callable

__all__ = ["GRACE_S", "Pieces"]

GRACE_S = 1.0
"""How long after it was given back a piece stays as it is: a program may still read it."""


class Pieces:
    """The numbers from `first` up to `end`.

    Args:
        first, end: the first number, and the one after the last.
        aligned: the alignment of each piece.
        clock: seconds.

    Attributes:
        size: how many numbers there are.
        kept: those in pieces that were not given back.
    """

    def __init__(
        self, first: int, end: int, aligned: int = 1, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.size = end - first
        self.kept = 0
        self._aligned = aligned
        self._clock = clock
        self._starts, self._ends = [first], [end]
        self._given_back: deque[tuple[float, int, int]] = deque()
        self._hopeless = self.size + 1

    def take(self, count: int) -> int | None:
        """Return the begin of a piece of at least so many; None if there is none."""
        self._collect()
        count = self._rounded(count)
        if count >= self._hopeless:
            return None
        for at, start in enumerate(self._starts):
            if self._ends[at] - start >= count:
                self._starts[at] = start + count
                if self._starts[at] == self._ends[at]:
                    del self._starts[at], self._ends[at]
                self.kept += count
                return start
        self._hopeless = count
        return None

    def give_back(self, start: int, count: int) -> None:
        """Release a piece that nothing points at any more. It can be used again after a second."""
        count = self._rounded(count)
        self.kept -= count
        self._given_back.append((self._clock() + GRACE_S, start, count))

    @property
    def is_empty(self) -> bool:
        """True if nothing is in use, and no program may still read any of it."""
        self._collect()
        return not (self.kept or self._given_back)

    def _rounded(self, count: int) -> int:
        return -(-max(count, 1) // self._aligned) * self._aligned

    def _collect(self) -> None:
        while self._given_back and self._given_back[0][0] < self._clock():
            _, start, count = self._given_back.popleft()
            self._free(start, start + count)
            self._hopeless = self.size + 1

    def _free(self, start: int, end: int) -> None:
        """Put a free piece between the others, joined with those it touches."""
        starts, ends = self._starts, self._ends
        at = bisect_left(starts, start)
        if at < len(starts) and starts[at] == end:
            end = ends[at]
            del starts[at], ends[at]
        if at and ends[at - 1] == start:
            ends[at - 1] = end
            return
        starts.insert(at, start)
        ends.insert(at, end)
