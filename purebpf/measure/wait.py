"""Sleeps until a run or an interval is over, and drains records that arrive until then."""

from __future__ import annotations

import select
import time
from collections.abc import Callable, Collection, Iterable
from functools import partial
from typing import TYPE_CHECKING

from purebpf.measure.stop import HasFileno

if TYPE_CHECKING:
    from purebpf.measure.target_ends import TargetEnds

__all__ = ["RunClock", "until"]

_LONGEST_S = 86400.0
"""At a time: poll(2) takes an int of milliseconds, 24.8 days."""


def until(
    over: float | None,
    ends: Iterable[HasFileno],
    *,
    pause: float | None = None,
    targets: TargetEnds | None = None,
    sources: Collection[int] = (),
    drain: Callable[[], object] = lambda: None,
    every_s: Callable[[], float] | None = None,
) -> bool:
    """Sleep until moment `over` or until one of `ends` is readable, but not beyond `pause`.

    The end of the last of `targets` is an end, too. Moments are times of time.monotonic(), in
    seconds; None never comes. Whenever one of `sources`, descriptors, is readable, `drain` is
    called, and in any case after `every_s()` seconds; if it returns something true, there is a
    pause. A source that hangs up, as a ring with a CPU that went offline does, is no longer polled.

    Returns:
        Whether the run is over; False when there is only to be a pause.
    """
    if targets is not None and targets.are_over():
        return True
    ends = tuple(ends)
    sleep = partial(_sleep, over, pause=pause, sources=sources, drain=drain, every_s=every_s)
    while sleep((*ends, targets) if targets else ends):
        if not (targets and targets.drop_ended() and targets):
            return True
    return False


def _sleep(
    over: float | None,
    ends: Iterable[HasFileno],
    *,
    pause: float | None,
    sources: Collection[int],
    drain: Callable[[], object],
    every_s: Callable[[], float] | None,
) -> bool:
    """Sleep as `until` does; the end of any target is an end here."""
    poll = select.poll()
    for fd in (*(end.fileno() for end in ends), *sources):
        poll.register(fd, select.POLLIN)
    deadline = min((moment for moment in (over, pause) if moment is not None), default=None)
    while True:
        left_ms = None
        if deadline is not None:
            left_ms = 1000 * min(max(0.0, deadline - time.monotonic()), _LONGEST_S)
        if every_s is not None:
            soon_ms = 1000 * every_s()
            left_ms = soon_ms if left_ms is None else min(left_ms, soon_ms)
        ready = poll.poll(left_ms)
        if any(fd not in sources for fd, _ in ready):
            return True
        for fd, happened in ready:
            if happened & (select.POLLHUP | select.POLLERR):
                poll.unregister(fd)
        pauses = (ready or every_s is not None) and drain()
        now = time.monotonic()
        if pauses or (deadline is not None and now >= deadline):
            return over is not None and now >= over


class RunClock:
    """The time of a run, by time.monotonic() in seconds.

    Args:
        duration_s: after which it is over; None: it has another end.
        interval_s: after which, again and again, a tick is due; None: never.

    Attributes:
        started_s: the moment of `start()`.
    """

    def __init__(self, duration_s: float | None, interval_s: float | None) -> None:
        self._duration_s = duration_s
        self._interval_s = interval_s
        self._ticks = 0
        self.start()

    def start(self) -> None:
        """Begin now."""
        self.started_s = self._last_s = time.monotonic()

    def next_tick(self) -> None:
        """Wait for the end of the next interval from now on."""
        self._ticks += 1

    def wait(self, *ends: HasFileno, targets: TargetEnds | None = None) -> bool:
        """Sleep until the run is over, or one of `ends` is readable: True. False: a tick is due.

        The end of the last of `targets` is an end, too.
        """
        over = tick = None
        if self._duration_s is not None:
            over = self.started_s + self._duration_s
        if self._interval_s is not None:
            tick = self.started_s + self._ticks * self._interval_s
        return until(over, ends, pause=tick, targets=targets)

    def lap(self) -> tuple[float, float]:
        """Return the time since the last call of this or of `start()`, and since `start()`."""
        now = time.monotonic()
        elapsed_s, self._last_s = now - self._last_s, now
        return elapsed_s, now - self.started_s
