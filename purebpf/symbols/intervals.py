"""Address ranges that one bisect searches.

ELF functions nest, jitted code is written over older code, mappings replace mappings: all three
become disjoint ranges, where the higher rank wins. A `RangeMap` holds only the ranges that were
looked up.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from heapq import heappop, heappush
from typing import Generic, TypeVar

from purebpf.tuples import NamedTuple

__all__ = ["RangeMap", "Segments", "flatten"]


class Segments(NamedTuple):
    """Disjoint ranges in ascending order: `starts[i] <= address < ends[i]` belongs to `owners[i]`.

    A range takes 20 bytes, in any number. An owner is an index into the flattened list.
    """

    starts: array[int]
    ends: array[int]
    owners: array[int]

    def owner(self, address: int) -> int:
        """The owner of an address, or -1."""
        at = bisect_right(self.starts, address) - 1
        return self.owners[at] if at >= 0 and address < self.ends[at] else -1

    def span(self, address: int) -> tuple[int, int] | None:
        """The range that an address is in."""
        at = bisect_right(self.starts, address) - 1
        inside = at >= 0 and address < self.ends[at]
        return (self.starts[at], self.ends[at]) if inside else None

    def overlapping(self, start: int, end: int) -> Iterator[tuple[int, int, int]]:
        """The ranges with an address in [start, end), cut to it, with their owners."""
        at = max(bisect_right(self.starts, start) - 1, 0)
        while at < len(self.starts) and self.starts[at] < end:
            if self.ends[at] > start:
                yield max(self.starts[at], start), min(self.ends[at], end), self.owners[at]
            at += 1

    @property
    def nbytes(self) -> int:
        """Memory used, in bytes."""
        return 20 * len(self.starts)


def flatten(
    starts: Sequence[int], ends: Sequence[int], ranks: Sequence[int] | None = None
) -> Segments:
    """Cut ranges so that each address has one owner: of those that cover it, the highest rank.

    Args:
        starts: first addresses, ascending.
        ends: the addresses behind the last; a range that ends where it starts owns nothing.
        ranks: one a range; without them the later range wins, so a nested one hides the outer.
    """
    segments = Segments(array("Q"), array("Q"), array("I"))
    waiting: list[_Open] = []
    last = len(starts) - 1
    position = 0
    for index, start in enumerate(starts):
        end = ends[index]
        if waiting:
            _advance(segments, waiting, position, start)
        if waiting or (index < last and end > starts[index + 1]):
            heappush(waiting, (-(ranks[index] if ranks else index), end, index))
            position = start
        elif start < end:  # alone here, as nearly all are
            _append(segments, start, end, index)
    _advance(segments, waiting, position, max((end for _, end, _ in waiting), default=0))
    return segments


_Open = tuple[int, int, int]
"""A range that began: (-rank, end, index), so that the least is the owner."""


def _advance(segments: Segments, waiting: list[_Open], position: int, until: int) -> None:
    """Give [position, until) to the best of the open ranges, and drop those that ended."""
    while waiting:
        _, end, owner = waiting[0]
        if end <= position:
            heappop(waiting)
        elif position < until:
            stop = min(end, until)
            _append(segments, position, stop, owner)
            position = stop
        else:
            return


def _append(segments: Segments, start: int, end: int, owner: int) -> None:
    if segments.owners and segments.owners[-1] == owner and segments.ends[-1] == start:
        segments.ends[-1] = end
        return
    segments.starts.append(start)
    segments.ends.append(end)
    segments.owners.append(owner)


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
        """Return the number of ranges."""
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
