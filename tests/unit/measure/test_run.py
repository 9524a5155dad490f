"""The pipeline: what happens in which order, whatever is measured."""

from __future__ import annotations

import gc
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self

import pytest

from purebpf.measure import wait
from purebpf.measure.child import CommandError
from purebpf.measure.run import prepare, run
from purebpf.measure.stop import HasFileno


class Fake:
    """A session that notes what is done with it; `ticks` times a tick is due before its end."""

    def __init__(self, log: list[str], ticks: int = 0, pid: int = 0) -> None:
        self.log, self.ticks, self.pid = log, ticks, pid

    def __enter__(self) -> Self:
        self.log.append("enter")
        return self

    def __exit__(self, *_: object) -> None:
        self.log.append("exit")

    def wait(self, *ends: HasFileno) -> bool:
        self.log.append("wait")
        if self.ticks:
            self.ticks -= 1
            return False
        return not self.pid or wait.until(time.monotonic() + 10, ends)

    def stop(self) -> str:
        self.log.append("stop")
        return "result"


@contextmanager
def noting(log: list[str], name: str) -> Iterator[None]:
    log.append(f"{name} begins")
    yield
    log.append(f"{name} ends")


def test_the_order_is_enter_wait_tick_stop_exit() -> None:
    log: list[str] = []
    with prepare(lambda pid: Fake(log, 2, pid)) as (session, ends):
        result = run(
            session,
            ends,
            lambda: log.append("tick"),
            watching=noting(log, "watching"),
            naming=noting(log, "naming"),
        )
        assert ends.status() == 0
    assert result == "result"
    assert log == [
        *("enter", "watching begins", "wait", "tick", "wait", "tick", "wait", "watching ends"),
        *("naming begins", "stop", "naming ends", "exit"),
    ]


def test_the_command_runs_only_once_the_session_does(tmp_path) -> None:
    log: list[str] = []
    there = tmp_path / "there"
    with prepare(lambda pid: Fake(log, 0, pid), ("touch", str(there))) as (session, ends):
        time.sleep(0.1)
        assert not there.exists()
        assert session.pid > 0
        run(session, ends)
        assert there.exists()
        assert ends.status() == 0


def test_the_status_is_that_of_the_command() -> None:
    with prepare(lambda pid: Fake([], 0, pid), ("sh", "-c", "exit 7")) as (session, ends):
        run(session, ends)
        assert ends.status() == 7


def test_a_command_that_is_not_there_leaves_nothing() -> None:
    log: list[str] = []
    with pytest.raises(CommandError), prepare(lambda pid: Fake(log, 0, pid), ("/no/such",)) as both:
        run(*both)
    assert log == ["enter", "exit"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_wait_and_the_result_is_there(number: signal.Signals) -> None:
    log: list[str] = []
    with prepare(lambda pid: Fake(log, 1, pid), ("sleep", "10")) as (session, ends):
        result = run(session, ends, lambda: os.kill(os.getpid(), number))
        assert result == "result"
        assert ends.status() == 128 + signal.SIGTERM
    assert log == ["enter", "wait", "wait", "stop", "exit"]


def test_garbage_is_collected_while_it_ticks() -> None:
    seen: list[bool] = []
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        with prepare(lambda pid: Fake([], 1, pid)) as (session, ends):
            run(session, ends, lambda: seen.append(gc.isenabled()))
        assert seen == [True]
        assert not gc.isenabled()
    finally:
        if was_enabled:
            gc.enable()


def test_what_is_read_in_time_goes_before_others_but_neither_the_command_nor_ticks(
    tmp_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log: list[str] = []
    said = tmp_path / "nice"

    @contextmanager
    def raised(at_most_s: float | None = None) -> Iterator[None]:
        log.append("raised" if at_most_s is None else f"raised for {at_most_s} s")
        yield
        log.append("usual")

    monkeypatch.setattr("purebpf.measure.run.raised_priority", raised)
    words = ("sh", "-c", f"nice > {said}")
    with prepare(lambda pid: Fake(log, 1, pid), words) as (session, ends):
        run(session, ends, lambda: log.append("tick"))
        ends.status()
    wait = ["raised", "wait", "usual"]
    stop = ["raised for 2.0 s", "stop", "usual"]
    assert log == ["raised", "enter", "usual", *wait, "tick", *wait, *stop, "exit"]
    assert int(said.read_text()) == os.getpriority(os.PRIO_PROCESS, 0)
