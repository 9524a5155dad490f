"""The acts of processes, passed on from the kernel's records to their followers."""

from __future__ import annotations

from collections.abc import Container
from typing import Protocol

from purebpf.symbols.address_spaces import MappedCode, code_of
from purebpf.symbols.proc_maps import Mapping
from purebpf.wire.perf_records import Comm, Exit, Fork, Mmap2

__all__ = ["Follower", "feed"]


class Follower(Protocol):
    """`TableFiller` and `ProcessStacks` are followers. Times are CLOCK_MONOTONIC, in ns."""

    def forked(self, parent: int, child: int, time_ns: int) -> None:
        """Handle a new process, with the mappings of its parent."""

    def executed(self, tgid: int, time_ns: int) -> None:
        """A process executes another program."""

    def exited(self, tgid: int, time_ns: int) -> None:
        """A process ended."""

    @property
    def followed(self) -> Container[int]:
        """The processes whose mappings matter."""

    def mapped(self, tgid: int, time_ns: int, mapping: Mapping) -> None:
        """A process mapped code."""


def feed(follower: Follower, record: object) -> None:
    """Pass on a record of `purebpf.wire.perf_records`; others are ignored."""
    if isinstance(record, MappedCode):  # as most are
        if record.pid in follower.followed:
            follower.mapped(record.pid, record.time, record.mapping)
    elif isinstance(record, Fork):
        if record.pid != record.ppid:
            follower.forked(record.ppid, record.pid, record.time)
    elif isinstance(record, Comm):
        if record.exec:
            follower.executed(record.pid, record.time)
    elif isinstance(record, Exit):
        if record.pid == record.tid:
            follower.exited(record.pid, record.time)
    elif isinstance(record, Mmap2):
        mapping = code_of(record)
        if mapping is not None:
            follower.mapped(record.pid, record.time, mapping)
