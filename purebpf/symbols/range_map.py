"""`RangeMap`: what ranges of addresses have, of which those are known that were asked for."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import Generic, TypeVar

__all__ = ["RangeMap"]

_Value = TypeVar("_Value")


class RangeMap(Generic[_Value]):
    """Values by range: one bisect of the few ranges that were added.

    Ranges may overlap where they have one value.
    """

    __slots__ = ("_ends", "_starts", "_values")

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._values: list[_Value] = []

    def __len__(self) -> int:
        """How many ranges there are."""
        return len(self._starts)

    def find(self, address: int) -> _Value | None:
        """The value of the range that starts last, of those that start up to there."""
        at = bisect_right(self._starts, address) - 1
        return self._values[at] if at >= 0 and address < self._ends[at] else None

    def add(self, start: int, end: int, value: _Value) -> None:
        """Addresses from `start` up to `end` have a value, instead of one that starts there."""
        at = bisect_left(self._starts, start)
        if at < len(self._starts) and self._starts[at] == start:
            self._ends[at], self._values[at] = end, value
            return
        self._starts.insert(at, start)
        self._ends.insert(at, end)
        self._values.insert(at, value)

    def clear(self) -> None:
        """Forget all."""
        for column in (self._starts, self._ends, self._values):
            column.clear()
