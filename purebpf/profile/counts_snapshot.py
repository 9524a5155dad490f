"""Counts that are taken out of the kernel while sampling goes on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from purebpf.kernel.maps.map import Map

__all__ = ["Taken"]


class Taken:
    """What was counted, since the last time and in all.

    Stacks stay in the kernel, which compares with them; each is read once.

    Attributes:
        last: (struct count_key, samples) of the last `take`.
        all: samples by struct count_key, of every one.
        addresses: of each stack by number, leaf first.
        dropped: samples with a key beyond `limit`.
    """

    def __init__(self, counts: Map, stacks: Map, limit: int) -> None:
        self.last: list[tuple[Any, int]] = []
        self.all: Counter[Any] = Counter()
        self.addresses: dict[int, Sequence[int]] = {}
        self.dropped = 0
        self._counts = counts
        self._stacks = stacks
        self._limit = limit

    def take(self) -> None:
        """Take what there is.

        Raises:
            KernelError: a map could not be read.
        """
        self.last = self._counts.drain()
        for key, samples in self.last:
            if key in self.all or len(self.all) < self._limit:
                self.all[key] += samples
            else:
                self.dropped += samples
            for number in (key.user_stack, key.kernel_stack):
                if number not in self.addresses:
                    self._read(number)

    def _read(self, number: int) -> None:
        stack = self._stacks.get(number)
        if stack is not None:  # else it is one of enum stack_id
            self.addresses[number] = stack.addresses[: stack.depth]
