"""When windows begin and end: on the wall clock's minutes, measured by one that does not jump."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

__all__ = ["Span", "WindowClock"]

_SECOND_NS = 1_000_000_000


class Span(NamedTuple):
    """A window: when it began on CLOCK_REALTIME, and how long it was on CLOCK_MONOTONIC.

    `step_ns` is how far the clock jumped at its end.
    """

    started_ns: int
    duration_ns: int
    step_ns: int


class WindowClock:
    """Windows that end with the multiples of a length; a step of more than a second ends one, too.

    Args:
        window_s: the length.
        realtime, monotonic: the clocks, in ns.
        is_once: the first window has the whole length, wherever on the wall clock it begins.
    """

    def __init__(
        self,
        window_s: float,
        realtime: Callable[[], int] = time.time_ns,
        monotonic: Callable[[], int] = time.monotonic_ns,
        *,
        is_once: bool = False,
    ) -> None:
        self._is_once = is_once
        self._length_ns = round(window_s * _SECOND_NS)
        self._realtime, self._monotonic = realtime, monotonic
        self.begin()

    def begin(self) -> None:
        """Begin a window now."""
        self._began, self._began_at = self._monotonic(), self._realtime()
        passed_ns = 0 if self._is_once else self._began_at % self._length_ns
        self._end = self._began + self._length_ns - passed_ns

    def left_s(self) -> float:
        """Seconds until the window ends; 0 when it is over, or the clock was set."""
        if abs(self._step_ns()) > _SECOND_NS:
            return 0.0
        return max(0, self._end - self._monotonic()) / _SECOND_NS

    def end(self) -> Span:
        """The window that ends now; another one begins."""
        step_ns = self._step_ns()
        now, started = self._monotonic(), self._began_at
        span = Span(started, now - self._began, step_ns if abs(step_ns) > _SECOND_NS else 0)
        self.begin()
        return span

    def _step_ns(self) -> int:
        return (self._realtime() - self._began_at) - (self._monotonic() - self._began)
