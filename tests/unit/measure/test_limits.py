"""Open files go as far up as they may; the priority, where it is the usual one."""

from __future__ import annotations

import os
import resource
import signal
import threading
import time

import pytest

from purebpf.loader.host import process_limits
from purebpf.measure.limits import NICE, raise_open_files, raised_priority


def test_the_soft_limit_becomes_the_hard_one() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, hard - 1), hard))
    try:
        raise_open_files()
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (hard, hard)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


class Priority:
    """That of a thread; `may_rise` as with CAP_SYS_NICE."""

    def __init__(self, nice: int, *, may_rise: bool = True) -> None:
        self.nice, self.may_rise = nice, may_rise

    def get(self, *_: int) -> int:
        return self.nice

    def set(self, _which: int, _who: int, nice: int) -> None:
        if nice < self.nice and not self.may_rise:
            raise PermissionError(13, "Permission denied")
        self.nice = nice


@pytest.mark.parametrize(
    ("before", "may_rise", "within"),
    [(0, True, NICE), (0, False, 0), (5, True, 5), (NICE, True, NICE)],
)
def test_only_the_usual_priority_is_raised_and_comes_back(
    before: int, may_rise: bool, within: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    priority = Priority(before, may_rise=may_rise)
    monkeypatch.setattr(os, "getpriority", priority.get)
    monkeypatch.setattr(os, "setpriority", priority.set)
    nice_within = 0

    def fail() -> None:
        nonlocal nice_within
        with raised_priority():
            nice_within = priority.nice
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert nice_within == within
    assert priority.nice == before


def burn(cpu_s: float) -> None:
    end_s = time.process_time() + cpu_s
    while time.process_time() < end_s:
        pass


@pytest.fixture
def priority(monkeypatch: pytest.MonkeyPatch) -> Priority:
    """The usual one, of a thread that may rise."""
    usual = Priority(0)
    monkeypatch.setattr(os, "getpriority", usual.get)
    monkeypatch.setattr(os, "setpriority", usual.set)
    return usual


def test_after_some_cpu_time_a_limited_priority_is_the_usual_one(priority: Priority) -> None:
    with raised_priority(at_most_s=0.05):
        assert priority.nice == NICE
        time.sleep(0.1)  # no CPU time
        assert priority.nice == NICE
        burn(0.2)
        assert priority.nice == 0
        priority.nice = NICE
    assert priority.nice == 0
    assert signal.getitimer(signal.ITIMER_PROF) == (0, 0)
    assert signal.getsignal(signal.SIGPROF) is signal.SIG_DFL


def test_a_limited_priority_ends_with_its_context(priority: Priority) -> None:
    with raised_priority(at_most_s=60):
        assert priority.nice == NICE
    assert priority.nice == 0
    assert signal.getitimer(signal.ITIMER_PROF) == (0, 0)
    assert signal.getsignal(signal.SIGPROF) is signal.SIG_DFL


def test_a_signal_that_somebody_uses_stays_his(priority: Priority) -> None:
    ticks: list[int] = []
    before = signal.signal(signal.SIGPROF, lambda *_: ticks.append(1))
    try:
        with raised_priority(at_most_s=60):
            assert priority.nice == 0
            signal.raise_signal(signal.SIGPROF)
        assert ticks == [1]
    finally:
        signal.signal(signal.SIGPROF, before)
    signal.setitimer(signal.ITIMER_PROF, 60)
    try:
        with raised_priority(at_most_s=60):
            assert priority.nice == 0
        assert signal.getitimer(signal.ITIMER_PROF)[0] > 0
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def test_other_threads_do_not_rise_for_some_time(priority: Priority) -> None:
    seen: list[int] = []

    def look() -> None:
        with raised_priority(at_most_s=60):
            seen.append(priority.nice)

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert (seen, priority.nice) == ([0], 0)
    assert signal.getsignal(signal.SIGPROF) is signal.SIG_DFL


def test_a_process_that_may_not_ask_reads_its_limits_from_proc(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    files, memory = process_limits.open_files(), process_limits.locked_memory()

    def refuse(*_: object) -> tuple[int, int]:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(resource, "getrlimit", refuse)
    monkeypatch.setattr(resource, "setrlimit", refuse)
    raise_open_files()
    assert process_limits.open_files() == files
    assert process_limits.locked_memory() == memory
