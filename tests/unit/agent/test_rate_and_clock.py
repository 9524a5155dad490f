"""What the agent decides by numbers: the rate, the windows, when to try again."""

from __future__ import annotations

import os
import signal
from types import SimpleNamespace

from purebpf.agent.budget import Rate
from purebpf.agent.sender import Backoff
from purebpf.agent.session import Agent
from purebpf.agent.window_clock import Span, WindowClock

SECOND = 10**9


def test_the_rate_is_halved_twice_and_comes_back() -> None:
    rate = Rate(19, 0.005)
    seen = []
    for share in [0.006, 0.004, 0.006, 0.006, 0.006, 0.006, 0.006, 0.006, *[0.001] * 20, 0.004]:
        rate.spent(share)
        seen.append(rate.frequency)
    assert seen == [19, 19, 19, 9, 9, 4, 4, 4, *[4] * 9, *[9] * 10, 19, 19]
    assert rate.reduced == 2


def test_without_a_budget_the_rate_stays() -> None:
    rate = Rate(19, 0)
    for _ in range(5):
        rate.spent(0.9)
    assert rate.frequency == 19


class Clocks:
    def __init__(self, realtime: int) -> None:
        self.real, self.mono = realtime, 77 * SECOND

    def move(self, seconds: float) -> None:
        self.real += round(seconds * SECOND)
        self.mono += round(seconds * SECOND)


def windows(clocks: Clocks) -> WindowClock:
    return WindowClock(60, lambda: clocks.real, lambda: clocks.mono)


def test_windows_end_with_the_minutes() -> None:
    clocks = Clocks(1_000_000_000 * SECOND + 20 * SECOND)  # 40 s into a minute, and 20
    clock = windows(clocks)
    assert clock.left_s() == 60
    clocks.move(59)
    assert clock.left_s() == 1
    clocks.move(1.25)
    assert clock.left_s() == 0
    assert clock.end() == Span(1_000_000_020 * SECOND, 60_250_000_000, 0)
    assert clock.left_s() == 59.75, "a late end does not move the next"


def test_the_first_window_is_short() -> None:
    assert windows(Clocks(1_000_000_000 * SECOND)).left_s() == 20


def test_a_step_of_the_clock_ends_the_window() -> None:
    for step in (3600, -3600, 1.5):
        clocks = Clocks(1_000_000_020 * SECOND)
        clock = windows(clocks)
        clocks.move(10)
        clocks.real += round(step * SECOND)
        assert clock.left_s() == 0
        span = clock.end()
        assert span == Span(1_000_000_020 * SECOND, 10 * SECOND, round(step * SECOND))
        assert clock.end().step_ns == 0
        assert 0 < clock.left_s() <= 60


def test_a_slewed_clock_is_not_a_step() -> None:
    clocks = Clocks(1_000_000_020 * SECOND)
    clock = windows(clocks)
    clocks.move(30)
    clocks.real += SECOND // 2
    assert clock.left_s() == 30
    assert clock.end().step_ns == 0


def test_tries_wait_longer_and_longer_up_to_five_minutes_with_full_jitter() -> None:
    limits: list[tuple[float, float]] = []

    def highest(low: float, high: float) -> float:
        limits.append((low, high))
        return high

    backoff = Backoff(highest)
    assert [backoff.delay_s() for _ in range(11)] == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]
    assert {low for low, _ in limits} == {0}
    assert backoff.delay_s(30) == 330, "after what the server asked for"
    backoff.failures = 0
    assert backoff.delay_s() == 1


def test_signals_are_seen_where_windows_are_late() -> None:
    read, write = os.pipe()
    late = SimpleNamespace(_clock=SimpleNamespace(left_s=lambda: -3.0), _profiler=None)
    try:
        signals = SimpleNamespace(fileno=lambda: read)
        assert Agent.wait(late, signals) is False  # type: ignore[arg-type]
        os.write(write, bytes([signal.SIGTERM]))
        assert Agent.wait(late, signals) is True  # type: ignore[arg-type]
    finally:
        os.close(read)
        os.close(write)
