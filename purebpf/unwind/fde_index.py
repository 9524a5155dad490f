"""The index from an address to its FDE: `.eh_frame_hdr`, or an index that is built here.

Layout of .eh_frame_hdr: Linux Standard Base, Core Generic, "Exception Frames"; its table is
sorted by the linker.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence

from purebpf.tuples import NamedTuple
from purebpf.unwind.budget import Budget, OverBudgetError
from purebpf.unwind.encoded import OMIT, Bases, EncodingError, pointer
from purebpf.unwind.entries import FrameSection

__all__ = ["FdeIndex", "frame_address", "read_search_table", "scan_index"]

_DATAREL_SDATA4 = 0x3B
_WORD = (1 << 64) - 1
_SLICE = 2048
_MOST = 1 << 20
"""Entries of an index: libLLVM has 118,004."""


class FdeIndex(NamedTuple):
    """Starts in ascending order, less `base`, and where in the section their FDEs are."""

    base: int
    starts: Sequence[int]
    offsets: Sequence[int]
    offset_base: int

    def last(self, address: int) -> int:
        """Index of the last FDE that starts at or before an address; -1 if there is none."""
        return bisect_right(self.starts, address - self.base) - 1

    def between(self, start: int, end: int) -> range:
        """Indexes of the FDEs that start in [start, end)."""
        first = bisect_left(self.starts, start - self.base)
        return range(first, bisect_left(self.starts, end - self.base, first))

    def offset(self, at: int) -> int:
        """Return the offset of the FDE at an index."""
        return self.offsets[at] + self.offset_base


def frame_address(header: bytes, address: int) -> int | None:
    """Return the address of .eh_frame from a .eh_frame_hdr at `address`; None if it is not
    given.
    """
    if len(header) < 4 or header[0] != 1 or header[1] == OMIT:
        return None
    try:
        return pointer(header, 4, header[1], address + 4, Bases(data=address))[0]
    except EncodingError:
        return None


def read_search_table(data: bytes, address: int, frame_at: int) -> FdeIndex | None:
    """The index in a .eh_frame_hdr.

    Args:
        data: the section.
        address: where it is loaded.
        frame_at: where .eh_frame is loaded.

    Returns:
        the index; None if there is none of the one kind that linkers write (8 bytes an entry).
    """
    if len(data) < 4 or data[0] != 1 or data[3] != _DATAREL_SDATA4 or OMIT in data[1:3]:
        return None
    try:
        bases = Bases(data=address)
        _, at = pointer(data, 4, data[1], address + 4, bases)
        count, at = pointer(data, at, data[2], address + at, bases)
    except EncodingError:
        return None
    count = min(count, (len(data) - at) // 8)
    if not count:
        return None
    words = array("i", data[at : at + 8 * count])
    if sys.byteorder == "big":
        words.byteswap()
    return FdeIndex(address, words[::2], words[1::2], address - frame_at)


def scan_index(section: FrameSection, budget: Budget, made: list[FdeIndex]) -> Iterator[None]:
    """Make the index of a section that has none; yields now and then, appends it to `made`.

    Raises:
        OverBudgetError: as `FrameSection.scan` does; and for too many entries.
    """
    starts, offsets = array("Q"), array("Q")
    is_sorted = True
    before = 0
    for offset, start, end, _, _, _ in section.scan(budget):
        if start < end <= _WORD:
            is_sorted = is_sorted and before <= start
            before = start
            starts.append(start)
            offsets.append(offset)
            if len(starts) > _MOST:
                raise OverBudgetError
            if not len(starts) % _SLICE:
                yield
    if not is_sorted:
        order = sorted(range(len(starts)), key=starts.__getitem__)
        starts = array("Q", [starts[at] for at in order])
        offsets = array("Q", [offsets[at] for at in order])
    made.append(FdeIndex(0, starts, offsets, 0))
