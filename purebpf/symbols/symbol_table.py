"""Functions by address: sorted columns that one bisect searches, in memory or read by slices.

Which of several names one address gets, in this order (tools/perf/util/symbol.c,
choose_best_symbol, has the same rule for names of one address):

1. the function that starts last, so that a nested one hides the outer;
2. one with a size; 3. not weak; 4. global; 5. fewest leading underscores; 6. the longest name.

Where a function ends: at its size. An address behind it is in no function, never in the previous
one. A symbol without a size ends at the next symbol or its section's end, and does not count at
all inside a function that has one.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Iterator, Sequence
from itertools import repeat
from operator import add, and_, rshift
from typing import Protocol

from purebpf.symbols.frame import Frame, VirtualOffset
from purebpf.symbols.intervals import RangeMap
from purebpf.symbols.sorted_addresses import ENTRY_BITS, ENTRY_MASK
from purebpf.tuples import NamedTuple

__all__ = ["BLOCK", "Columns", "Pages", "Strings", "SymbolTable"]

BLOCK = 1 << 10
"""Functions that share one remembered farthest end."""

_FEW = 1 << 5
"""Rows of a block that are looked at one by one."""
_KEEP_GROUPS = 1 << 12
_KEEP_ANSWERS = 1 << 11
_KEEP_PLACES_AT_REST = 1 << 12
_ANSWER_BYTES = 256
"""About what one takes."""
_RANGE_BYTES = 96
"""The same."""
_TOP = (1 << 64) - 1
_MOST_TOGETHER = 1 << 12
"""Symbols of one address that are compared: linkers that fold equal code make thousands."""


class Strings(Protocol):
    """Names by their offset."""

    @property
    def nbytes(self) -> int:
        """The bytes of memory in use."""
        ...

    def get(self, offset: int) -> bytes:
        """The name that starts there, without the NUL; empty where there is none."""
        ...


class Column(Protocol):
    """Numbers by row."""

    def __len__(self) -> int:
        """Return the number of rows."""
        ...

    def __getitem__(self, at: int, /) -> int:
        """Return a row's value."""
        ...


class Columns(NamedTuple):
    """A table as columns. A row is a symbol, by address; an entry is one in the order of the file.

    Attributes:
        keys: of each row its address and entry (`purebpf.symbols.sorted_addresses`), ascending.
        sizes: the size of each entry in bytes; 0 where it is unknown.
        names: of each entry, an offset into the strings.
        ranks: of each entry, 2 for a name that is not weak, and 1 more for a global one.
        regions: (start, end) of the loaded sections, ascending: they bound symbols without a size.
    """

    keys: Column
    sizes: Column
    names: Column
    ranks: Column
    regions: Sequence[tuple[int, int]]


class Pages(Protocol):
    """The parts of a table in a file that were read."""

    @property
    def nbytes(self) -> int:
        """The number of bytes of memory that they take."""
        ...

    def forget(self) -> None:
        """Drop the pages: they are read again when needed."""
        ...


