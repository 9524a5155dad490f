"""Which stacks a window hands on to the next one: those of copies that wait, and no others."""

from __future__ import annotations

from typing import NamedTuple

from purebpf.tools.profile.windows import WindowCounts


class Stack(NamedTuple):
    addresses: tuple[int, ...]
    depth: int = 2
    reason: int = 1
    guessed: int = 0


class FakeMap:
    def __init__(self) -> None:
        self.elements: list[tuple[object, object]] = []

    def drain(self) -> list[tuple[object, object]]:
        taken, self.elements = self.elements, []
        return taken


class FakeFinished:
    def __init__(self) -> None:
        self.waiting: set[int] = set()

    def take(self) -> list[tuple[object, int]]:
        return []

    def forget(self) -> None:
        pass

    def waiting_kernel_stacks(self) -> set[int]:
        return self.waiting


def test_only_stacks_of_copies_that_wait_outlive_a_window() -> None:
    counts, stacks, finished = FakeMap(), FakeMap(), FakeFinished()
    window = WindowCounts(counts, stacks, 100, finished)
    for number in range(50):  # windows, at the end of each of which copies wait
        stacks.elements = [(10 * number + n, Stack((n, n + 1, 0))) for n in range(5)]
        finished.waiting = {10 * number + 3, 4_000_000}
        window.take()
        last = {10 * number - 7} if number else set()
        assert window.traces.keys() == {10 * number + n for n in range(5)} | last
        assert window.traces[10 * number + 3].addresses == (3, 4)
        window.forget()
        assert window.traces.keys() == {10 * number + 3}
    finished.waiting = set()
    window.take()
    window.forget()
    assert not window.traces
