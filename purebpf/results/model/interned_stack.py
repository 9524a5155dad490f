"""A stack as numbers of frames, as saved profiles keep it."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from typing import overload

from purebpf.symbols.frame import Frame, Unknown

__all__ = ["Numbered"]


class Numbered(Sequence[Frame | Unknown]):
    """A stack, leaf first, that looks its entries up in a table that many stacks share.

    It takes four bytes for an entry where a tuple takes eight, and who wants numbers
    (`purebpf.results.shape.frame_table`) finds them here. Equal to a tuple of the same entries.
    """

    __slots__ = ("numbers", "table")

    def __init__(self, table: list[Frame | Unknown], numbers: array[int]) -> None:
        """The table has to have every one of the numbers."""
        self.table = table
        self.numbers = numbers

    def __len__(self) -> int:
        return len(self.numbers)

    @overload
    def __getitem__(self, at: int) -> Frame | Unknown: ...

    @overload
    def __getitem__(self, at: slice) -> Numbered: ...

    def __getitem__(self, at: int | slice) -> Frame | Unknown | Numbered:
        if isinstance(at, slice):
            return Numbered(self.table, self.numbers[at])
        return self.table[self.numbers[at]]

    def __iter__(self) -> Iterator[Frame | Unknown]:
        return map(self.table.__getitem__, self.numbers)

    def __reversed__(self) -> Iterator[Frame | Unknown]:
        return map(self.table.__getitem__, reversed(self.numbers))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Numbered | tuple):
            return tuple(self) == tuple(other)
        return NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(tuple(self))
