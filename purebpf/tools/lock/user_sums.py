"""Sums of the kernel's map, merged by the user's grouping. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from purebpf.observe.instruments.futex_tracer import FutexSum

__all__ = ["UserSum"]


class UserSum:
    """A row under way: several stacks, and locks, may belong to it.

    Attributes:
        most: the sum with most of the time, which its name and its stack are from.
        wakers: the stacks of threads that let go, with the waits that they ended.
    """

    def __init__(self, first: FutexSum) -> None:
        self.most = first
        self.waits = self.open = self.total_ns = self.max_ns = 0
        self.timeouts = self.woken = self.wake_ns = self.most_waiting = self.handed_on = 0
        self.waker_stack = 0
        self.wakers: Counter[int] = Counter()
        self.buckets: list[int] = []

    def add(self, counted: FutexSum) -> None:
        """Add the waits of one stack for one lock."""
        if counted.total_ns > self.most.total_ns:
            self.most = counted
        self.waits += counted.waits
        self.open += counted.open
        self.total_ns += counted.total_ns
        self.max_ns = max(self.max_ns, counted.max_ns)
        self.timeouts += counted.timeouts
        self.woken += counted.woken
        self.wake_ns += counted.wake_ns
        self.most_waiting = max(self.most_waiting, counted.most_waiting)
        self.handed_on += counted.handed_on
        self.waker_stack = counted.waker_stack or self.waker_stack
        if counted.waker_stack:
            self.wakers[counted.waker_stack] += counted.woken
        self.buckets = _add(self.buckets, counted.buckets)


def _add(one: list[int], other: Iterable[int]) -> list[int]:
    counts = list(other)
    if not one or not counts:
        return one or counts
    return [sum(pair) for pair in zip(one, counts, strict=True)]
