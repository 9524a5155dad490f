"""The mappings of one process, of the programs that it executed one after the other."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator
from itertools import count

from purebpf.symbols.intervals import Segments, flatten
from purebpf.tuples import NamedTuple

__all__ = ["LAST", "ROW_FIELDS", "Generation", "MappingRow", "ProcessHistory"]

_KEEP_GENERATIONS = 16
_KEEP_NAMES = 64
_KEEP_MAPPINGS = 1 << 16


class MappingRow(NamedTuple):
    """A mapping with its file's number, as the array of a generation stores it."""

    start: int
    end: int
    offset: int
    file: int


ROW_FIELDS = len(MappingRow._fields)
Differ = Callable[[MappingRow, MappingRow], bool]
"""Tells if two mappings show different code of files where they overlap."""
LAST = (1 << 64) - 1
"""The last address, and a time after all others."""


class ProcessHistory:
    """A process id and the programs that ran under it; `since` is the time of the last snapshot.

    No stack is older than the generation `settled`.
    """

    __slots__ = ("_versions", "generations", "parent", "settled", "since", "version")

    def __init__(self, versions: count[int]) -> None:
        self._versions = versions
        self.generations = [Generation(())]
        self.parent = 0
        self.since = 0
        self.settled: Generation | None = None
        self.change()

    def change(self) -> None:
        """Answers about it may be others from now on."""
        self.version = next(self._versions)

    def begin(self, generation: Generation) -> None:
        """Another program runs from now on."""
        if not self.generations[-1].mappings:
            self.generations.pop()
        self.generations.append(generation)
        del self.generations[:-_KEEP_GENERATIONS]
        self.change()

    def settle(self) -> None:
        """No stack is older than what is mapped now."""
        self.settled = self.generations[-1]
        self.settled.settle()

    def with_name(self, comm: str | None, since: int) -> Iterator[Generation]:
        """Return the generations of a name that had not ended at a time, the newest first."""
        until = LAST
        for generation in reversed(self.generations):
            if 0 < until < since:
                return
            if comm is None or comm in generation.names:
                yield generation
            if generation is self.settled:
                return
            until = generation.since

    def by_likelihood(self, comm: str | None) -> Iterator[Generation]:
        """Return generations with a name first, the newest first; the first one is nearly always
        right.
        """
        for generation in reversed(self.generations):
            if comm is None or comm in generation.names:
                yield generation
        for generation in reversed(self.generations):
            if not (comm is None or comm in generation.names):
                yield generation


