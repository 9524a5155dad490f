"""The start of walking stacks, and its turns: the mappings of processes first, then stacks."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from purebpf.measure.process_watch import ProcessWatch

__all__ = ["StartedWalks", "drain_stacks", "start_stacks"]


class StartedWalks(Protocol):
    """A tracer of stacks."""

    def start(self) -> None:
        """Begin."""

    def drain(self) -> None:
        """Finish the stacks that have come."""


def start_stacks(tracer: StartedWalks, watch: ProcessWatch, pids: Collection[int]) -> None:
    """Start a tracer, and read the mappings of these processes, or of all."""
    tracer.start()
    drain_stacks(tracer, watch)
    watch.followed.snapshot(pids, watch.collect)
    drain_stacks(tracer, watch)


def drain_stacks(tracer: StartedWalks, watch: ProcessWatch) -> None:
    """Read the records of processes, and finish the pending stacks."""
    watch.catch_up()
    tracer.drain()
