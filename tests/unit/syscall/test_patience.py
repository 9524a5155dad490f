"""Calls that another user can make wait."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from purebpf.syscall import patience
from purebpf.syscall.patience import call_in_time

USER, OTHER = 4711, 4712


@pytest.fixture
def never(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """What a call waits for, at most until the test is over."""
    monkeypatch.setattr(patience, "PATIENCE_S", 0.05)
    event = threading.Event()
    yield event
    event.set()
    for thread in patience._waiting.values():
        thread.join()


def test_results_and_errors_are_those_of_the_call() -> None:
    assert call_in_time(USER, lambda: 5, print) == 5
    with pytest.raises(FileNotFoundError):
        call_in_time(USER, Path("/nothing/is/here").read_bytes, print)


def test_what_comes_too_late_is_undone(never: threading.Event) -> None:
    undone: list[int] = []

    def wait() -> int:
        never.wait()
        return 5

    with pytest.raises(TimeoutError):
        call_in_time(USER, wait, undone.append)
    waiting = patience._waiting[USER]
    never.set()
    waiting.join()
    assert undone == [5]
    assert call_in_time(USER, lambda: 6, print) == 6


def test_one_call_waits_for_the_processes_of_a_user(never: threading.Event) -> None:
    with pytest.raises(TimeoutError):
        call_in_time(USER, never.wait, print)
    made: list[int] = []
    with pytest.raises(TimeoutError):
        call_in_time(USER, lambda: made.append(1), print)
    assert not made
    assert call_in_time(OTHER, lambda: 7, print) == 7


def test_calls_wait_for_eight_users_at_most(never: threading.Event) -> None:
    for user in range(8):
        with pytest.raises(TimeoutError):
            call_in_time(user, never.wait, print)
    with pytest.raises(TimeoutError):
        call_in_time(USER, lambda: 7, print)