class Generation:
    """One program image of a process: from an execve or fork at `since` to the next.

    No stack is older than the first `settled` mappings.
    """

    __slots__ = (
        "_contested",
        "_index",
        "_shared",
        "mappings",
        "names",
        "settled",
        "since",
        "times",
    )

    def __init__(
        self, names: tuple[str, ...], mappings: array[int] | None = None, since: int = 0
    ) -> None:
        self.names = names
        self.since = since
        self.mappings = array("Q") if mappings is None else mappings
        self.times = array("Q", bytes(8 * (len(self.mappings) // ROW_FIELDS)))
        self.settled = 0
        self._shared = mappings is not None
        self._index: tuple[int, Segments, array[int]] | None = None
        self._contested: tuple[tuple[int, int, int], Segments] | None = None

    def child(self) -> Generation:
        """A copy for a forked process, made when one of the two adds a mapping."""
        self._shared = True
        child = Generation(self.names, self.mappings)
        child.times, child.settled = self.times, self.settled
        child._index = self._index  # noqa: SLF001
        return child

    def name(self, comm: str) -> None:
        """A thread of it is called that."""
        if comm and comm not in self.names:
            self.names = (*self.names[-_KEEP_NAMES:], comm)

    def add(self, row: tuple[int, int, int, int], time: int = 0) -> None:
        """Add the fields of a `MappingRow`; the newest mapping hides the older ones."""
        if self._shared:
            self.mappings = self.mappings[:]
            self.times = self.times[:]
            self._shared = False
        self.mappings.extend(row)
        self.times.append(time)
        if len(self.mappings) > ROW_FIELDS * _KEEP_MAPPINGS:
            self._forget_hidden()

    def find(self, address: int) -> MappingRow | None:
        """The newest mapping of an address."""
        _, segments, order = self._indexed()
        owner = segments.owner(address)
        return self._row(order[owner]) if owner >= 0 else None

    def span(self, address: int) -> tuple[int, int] | None:
        """The addresses around one that have the same mapping."""
        return self._indexed()[1].span(address)

    def replaces(self, row: MappingRow, differ: Differ) -> bool:
        """Return True if a new mapping takes addresses that showed other code of a file."""
        start, end = row.start, row.end
        places = zip(self.mappings[::ROW_FIELDS], self.mappings[1::ROW_FIELDS], strict=True)
        if not any(first < end and start < behind for first, behind in places):
            return False
        segments, order = self._indexed()[1:]
        parts = segments.overlapping(start, end)
        return any(differ(self._row(order[owner]), row) for _, _, owner in parts)

    def settle(self) -> None:
        """No stack is older than the mappings so far."""
        self.settled = len(self.mappings) // ROW_FIELDS

    @property
    def is_contested(self) -> bool:
        """True if the last answer of `contested` had addresses."""
        return self._contested is not None and bool(self._contested[1].starts)

    def forget_contested(self) -> None:
        """Drop the last answer of `contested`: it is about another time."""
        self._contested = None

    def contested(self, since: int, differ: Differ) -> Segments:
        """Return the addresses that showed code of a file, and then other code from a time after
        `since` on.

        The owners of these ranges mean nothing.
        """
        key = len(self.mappings), self.settled, since
        if self._contested is None or self._contested[0] != key:
            self._contested = key, self._find_contested(max(since, self.since), differ)
        return self._contested[1]

    def differing(
        self, newer: Generation, span: tuple[int, int], differ: Differ
    ) -> Iterator[tuple[int, int, int]]:
        """The parts of a span where another generation shows other code."""
        segments, order = self._indexed()[1:]
        for start, end, owner in segments.overlapping(*span):
            other = newer.find(start)
            if other is not None and differ(self._row(order[owner]), other):
                yield start, end, owner

    def _find_contested(self, since: int, differ: Differ) -> Segments:
        starts, ends = self.mappings[::ROW_FIELDS], self.mappings[1::ROW_FIELDS]
        segments, order = self._indexed()[1:]
        if sum(ends) - sum(starts) == sum(segments.ends) - sum(segments.starts):
            return flatten((), ())  # no mapping hides another one
        ranges: set[tuple[int, int]] = set()
        for at in range(len(starts)):
            row = self._row(at)
            for start, end, owner in segments.overlapping(row.start, row.end):
                newest = order[owner]
                time = self.times[newest]
                is_late = newest > at and newest >= self.settled and not 0 < time < since
                if is_late and differ(row, self._row(newest)):
                    ranges.add((start, end))
        found = sorted(ranges)
        return flatten([start for start, _ in found], [end for _, end in found])

    def _indexed(self) -> tuple[int, Segments, array[int]]:
        if self._index is None or self._index[0] != len(self.mappings):
            self._index = self._build()
        return self._index

    def rows(self) -> Iterator[MappingRow]:
        """Every mapping, the newest first."""
        return map(self._row, range(len(self.mappings) // ROW_FIELDS - 1, -1, -1))

    def visible(self) -> Iterator[MappingRow]:
        """Return the mappings by address, each part by its newest mapping."""
        segments, order = self._build()[1:]
        for start, end, owner in zip(*segments, strict=True):
            row = self._row(order[owner])
            yield row._replace(start=start, end=end, offset=row.offset + start - row.start)

    def _row(self, at: int) -> MappingRow:
        return MappingRow(*self.mappings[ROW_FIELDS * at : ROW_FIELDS * (at + 1)])

    def _build(self) -> tuple[int, Segments, array[int]]:
        starts, ends = self.mappings[::ROW_FIELDS], self.mappings[1::ROW_FIELDS]
        order = array("I", sorted(range(len(starts)), key=starts.__getitem__))
        segments = flatten([starts[at] for at in order], [ends[at] for at in order], order)
        return len(self.mappings), segments, order

    def _forget_hidden(self) -> None:
        """Drop mappings that newer ones hide; if that is not enough, the older half."""
        _, segments, order = self._build()
        seen = sorted({order[owner] for owner in segments.owners})
        self.settled = 0
        kept = seen[-_KEEP_MAPPINGS // 2 :]
        self.times = array("Q", (self.times[at] for at in kept))
        self.mappings = array("Q", (field for at in kept for field in self._row(at)))
        self._index = None
