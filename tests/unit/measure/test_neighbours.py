"""Processes that use the CPUs for which others wait."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from purebpf.measure.neighbours import Neighbour, NeighbourWatch, describe_neighbours

HOG, IDLE = Neighbour(9, "nightly", 0.8), Neighbour(8, "sshd", 0.01)


def test_the_process_that_uses_the_cpu_is_named() -> None:
    (sentence,) = describe_neighbours(1.24, [IDLE, HOG], 1)
    assert sentence == (
        "run queue: 1.2 threads wait for a CPU in the mean; of the one CPU that they may use, "
        "nightly (9) 0.80"
    )


@pytest.mark.parametrize(
    ("queued", "neighbours"),
    [(0.05, [HOG]), (3.0, [IDLE]), (3.0, [])],
    ids=["hardly waits", "waits for its own threads", "alone"],
)
def test_short_queues_and_those_of_nobody_are_no_news(
    queued: float, neighbours: list[Neighbour]
) -> None:
    assert describe_neighbours(queued, neighbours, 2) == []


def test_a_process_that_shares_its_only_cpu_waits_for_the_other() -> None:
    """Both loop on one CPU: each waits half of the time."""
    cpu = min(os.sched_getaffinity(0))
    loop = [sys.executable, "-c", f"import os; os.sched_setaffinity(0, {{{cpu}}})\nwhile 1: pass"]
    with subprocess.Popen(loop) as victim, subprocess.Popen(loop) as hog:
        try:
            while os.sched_getaffinity(victim.pid) != {cpu} != os.sched_getaffinity(hog.pid):
                time.sleep(0.02)
            watch = NeighbourWatch((victim.pid,))
            until = time.monotonic() + 20
            while not (said := watch.sentences()) and time.monotonic() < until:
                time.sleep(0.5)
        finally:
            victim.kill()
            hog.kill()
    assert said
    assert "threads wait for a CPU in the mean; of the one CPU" in said[0]


def test_no_process_needs_no_look() -> None:
    assert NeighbourWatch(()).sentences() == []