class SymbolTable:
    """Functions by virtual offset. A lookup resolves overlaps, not the constructor.

    Args:
        columns: the symbols.
        strings: their names.
        in_memory: bytes of memory that the columns take.
        highs: the largest end of each `BLOCK` of rows; without them they are computed when needed.
        pages: of a table that is read by slices; None: it is in memory.

    Attributes:
        places: facts about bytes of the file that the user of the table stores for as long as the
            table lives.
        functions: of each path of the file the same about ranges of virtual offsets.
    """

    __slots__ = (
        *("_answers", "_few_highs", "_groups", "_highs"),
        *("columns", "functions", "in_memory", "pages", "places", "strings"),
    )

    def __init__(
        self,
        columns: Columns,
        strings: Strings,
        *,
        in_memory: int,
        highs: Sequence[int] = (),
        pages: Pages | None = None,
    ) -> None:
        self.columns = columns
        self.strings = strings
        self.in_memory = in_memory
        self.pages = pages
        self.places: dict[Hashable, Frame] = {}
        self.functions: dict[str, RangeMap[Frame]] = {}
        self._groups: dict[int, list[int]] = {}
        self._highs = dict(enumerate(highs))
        self._few_highs: dict[int, int] = {}
        self._answers: dict[int, tuple[str, int] | None] = {}

    def __len__(self) -> int:
        """Return the number of symbols."""
        return len(self.columns.keys)

    @property
    def nbytes(self) -> int:
        """Memory used, in bytes."""
        ranges = sum(map(len, self.functions.values()))
        answers = _ANSWER_BYTES * (len(self._answers) + len(self.places)) + _RANGE_BYTES * ranges
        pages = self.pages.nbytes if self.pages else 0
        return self.in_memory + self.strings.nbytes + pages + answers

    def rest(self) -> None:
        """Drop the parts of the file that were remembered, except for ends and a small number of
        `places`.
        """
        for known in (self._answers, self._groups):
            known.clear()
        if len(self.places) > _KEEP_PLACES_AT_REST:
            self.places.clear()
            self.functions.clear()
        if self.pages is not None:
            self.pages.forget()

    def find(self, offset: VirtualOffset) -> tuple[str, int] | None:
        """The function at an offset, as in the file (mangled), and the bytes into it."""
        if offset in self._answers:  # many processes run the same code
            return self._answers[offset]
        if len(self._answers) >= _KEEP_ANSWERS:
            self._answers.clear()
        row = self.row(offset)
        answer = None
        if row is not None:
            name = self._name(row).decode("utf-8", "backslashreplace")
            answer = (name, offset - self._start(row)) if name else None
        self._answers[offset] = answer
        return answer

    def high(self, block: int) -> int:
        """The largest end of the rows of a block."""
        known = self._highs.get(block)
        if known is None:
            rows = range(block * BLOCK, min((block + 1) * BLOCK, len(self)))
            known = self._highs[block] = self._highest(rows)
        return known

    def _highest(self, rows: range) -> int:
        """The largest end of some rows."""
        keys = list(map(self.columns.keys.__getitem__, rows))
        starts = map(rshift, keys, repeat(ENTRY_BITS))
        entries = map(and_, keys, repeat(ENTRY_MASK))
        ends: Iterator[int] = map(add, starts, map(self.columns.sizes.__getitem__, entries))
        return max(ends)

    def _start(self, row: int) -> int:
        return self.columns.keys[row] >> ENTRY_BITS

    def _end(self, row: int) -> int:
        """The address behind it; its start where it has no size."""
        key = self.columns.keys[row]
        return (key >> ENTRY_BITS) + self.columns.sizes[key & ENTRY_MASK]

    def _entry(self, row: int) -> int:
        return self.columns.keys[row] & ENTRY_MASK

    def _first_at(self, start: int, before: int) -> int:
        """The first row, of those before one, that starts at an address or behind it."""
        return bisect_left(self.columns.keys, start << ENTRY_BITS, 0, before)

    def row(self, offset: int) -> int | None:
        """The row of the function at an offset: the same for all of its bytes."""
        last = self._first_at(offset + 1, len(self)) - 1
        if last < 0:
            return None
        start = self._start(last)
        if self._end(last) > offset and (not last or self._start(last - 1) < start):
            return last  # alone here, as nearly all are
        first = self._first_at(start, last + 1)
        owner = self._best(first, last, offset)
        if owner is not None:
            return owner
        if all(self._end(row) == start for row in self._group(first, last)):
            return self._unsized(first, last, offset)
        return self._outer(first, offset)

    def is_unsized(self, row: int) -> bool:
        """Return True if a symbol does not say where it ends."""
        return self._end(row) == self._start(row)

    def span(self, offset: int, row: int | None) -> tuple[int, int]:
        """Offsets around one that have its answer, `row`, too; not all of them.

        Return the range with the same answer: until the next function begins.
        """
        behind = self._first_at(offset + 1, len(self))
        end = self._start(behind) if behind < len(self) else _TOP
        if row is None:
            return offset, end
        start = self._start(row)
        is_last = self._start(behind - 1) == start
        own = self._end(row)
        if own == start:  # it has no size
            return offset, offset + 1
        return start if is_last and self.row(start) == row else offset, min(end, own)

    def _outer(self, first: int, offset: int) -> int | None:
        """The function with a size that covers an address, of those before a row."""
        row = self._covering(first, offset)
        if row is None:
            return None
        return self._best(self._first_at(self._start(row), row + 1), row, offset)

    def _unsized(self, first: int, last: int, offset: int) -> int | None:
        """A symbol without a size, unless it is inside a function; else that function."""
        start = self._start(first)
        if self._covering(first, start) is not None:
            return self._outer(first, offset)
        return self._group(first, last)[0] if offset < self._limit(start) else None

    def _limit(self, start: int) -> int:
        """Return the end of an address's section."""
        regions = self.columns.regions
        at = bisect_right(regions, start, key=lambda region: region[0]) - 1
        return regions[at][1] if at >= 0 else start

    def _covering(self, before: int, address: int) -> int | None:
        """The last row before one with a function that reaches beyond an address."""
        for block in range((before - 1) // BLOCK, -1, -1):
            if self.high(block) > address:
                top = min(before, (block + 1) * BLOCK)
                row = self._covering_in(range(block * BLOCK, top), address)
                if row is not None:
                    return row
        return None

    def _covering_in(self, rows: range, address: int) -> int | None:
        """The last of the rows from the start of a block with one that reaches so far.

        Where the address is in no function, nearly all of them have to be ruled out, for each
        address again: so the largest ends of a few are remembered.
        """
        for first in range(rows.stop - 1 & -_FEW, rows.start - 1, -_FEW):
            if self._high_of_few(first) > address:
                for row in range(min(rows.stop, first + _FEW) - 1, first - 1, -1):
                    if self._end(row) > address:
                        return row
        return None

    def _high_of_few(self, first: int) -> int:
        """The largest end of `_FEW` rows."""
        known = self._few_highs.get(first)
        if known is None:
            if len(self._few_highs) >= _KEEP_GROUPS:
                self._few_highs.clear()
            rows = range(first, min(first + _FEW, len(self)))
            known = self._few_highs[first] = self._highest(rows)
        return known

    def _best(self, first: int, last: int, offset: int) -> int | None:
        """Return the best symbol that covers an address, among those that start together."""
        return next((row for row in self._group(first, last) if self._end(row) > offset), None)

    def _group(self, first: int, last: int) -> list[int]:
        """Symbols that start together: the best, then each less good one that ends later."""
        if first == last:
            return [first]
        known = self._groups.get(first)
        if known is None:
            if len(self._groups) >= _KEEP_GROUPS:
                self._groups.clear()
            known = self._groups[first] = self._without_lesser(first, last)
        return known

    def _without_lesser(self, first: int, last: int) -> list[int]:
        kept: list[int] = []
        reach = -1
        last = min(last, first + _MOST_TOGETHER - 1)
        for row in sorted(range(first, last + 1), key=self._preference, reverse=True):
            if self._end(row) > reach:
                reach = self._end(row)
                kept.append(row)
        return kept

    def _preference(self, row: int) -> tuple[bool, bool, int, int, int]:
        entry = self._entry(row)
        name = self._name(row)
        underscores = len(name) - len(name.lstrip(b"_"))
        return (
            bool(name),
            self.columns.sizes[entry] > 0,
            self.columns.ranks[entry],
            -underscores,
            len(name),
        )

    def _name(self, row: int) -> bytes:
        """The name without the version that .symtab may append ("f@@GLIBC_2.14")."""
        name = self.strings.get(self.columns.names[self._entry(row)])
        version = name.find(b"@", 1)
        return name if version < 0 or name.endswith(b"@plt") else name[:version]
