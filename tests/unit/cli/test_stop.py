"""Signals end a run once, and break it twice."""

from __future__ import annotations

import os
import select
import signal

import pytest

from purebpf.cli.stop import Stop


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_is_readable(number: signal.Signals) -> None:
    with Stop() as stop:
        assert not stop
        assert select.select([stop], [], [], 0)[0] == []
        os.kill(os.getpid(), number)
        assert select.select([stop], [], [], 10)[0] == [stop]
        assert stop.signal == number


def test_the_second_interrupt_is_pythons_own() -> None:
    with Stop() as stop:
        os.kill(os.getpid(), signal.SIGINT)
        assert stop
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


def test_handlers_are_put_back() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with Stop():
        assert signal.getsignal(signal.SIGINT) != before[0]
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


def test_a_signal_that_is_ignored_stays_ignored() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with Stop():
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
