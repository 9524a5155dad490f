"""The rate of the samples that a budget of CPU time allows. Pure."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import NamedTuple

__all__ = ["Rate", "Step"]

_TIMES = 2
_CALM = 10
_FEWER = (2, 4, 8, 16, 32)


class Step(NamedTuple):
    """A frequency in Hertz, and that one of so many windows is sampled."""

    frequency: int
    every: int = 1

    def __str__(self) -> str:
        windows = f" in one of {self.every} windows" if self.every > 1 else ""
        return f"{self.frequency} Hz{windows}"


class Rate:
    """The sampling rate: lower, when windows cost more than the budget.

    First the frequency is halved, twice at most; then fewer windows are sampled, one by chance of
    each 2, 4, ... 32, as part of the cost does not depend on the frequency: following processes,
    and meeting new ones. The rate takes as many steps at once as the cost requires.

    One window alone does not count: a start, or a new program, costs more. If not all windows are
    sampled, their mean counts. After ten windows that cost less than a third of the budget, the
    agent takes one step back.

    Args:
        frequency: in Hertz, where it begins.
        budget: share of one CPU; 0: any.
        pick: random.randrange.

    Attributes:
        reduced: the number of reductions so far.
    """

    def __init__(
        self, frequency: int, budget: float, pick: Callable[[int], int] = random.randrange
    ) -> None:
        least = max(1, frequency // 4)
        self._steps = [Step(frequency), Step(max(1, frequency // 2)), Step(least)]
        self._steps += [Step(least, every) for every in _FEWER]
        self._budget = budget
        self._pick = pick
        self._at = 0
        self._reset()
        self.reduced = 0

    def _reset(self) -> None:
        self._costs: list[float] = []
        self._over: list[float] = []
        self._calm = self._left = self._due = 0

    @property
    def step(self) -> Step:
        """The present rate."""
        return self._steps[self._at]

    def is_due(self) -> bool:
        """Return True if the next window is sampled; call it once for each."""
        if not self._left:
            self._left = self.step.every
            self._due = self._pick(self._left)
        self._left -= 1
        return self._left == self._due

    def spent(self, share: float) -> None:
        """A window cost that share of a CPU."""
        self._costs.append(share)
        if len(self._costs) < self.step.every or not self._budget:
            return
        mean, count, self._costs = sum(self._costs) / len(self._costs), len(self._costs), []
        self._over = [*self._over, mean] if mean > self._budget else []
        self._calm = self._calm + count if mean < self._budget / 3 else 0
        last = len(self._steps) - 1
        if len(self._over) >= _TIMES and self._at < last:
            halvings = math.ceil(math.log2(min(self._over) / self._budget))
            self._at = min(self._at + max(1, halvings), last)
            self.reduced += 1
            self._reset()
        elif self._calm >= _CALM and self._at:
            self._at -= 1
            self._reset()
