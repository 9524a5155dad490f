"""Rows of the kernel's map, and waits that are still open, put together. Pure."""

from __future__ import annotations

from typing import Any

from purebpf.tools.lock.members import SlabPlace
from purebpf.tuples import NamedTuple

__all__ = ["Key", "Sum", "key_of", "slab_of"]

_NOWHERE = (1 << 32) - 1


class Key(NamedTuple):
    """`struct row_key` of bpf_src/lock.bpf.c."""

    id: int
    flags: int
    name: int


class Sum:
    """A row under way: rows of several stacks may have one caller.

    Attributes:
        stack: the number of the one with most of the time; owner_stack: of the last; 0: none.
        comm, slab: of the last that was added.
    """

    def __init__(self) -> None:
        self.waits = self.open = self.total_ns = self.max_ns = 0
        self.buckets: list[int] = []
        self.stack = self.owner_stack = 0
        self.comm = ""
        self.slab: SlabPlace | None = None
        self._most_ns = -1

    def add(self, row: Any) -> None:
        """Add a `struct row`."""
        self.waits += row.waits
        self.total_ns += row.total_ns
        self.max_ns = max(self.max_ns, row.max_ns)
        old = self.buckets or [0] * len(row.buckets)
        self.buckets = [sum(pair) for pair in zip(old, row.buckets, strict=True)]
        self.comm, self.slab = row.comm, slab_of(row.slab)
        self.owner_stack = row.owner_stack or self.owner_stack
        if row.total_ns > self._most_ns:
            self._most_ns, self.stack = row.total_ns, row.stack

    def add_open(self, wait: Any, comm: str, took_ns: int) -> None:
        """Add a `struct wait` that has not ended."""
        self.open += 1
        self.total_ns += took_ns
        self.max_ns = max(self.max_ns, took_ns)
        self.comm = self.comm or comm
        self.owner_stack = wait.owner_stack or self.owner_stack
        if took_ns > self._most_ns:
            self._most_ns, self.stack = took_ns, wait.stack


def key_of(wait: Any, by: str) -> Key:
    """The row that an open wait, a `struct wait`, would have been added to."""
    if by in ("caller", "stack"):
        return Key(wait.stack, wait.flags, 0)
    if by == "lock":
        return Key(wait.tgid if wait.name else wait.lock, wait.flags, wait.name)
    numbers = {
        "process": wait.tgid,
        "thread": wait.tgid << 32 | wait.tid,
        "owner": wait.owner_tgid << 32 | wait.owner_tid,
        "cgroup": wait.cgroup,
    }
    return Key(numbers[by], 0, 0)


def slab_of(place: Any) -> SlabPlace | None:
    """Return the place in a `struct slab_place`; None if it has none."""
    if not place.cache:
        return None
    offsets = dict.fromkeys((place.offset, place.least_offset))
    offsets.pop(_NOWHERE, None)
    if place.shared:  # what its objects are, the name does not say
        offsets.clear()
    return SlabPlace(place.cache, place.object_size, tuple(offsets))
