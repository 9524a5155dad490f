"""Processes that use the CPUs for which others wait."""

from __future__ import annotations

import os

import pytest

from purebpf.measure import neighbours
from purebpf.measure.neighbours import (
    Neighbour,
    NeighbourWatch,
    PressureWatch,
    describe_neighbours,
)

HOG, IDLE = Neighbour(9, "nightly", 0.8), Neighbour(8, "sshd", 0.01)


def test_the_process_that_uses_the_cpu_is_named() -> None:
    (sentence,) = describe_neighbours(1.24, [IDLE, HOG], 1)
    assert sentence == (
        "run queue: 1.2 threads wait for a CPU in the mean; of the one CPU that they may use, "
        "nightly (9) 0.80"
    )


def test_processes_that_may_be_elsewhere_are_named_if_nobody_else_is_there() -> None:
    elsewhere = Neighbour(7, "build", 0.9, is_inside=False)
    (sentence,) = describe_neighbours(1.2, [elsewhere, HOG], 1)
    assert sentence.endswith("of the one CPU that they may use, nightly (9) 0.80")
    (sentence,) = describe_neighbours(1.2, [elsewhere], 1)
    assert sentence.endswith("of all CPUs, build (7) 0.90")


@pytest.mark.parametrize(
    ("queued", "neighbours"),
    [(0.05, [HOG]), (3.0, [IDLE]), (3.0, [])],
    ids=["hardly waits", "waits for its own threads", "alone"],
)
def test_short_queues_and_those_of_nobody_are_no_news(
    queued: float, neighbours: list[Neighbour]
) -> None:
    assert describe_neighbours(queued, neighbours, 2) == []


def test_two_readings_make_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """Process 7 waits 12 of 10 s for a CPU that 9 uses; 8 uses another one, and 7 itself little."""
    queued_ns, used = iter([5e9, 17e9]), iter([{7: 1.0, 8: 2.0, 9: 3.0}, {7: 3.0, 8: 9.0, 9: 11.0}])
    monkeypatch.setattr(neighbours, "_queued_ns", lambda _: int(next(queued_ns)))
    monkeypatch.setattr(neighbours, "_used_s", lambda: next(used))
    monkeypatch.setattr(neighbours, "_allowed", lambda pid: {0} if pid == 8 else {1})
    monkeypatch.setattr(neighbours.proc, "comm", lambda pid: f"job{pid}")
    monkeypatch.setattr(neighbours.time, "monotonic", iter([100.0, 110.0]).__next__)
    monkeypatch.setattr(neighbours.os, "cpu_count", lambda: 2)
    (sentence,) = NeighbourWatch((7,)).sentences()
    assert sentence == (
        "run queue: 1.2 threads wait for a CPU in the mean; of the one CPU that they may use, "
        "job9 (9) 0.80"
    )


def test_this_process_can_be_read() -> None:
    watch = NeighbourWatch((os.getpid(),))
    assert all("run queue: " in sentence for sentence in watch.sentences())
    assert neighbours._used_s()[os.getpid()] > 0
    assert neighbours._allowed(os.getpid())


def test_no_process_needs_no_look() -> None:
    assert NeighbourWatch(()).sentences() == []


@pytest.mark.parametrize(("waited_us", "count"), [(9_000_000, 1), (1_000, 0), (0, 0)])
def test_a_machine_whose_threads_queue_has_a_line(
    monkeypatch: pytest.MonkeyPatch, waited_us: int, count: int
) -> None:
    texts = iter([
        "some avg10=1.00 avg60=2.00 avg300=3.00 total=5\nfull avg10=0.00 total=0\n",
        f"some avg10=1.00 avg60=2.00 avg300=3.00 total={5 + waited_us}\nfull total=0\n",
    ])  # fmt: skip
    monkeypatch.setattr(neighbours, "read_text", lambda _: next(texts))
    monkeypatch.setattr(neighbours.time, "monotonic", iter([100.0, 110.0]).__next__)
    said = PressureWatch().sentences()
    assert len(said) == count
    for sentence in said:
        assert sentence.startswith("run queue: threads waited for a CPU in 90 % of the time")


def test_a_kernel_without_pressure_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighbours, "read_text", lambda _: "")
    assert PressureWatch().sentences() == []


@pytest.mark.parametrize(("count", "is_read"), [(2000, True), (2001, False)])
def test_a_machine_of_many_processes_is_not_read(
    monkeypatch: pytest.MonkeyPatch, count: int, *, is_read: bool
) -> None:
    line = "1 (a b) S 0 0 0 0 0 0 0 0 0 0 300 100 0 0"
    monkeypatch.setattr(neighbours, "entries", lambda _: ["self", *map(str, range(count))])
    monkeypatch.setattr(neighbours, "read_text", lambda _: line)
    monkeypatch.setattr(neighbours.os, "sysconf", lambda _: 100)
    assert neighbours._used_s() == (dict.fromkeys(range(count), 4.0) if is_read else {})
