"""The rate of the samples: what a budget of CPU time allows. Pure."""

from __future__ import annotations

__all__ = ["Rate"]

_TIMES = 2
_CALM = 10


class Rate:
    """A frequency that is halved when windows cost more than the budget, twice at most.

    One window alone does not count: to start, or to meet a new program, costs more. After ten
    windows that cost less than a third, the rate is doubled again.

    Args:
        frequency: in Hertz, where it begins.
        budget: share of one CPU; 0: any.

    Attributes:
        reduced: how often it was halved, so far.
    """

    def __init__(self, frequency: int, budget: float) -> None:
        self._steps = [frequency, max(1, frequency // 2), max(1, frequency // 4)]
        self._budget = budget
        self._at = 0
        self._over = self._calm = 0
        self.reduced = 0

    @property
    def frequency(self) -> int:
        """In Hertz."""
        return self._steps[self._at]

    def spent(self, share: float) -> None:
        """A window cost that share of a CPU."""
        self._over = self._over + 1 if 0 < self._budget < share else 0
        self._calm = self._calm + 1 if share < self._budget / 3 else 0
        if self._over >= _TIMES and self._at + 1 < len(self._steps):
            self._at += 1
            self.reduced += 1
            self._over = self._calm = 0
        elif self._calm >= _CALM and self._at:
            self._at -= 1
            self._over = self._calm = 0
