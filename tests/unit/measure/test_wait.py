"""Sleeping until a run is over: ends, moments, sources."""

from __future__ import annotations

import os
import time

import pytest

from purebpf.measure import wait


class End:
    """One that comes on request."""

    def __init__(self) -> None:
        self.reading, self.writing = os.pipe()

    def fileno(self) -> int:
        return self.reading

    def come(self) -> None:
        os.write(self.writing, b"x")


@pytest.fixture
def end():
    made = End()
    yield made
    os.close(made.reading)
    os.close(made.writing)


def soon(seconds: float = 0.01) -> float:
    return time.monotonic() + seconds


def test_it_is_over_when_an_end_comes(end):
    end.come()
    assert wait.until(None, [end])
    assert wait.until(soon(60), [end], pause=soon(60))


TEN_YEARS_S = 10 * 365 * 86400


def test_years_are_slept_through_a_day_at_a_time(end):
    end.come()
    assert wait.until(soon(TEN_YEARS_S), [end], pause=soon(TEN_YEARS_S))


def test_a_day_that_is_over_does_not_end_the_run(end, monkeypatch):
    monkeypatch.setattr(wait, "_LONGEST_S", 0.001)
    began = time.monotonic()
    assert wait.until(soon(0.05), [end])
    assert time.monotonic() - began >= 0.05


def test_it_is_over_at_its_moment_and_not_at_a_pause(end):
    assert wait.until(soon(), [end])
    assert not wait.until(None, [end], pause=soon())
    assert not wait.until(soon(60), [end], pause=soon())
    assert wait.until(soon(), [end], pause=soon(60))


def test_it_is_over_where_both_are_the_same_moment(end):
    moment = soon()
    assert wait.until(moment, [end], pause=moment)


def test_moments_that_have_passed_are_not_waited_for(end):
    assert wait.until(soon(-60), [end])
    assert not wait.until(None, [end], pause=soon(-60))


def test_an_end_comes_before_a_moment_that_has_passed(end):
    end.come()
    assert wait.until(None, [end], pause=soon(-1))


def test_sources_are_drained_as_often_as_they_have_something(end):
    source, drained = End(), []

    def drain() -> None:
        drained.append(os.read(source.reading, 1))
        if len(drained) < 3:
            source.come()
        else:
            end.come()

    source.come()
    assert wait.until(None, [end], sources=[source.reading], drain=drain)
    assert drained == [b"x"] * 3
    os.close(source.reading)
    os.close(source.writing)


def test_a_source_that_hangs_up_is_left_alone(end):
    source, drained = End(), []
    os.close(source.writing)
    assert not wait.until(
        None, [end], pause=soon(), sources=[source.reading], drain=lambda: drained.append(1)
    )
    assert drained == [1]
    os.close(source.reading)


def test_drained_records_may_be_a_pause_but_never_hide_the_end(end):
    source = End()
    source.come()
    assert not wait.until(soon(60), [end], sources=[source.reading], drain=lambda: True)
    assert wait.until(soon(-1), [end], sources=[source.reading], drain=lambda: True)
    end.come()
    assert wait.until(None, [end], sources=[source.reading], drain=lambda: True)
    os.close(source.reading)
    os.close(source.writing)


def test_it_is_over_when_a_pause_has_passed_before(end):
    assert wait.until(soon(-1), [end], pause=soon(-60))


class Targets:
    """Two processes: the end of each makes `fileno()` readable until `drop_ended()`."""

    def __init__(self, end: End) -> None:
        self._end = end
        self._living = 2

    def __bool__(self) -> bool:
        return self._living > 0

    def are_over(self) -> bool:
        return self._living == 0

    def fileno(self) -> int:
        return self._end.fileno()

    def drop_ended(self) -> bool:
        os.read(self._end.reading, 1)
        self._living -= 1
        return True


def test_the_end_of_one_target_of_two_is_no_end(end):
    end.come()
    targets = Targets(end)
    assert not wait.until(None, [], pause=soon(), targets=targets)
    end.come()
    assert wait.until(None, [], targets=targets)
    assert not targets


def test_a_clock_with_targets_ticks_until_the_last_has_ended(end):
    clock, targets = wait.RunClock(None, 0.05), Targets(end)
    end.come()
    clock.next_tick()
    assert not clock.wait(targets=targets)
    end.come()
    clock.next_tick()
    assert clock.wait(targets=targets)
