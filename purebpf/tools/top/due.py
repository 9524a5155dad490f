"""When the next table is due."""

from __future__ import annotations

import time

__all__ = ["Due"]


class Due:
    """Intervals of `interval_s` seconds, however often the wait for one is interrupted."""

    def __init__(self, interval_s: float) -> None:
        self._interval_s = interval_s
        self._begun_s = time.monotonic()

    def left_s(self) -> float:
        """Seconds until the interval is over; 0 when it is."""
        return max(0.0, self._begun_s + self._interval_s - time.monotonic())

    def pass_by(self) -> None:
        """Begin the next interval."""
        self._begun_s = time.monotonic()
