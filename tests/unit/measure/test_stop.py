"""Signals end a run once, and break it twice."""

from __future__ import annotations

import ctypes
import os
import select
import signal
import threading
from pathlib import Path

import pytest

from purebpf.measure.stop import Stop


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
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


def test_it_is_readable_before_python_gets_to_its_handler(tmp_path: Path) -> None:
    """A signal may come between two instructions, one of which then waits for `stop` for long."""
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    found = []

    def watch(stop: Stop) -> None:
        ready = select.select([stop], [], [], 10)[0]
        found.append((ready == [stop], stop.signal))
        gate.write_text("on")

    with Stop() as stop:
        watcher = threading.Thread(target=watch, args=[stop])
        watcher.start()
        # the main thread is in C during that, and handles nothing
        ctypes.CDLL(None).system(f"kill -TERM {os.getpid()}; read word < {gate}".encode())
        watcher.join()
        assert found == [(True, 0)]
        assert stop.signal == signal.SIGTERM


def test_a_terminal_that_closes_may_say_so_again() -> None:
    """The shell sends SIGHUP, and so does the kernel when the shell has ended."""
    before = signal.getsignal(signal.SIGHUP)
    with Stop() as stop:
        for _ in range(3):
            signal.raise_signal(signal.SIGHUP)
        assert stop.signal == signal.SIGHUP
    assert signal.getsignal(signal.SIGHUP) == before
