"""`CostLimit`: the time that probes at allocators take from the target. Pure."""

from __future__ import annotations

__all__ = ["CostLimit"]

_PAIR_S = 17e-6
"""Of a malloc and its free: measured with bench/, on a virtual machine (docs/mem.md)."""
_LEAST_S = 10.0
"""The time over which the cost of a run without a duration, or of its beginning, is divided."""


class CostLimit:
    """Decides when the probes have taken more than their share of the run.

    Args:
        percent: of a CPU; 0: there is no limit.
        duration_s: of the run; None: it is not known.
    """

    def __init__(self, percent: float, duration_s: float | None) -> None:
        self.percent = percent
        self._duration_s = _LEAST_S if duration_s is None else duration_s
        self._allocations = 0
        self._elapsed_s = 0.0
        self._stopped_s: float | None = None

    def is_over(self, allocations: int, elapsed_s: float) -> bool:
        """Return True, from then on, once so many allocations have cost more than the limit."""
        if self._stopped_s is None:
            self._allocations, self._elapsed_s = allocations, elapsed_s
            most_s = self.percent / 100 * max(elapsed_s, self._duration_s)
            if self.percent and allocations * _PAIR_S > most_s:
                self._stopped_s = elapsed_s
        return self._stopped_s is not None

    def end(self, allocations: int, elapsed_s: float) -> None:
        """Take the numbers of the whole run, unless the limit ended it."""
        if self._stopped_s is None:
            self._allocations, self._elapsed_s = allocations, elapsed_s

    def facts(self) -> dict[str, object]:
        """Return calls a second, their cost while they were traced, and when that ended."""
        if not self._allocations or self._elapsed_s <= 0:
            return {}
        pairs_per_s = self._allocations / self._elapsed_s
        facts: dict[str, object] = {
            "malloc_calls_per_s": round(2 * pairs_per_s),
            "malloc_cost_percent": round(100 * _PAIR_S * pairs_per_s, 1),
        }
        if self._stopped_s is not None:
            facts["malloc_traced_s"] = round(self._stopped_s, 3)
        return facts
