"""Rows of the kernel's map, and waits that are still open, put together. Pure."""

from __future__ import annotations

from typing import Any, NamedTuple

__all__ = ["Key", "Sum", "key_of"]


class Key(NamedTuple):
    """`struct row_key` of bpf_src/lock.bpf.c."""

    id: int
    flags: int
    name: int


class Sum:
    """A row under way: rows of several stacks may have one caller.

    Attributes:
        stack: the number of the one with most of the time.
        comm, cache: of the last that was added.
    """

    def __init__(self) -> None:
        self.waits = self.open = self.total_ns = 0
        self.buckets: list[int] = []
        self.stack = 0
        self.comm = self.cache = ""
        self._most_ns = -1

    def add(self, row: Any) -> None:
        """Add a `struct row`."""
        self.waits += row.waits
        self.total_ns += row.total_ns
        old = self.buckets or [0] * len(row.buckets)
        self.buckets = [sum(pair) for pair in zip(old, row.buckets, strict=True)]
        self.comm, self.cache = row.comm, row.cache
        if row.total_ns > self._most_ns:
            self._most_ns, self.stack = row.total_ns, row.stack

    def add_open(self, wait: Any, comm: str, took_ns: int) -> None:
        """Add a `struct wait` that has not ended."""
        self.open += 1
        self.total_ns += took_ns
        self.comm = self.comm or comm
        if took_ns > self._most_ns:
            self._most_ns, self.stack = took_ns, wait.stack


def key_of(wait: Any, by: str) -> Key:
    """The row that an open wait, a `struct wait`, would have been added to."""
    if by == "caller":
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
