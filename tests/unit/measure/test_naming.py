"""Ctrl-C while names are looked up."""

from __future__ import annotations

import signal
import threading

import pytest

from purebpf.measure.stop import Stop
from purebpf.observe.symbols.interruptible import interruptible
from purebpf.symbols.budget import Budget


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_one_stops_the_naming(number: signal.Signals) -> None:
    budget = Budget()
    before = signal.getsignal(number)
    with interruptible(budget):
        signal.raise_signal(number)
        assert budget.is_stopped
        assert signal.getsignal(number) is before
    assert signal.getsignal(number) is before


def test_the_second_one_quits() -> None:
    with interruptible(Budget()):
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


def test_after_the_one_that_ended_the_measurement() -> None:
    budget = Budget()
    with Stop() as stop:
        signal.raise_signal(signal.SIGINT)
        assert stop
        with interruptible(budget):
            signal.raise_signal(signal.SIGINT)
            assert budget.is_stopped
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)


def test_when_the_measurement_ended_by_itself() -> None:
    """`Stop` still waits for its first signal then, and would take the second one."""
    with Stop() as stop:
        with interruptible(Budget()):
            signal.raise_signal(signal.SIGINT)
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)
        assert not stop
        signal.raise_signal(signal.SIGINT)
        assert stop


def test_a_signal_that_is_ignored_stays_ignored() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        budget = Budget()
        with interruptible(budget):
            signal.raise_signal(signal.SIGINT)
        assert not budget.is_stopped
    finally:
        signal.signal(signal.SIGINT, before)


def test_in_another_thread_nothing_changes() -> None:
    problems: list[BaseException] = []

    def enter() -> None:
        try:
            with interruptible(Budget()):
                assert signal.getsignal(signal.SIGINT) is before
        except BaseException as error:  # noqa: BLE001  it is what the test looks at
            problems.append(error)

    before = signal.getsignal(signal.SIGINT)
    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert problems == []
