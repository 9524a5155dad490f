"""Samples that user space counts, under the keys of those that the program counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from purebpf.loader.maps.map import Map
from purebpf.loader.rings.record_types import decoder
from purebpf.observe.unwind.stack_numbers import StackNumbers
from purebpf.observe.unwind.user_stacks import Trace, UserStacks

__all__ = ["FinishedCounts"]


class FinishedCounts:
    """Counts the stacks that `UserStacks` finished.

    Args:
        stacks: where it comes from.
        counts: the program's, for the type of its keys.
    """

    def __init__(self, stacks: UserStacks, counts: Map) -> None:
        self._stacks = stacks
        self._decode = decoder(counts, "count_key").one
        self._numbers = StackNumbers()

    @property
    def traces(self) -> Mapping[int, Trace]:
        """The stacks by number."""
        return self._numbers.traces

    def take(self) -> Iterator[tuple[Any, int]]:
        """(struct count_key, samples) since the last time."""
        for sample, samples in self._stacks.take():
            key = self._decode(sample.key)
            yield key._replace(user_stack=self._numbers.number(sample.trace)), samples

    def waiting_kernel_stacks(self) -> set[int]:
        """Numbers of the program's stacks that samples to come belong to."""
        return {self._decode(key).kernel_stack for key in self._stacks.waiting_keys()}

    def forget(self) -> None:
        """Forget the stacks; stacks of later samples get other numbers."""
        self._numbers = StackNumbers()

    def merge(
        self, counts: Iterable[tuple[Any, int]], stored: Mapping[int, Trace]
    ) -> Iterable[tuple[Any, int]]:
        """The same counts, with one for equal stacks, whether the program stored them or not."""
        same = self._numbers.same(stored)
        if not same:
            return counts
        merged: Counter[Any] = Counter()
        for key, samples in counts:
            number = same.get(key.user_stack)
            merged[key if number is None else key._replace(user_stack=number)] += samples
        return merged.items()
