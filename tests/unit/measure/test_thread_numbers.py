"""Thread IDs in memory of processes in PID namespaces of their own."""

from __future__ import annotations

import pytest

from purebpf.measure import blocked_threads, thread_numbers
from purebpf.measure.blocked_threads import blocked_threads as find_blocked
from purebpf.measure.thread_numbers import own_numbers


def _see(monkeypatch: pytest.MonkeyPatch, numbers: dict[str, str]) -> None:
    def status(task: str) -> dict[str, str] | None:
        return {"NSpid": numbers[task]} if task in numbers else None

    monkeypatch.setattr(thread_numbers.proc, "status", status)
    monkeypatch.setattr(thread_numbers, "entries", lambda _: ["700", "701", "702"])


def test_threads_of_a_container(monkeypatch: pytest.MonkeyPatch) -> None:
    _see(monkeypatch, {"700": "700\t1", "700/task/700": "700\t1", "700/task/701": "701\t2"})
    assert own_numbers(700) == {1: 700, 2: 701}


def test_threads_beside_us_and_threads_that_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    _see(monkeypatch, {"700": "700", "700/task/700": "700"})
    assert own_numbers(700) == {}
    assert own_numbers(999) == {}


@pytest.mark.parametrize(("numbers", "owner"), [({4: 701}, 701), ({9: 701}, 0), ({}, 4)])
def test_the_owner_of_a_mutex_is_a_thread_that_we_see(
    monkeypatch: pytest.MonkeyPatch, numbers: dict[int, int], owner: int
) -> None:
    class Memory:
        def read(self, _address: int, _size: int) -> bytes:
            return b"\2\0\0\0\0\0\0\0\4\0\0\0"

        def close(self) -> None:
            pass

    monkeypatch.setattr(blocked_threads, "open_process_memory", lambda _: Memory())
    monkeypatch.setattr(blocked_threads, "entries", lambda _: ["700"])
    monkeypatch.setattr(blocked_threads, "read_text", lambda _: "202 0x1000 0x80 0x2 0x0")
    monkeypatch.setattr(blocked_threads, "own_numbers", lambda _: numbers)
    (blocked,) = find_blocked((700,))
    assert blocked.words == (2, 0, owner)
