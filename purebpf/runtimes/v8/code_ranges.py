"""The addresses of V8's code in a process: what it has generated, and its builtins."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

__all__ = ["CodeRanges"]


class CodeRanges:
    """The places of V8's code.

    Args:
        generated: memory for code that V8 generates, as starts and ends.
        builtins: the code of its own functions, which may be mapped twice.
    """

    def __init__(
        self, generated: Iterable[tuple[int, int]], builtins: Iterable[tuple[int, int]]
    ) -> None:
        self._generated = sorted(generated)
        self._builtins = sorted(builtins)

    def has(self, address: int) -> bool:
        """Return True if an address is in V8's code."""
        return _start(self._builtins, address) is not None or self.is_generated(address)

    def is_generated(self, address: int) -> bool:
        """Return True if an address is in memory for generated code."""
        return _start(self._generated, address) is not None

    @property
    def has_copy(self) -> bool:
        """Return True if the builtins are mapped twice."""
        return len(self._builtins) > 1

    def builtins_at(self, most: int) -> tuple[list[int], int]:
        """The starts of the builtins, `most` of them, and their size.

        The last start stands in place of missing ones; without any, the size is 0.
        """
        if not self._builtins:
            return [0] * most, 0
        starts = [start for start, _ in self._builtins[:most]]
        size = max(end - start for start, end in self._builtins)
        return starts + starts[-1:] * (most - len(starts)), size

    def region(self, address: int) -> int:
        """The start of the memory for generated code that has an address; the address if none."""
        start = _start(self._generated, address)
        return address if start is None else start


def _start(ranges: list[tuple[int, int]], address: int) -> int | None:
    at = bisect_right(ranges, (address, 1 << 64)) - 1
    return ranges[at][0] if at >= 0 and address < ranges[at][1] else None
