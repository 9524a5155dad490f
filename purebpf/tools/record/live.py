"""The stacks of a recording that still runs, read from its file as it grows."""

from __future__ import annotations

import copy
import os
from collections import Counter

from purebpf.observe.saved.perf_data_loader import FileNames, LoadOptions, name_counted
from purebpf.results import Profile
from purebpf.results.build.perf_data_aggregate import Counted, Counting, Owner
from purebpf.symbols.budget import Budget
from purebpf.wire.callchain import Stacks
from purebpf.wire.perf_data import Section
from purebpf.wire.perf_data_reader import Order, PerfData

__all__ = ["LiveFile"]

_FIRST = 0
"""The event that is shown: the first one of the recording."""


class _Part:
    """The counts of some time."""

    def __init__(self) -> None:
        self.samples = 0
        self.found: Counter[tuple[Owner, Stacks]] = Counter()
        self.deep: Counter[tuple[Owner, Stacks]] = Counter()

    def add(self, other: _Part) -> None:
        self.samples += other.samples
        self.found.update(other.found)
        self.deep.update(other.deep)


class LiveFile:
    """A file that grows in rounds; records are counted once their order is final.

    Args:
        fd: of the file, which stays the caller's.
        source: its name.

    Attributes:
        budget: pays for the names.
    """

    def __init__(self, fd: int, source: str) -> None:
        self.budget = Budget()
        self._fd = fd
        self._source = source
        self._wanted = LoadOptions(budget=self.budget)
        self._order = Order()
        self._file = self._open()
        self._counting = Counting(
            self._file, {}, periods=[False] * len(self._file.events), slots=False, unwind={}
        )
        self._names: FileNames | None = None
        self._end = self._file.data.offset
        self._recent, self._before = _Part(), _Part()

    def _open(self) -> PerfData:
        size = os.fstat(self._fd).st_size
        return PerfData(lambda at, length: os.pread(self._fd, length, at), size, self._source)

    def take(self) -> None:
        """Count the records since the last call."""
        file = self._open()
        end = file.data.offset + file.data.size
        file.data = Section(self._end, end - self._end)
        self._end = end
        self._counting.take(file.records(self._order))
        counted, recent = self._counting.counted, _Part()
        recent.samples = counted.samples.pop(_FIRST, 0)
        recent.found, counted.found[_FIRST] = counted.found[_FIRST], Counter()
        recent.deep, counted.deep[_FIRST] = counted.deep[_FIRST], Counter()
        self._recent.add(recent)

    def last(self) -> Profile:
        """Return the counts since the last call of this."""
        part, self._recent = self._recent, _Part()
        self._before.add(part)
        return self._name(part)

    def so_far(self) -> Profile:
        """Return the counts since the beginning."""
        everything = _Part()
        everything.add(self._before)
        everything.add(self._recent)
        return self._name(everything)

    def _name(self, part: _Part) -> Profile:
        counted: Counted = copy.copy(self._counting.counted)
        counted.samples = Counter({_FIRST: part.samples})
        counted.found, counted.deep = [part.found], [part.deep]
        names = self._names = self._names or FileNames(counted, None, self._wanted)
        return name_counted(self._file, counted, _FIRST, names, periods=False).profile
