"""Weights with decimals in the files of other tools, as whole numbers."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

from purebpf.results.model.loss import Cause, count_cause

__all__ = ["Fractions"]

_HALF = 0.5

Key = TypeVar("Key", bound=Hashable)


class Fractions(Generic[Key]):
    """The decimals of each stack, added up before they are rounded.

    A file may give the same stack 0.4 a hundred times: each rounded alone, all would be lost.
    """

    def __init__(self) -> None:
        self._rests: dict[Key, float] = {}
        self._whole: set[Key] = set()

    def take(self, key: Key, weight: float) -> int:
        """Return the whole part of the weight, and keep the rest for `rounded`."""
        whole = int(weight)
        rest = weight - whole
        if rest:
            rest += self._rests.get(key, 0.0)
            whole += int(rest)
            self._rests[key] = rest - int(rest)
            if whole:
                self._whole.add(key)
        return whole

    def rounded(self) -> Iterator[Key]:
        """The stacks whose rests together are a half or more: each gets 1 more."""
        return (key for key, rest in self._rests.items() if rest >= _HALF)

    def causes(self) -> tuple[Cause, ...]:
        """Stacks that rounding left out altogether."""
        lost = sum(
            rest < _HALF and key not in self._whole and rest > 0
            for key, rest in self._rests.items()
        )
        what = "stacks were left out: their weights add up to less than a half of the unit"
        return (count_cause("below_a_half", lost, what),) if lost else ()
