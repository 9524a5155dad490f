"""`.debug_frame` beside `.eh_frame`: the former adds the functions that the latter lacks.

A program built without unwind tables has entries of the C runtime's start files in `.eh_frame`,
and its own in `.debug_frame`.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator

from purebpf.unwind.budget import Budget
from purebpf.unwind.elf_frames import Frames
from purebpf.unwind.entries import Cie, Fde, FrameSection
from purebpf.unwind.fde_index import FdeIndex

__all__ = ["JoinedSections", "join_sections"]


class JoinedSections(FrameSection):
    """Two sections as one; the offsets of the second come after the first's.

    Args:
        first: the one whose entries are preferred.
        second: the other one.
        used: the offsets of its entries that count.
    """

    def __init__(self, first: FrameSection, second: FrameSection, used: frozenset[int]) -> None:
        self._first, self._second, self._used = first, second, used
        self.size = first.size + second.size
        self.address = first.address
        self.is_debug = False
        self.broken = 0

    def fde(self, at: int, budget: Budget) -> tuple[Fde, int]:
        """Return the FDE at an offset, and where it ends. Raises as `FrameSection.fde`."""
        size = self._first.size
        if at < size:
            return self._first.fde(at, budget)
        fde, end = self._second.fde(at - size, budget)
        return fde, end + size

    def scan(self, budget: Budget) -> Iterator[tuple[int, int, int, Cie, bytes, int]]:
        """Yield the offset and the fields of each FDE that counts, as `FrameSection.scan`."""
        yield from self._first.scan(budget)
        for at, start, end, cie, code, address in self._second.scan(budget):
            if at in self._used:
                yield at + self._first.size, start, end, cie, code, address
        self.broken = self._first.broken + self._second.broken


def join_sections(
    first: tuple[Frames, FdeIndex],
    second: tuple[Frames, FdeIndex],
    covers: Callable[[int], bool],
) -> tuple[Frames, FdeIndex]:
    """Return the first section and its index with the entries that only the second has.

    Args:
        first: the section whose entries are preferred.
        second: the other one.
        covers: returns True if the first has an entry for an address.
    """
    (frames, index), (others, added) = first, second
    rows = [
        (start + added.base, added.offset(at))
        for at, start in enumerate(added.starts)
        if not covers(start + added.base)
    ]
    if not rows:
        return first
    used = frozenset(offset for _, offset in rows)
    size = frames.section.size
    rows = [(start, offset + size) for start, offset in rows]
    rows += [(start + index.base, index.offset(at)) for at, start in enumerate(index.starts)]
    rows.sort()
    starts = array("Q", [start for start, _ in rows])
    offsets = array("Q", [offset for _, offset in rows])
    section = JoinedSections(frames.section, others.section, used)
    return Frames(section, None), FdeIndex(0, starts, offsets, 0)
