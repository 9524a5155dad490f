"""`StackLooks`: the stacks of a program's waiters at several looks. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator
from typing import Generic, TypeVar

__all__ = ["StackLooks"]

Stack = TypeVar("Stack", bound=Hashable)

_MOST_STACKS = 60
"""Of a process, those with most waiters."""


class StackLooks(Generic[Stack]):
    """Counts waiters by process and stack."""

    def __init__(self) -> None:
        self._looks: dict[int, list[Counter[Stack]]] = {}
        self._stuck: dict[int, set[tuple[Hashable, Stack]]] = {}

    def add(
        self, pid: int, counts: Counter[Stack], waiters: Iterable[tuple[Hashable, Stack]]
    ) -> None:
        """Add a look at a process.

        Args:
            pid: the process.
            counts: its waiters by stack.
            waiters: each of them, as it is told from others, and its stack.
        """
        self._looks.setdefault(pid, []).append(counts)
        seen = set(waiters)
        self._stuck[pid] = self._stuck[pid] & seen if pid in self._stuck else seen

    @property
    def pids(self) -> Iterable[int]:
        """The processes, in the order of their first looks."""
        return self._looks

    def of_process(self, pid: int) -> Iterator[tuple[Stack, tuple[int, ...], int]]:
        """Return stacks, those with most waiters first: how many waited at each look, and how many
        had the stack at all of them.
        """
        looks = self._looks[pid]
        stuck = Counter(stack for _, stack in self._stuck[pid])
        total: Counter[Stack] = Counter()
        for look in looks:
            total.update(look)
        for stack, _ in total.most_common(_MOST_STACKS):
            yield stack, tuple(look[stack] for look in looks), stuck[stack]
