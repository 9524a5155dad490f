"""What the agent decides by numbers: the rate, the windows, when to try again."""

from __future__ import annotations

import os
import signal
from types import SimpleNamespace

from purebpf.services.agent.budget import Rate, Step
from purebpf.services.agent.sender import Backoff
from purebpf.services.agent.session import Agent
from purebpf.services.agent.window_clock import Span, WindowClock

SECOND = 10**9


def spend(rate: Rate, *shares: float) -> list[Step]:
    steps = []
    for share in shares:
        rate.spent(share)
        steps.append(rate.step)
    return steps


def test_the_rate_is_halved_twice_and_comes_back() -> None:
    rate = Rate(19, 0.005)
    steps = spend(rate, 0.006, 0.004, 0.006, 0.006, 0.006, 0.006, *[0.001] * 20, 0.004)
    frequencies = [step.frequency for step in steps]
    assert frequencies == [19, 19, 19, 9, 9, *[4] * 10, *[9] * 10, 19, 19]
    assert {step.every for step in steps} == {1}
    assert rate.reduced == 2


def test_so_many_steps_at_once_as_the_cost_asks_for() -> None:
    rate = Rate(19, 0.005)
    assert spend(rate, 0.049, 0.049) == [Step(19), Step(4, 4)], "a tenth is to be left"
    assert spend(rate, *[0.3] * 500)[-1] == Step(4, 32), "and no less than that"


def test_where_not_all_windows_are_sampled_their_mean_counts() -> None:
    rate = Rate(19, 0.005)
    spend(rate, 0.049, 0.049)
    for _ in range(10):
        assert spend(rate, 0.0004, 0.0176, 0.0004, 0.0004) == [Step(4, 4)] * 4, "0.0047"
    assert spend(rate, *[0, 0.024, 0, 0] * 2)[-1] == Step(4, 8), "0.006, twice"
    assert spend(rate, *[0.001] * 15)[-1] == Step(4, 8)
    assert spend(rate, 0.001)[-1] == Step(4, 4), "after two of eight, which are more than ten"


def test_one_of_so_many_windows_is_due() -> None:
    rate = Rate(19, 0.005)
    assert [rate.is_due() for _ in range(5)] == [True] * 5
    spend(rate, 0.049, 0.049)
    due = [rate.is_due() for _ in range(400)]
    assert all(sum(due[at : at + 4]) == 1 for at in range(0, 400, 4))
    assert len({tuple(due[at : at + 4]) for at in range(0, 400, 4)}) == 4, "any of the four"


def test_without_a_budget_the_rate_stays() -> None:
    assert {*spend(Rate(19, 0), *[0.9] * 5)} == {Step(19)}


def test_a_step_in_words() -> None:
    assert str(Step(19)) == "19 Hz"
    assert str(Step(4, 8)) == "4 Hz in one of 8 windows"


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


def test_the_only_window_is_whole() -> None:
    clocks = Clocks(1_000_000_000 * SECOND)
    clock = WindowClock(60, lambda: clocks.real, lambda: clocks.mono, is_once=True)
    assert clock.left_s() == 60
    clocks.move(60)
    assert clock.end() == Span(1_000_000_000 * SECOND, 60 * SECOND, 0)


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
