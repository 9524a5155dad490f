"""What a run that goes on keeps of processes that have exited: what its samples need."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from purebpf.tools.profile import ProfileOptions, Profiler

pytestmark = pytest.mark.needs("bpf", "perf_event")

BUSY = "import time\nwhile time.process_time() < 0.3: sum(range(10_000))"


def _run(*command: str) -> int:
    with subprocess.Popen(command) as process:
        pass
    return process.pid


def test_those_without_samples_are_forgotten() -> None:
    with Profiler(ProfileOptions(pids=(os.getpid(),), tree=True, frequency=1)) as profiler:
        gone = [_run("true") for _ in range(5)]
        followed = profiler._sampling.watch.followed
        followed.drain()
        assert all(followed.spaces.knows(pid) for pid in gone)
        end = time.monotonic() + 30
        while any(followed.spaces.knows(pid) for pid in gone):  # once no copied stack waits
            assert time.monotonic() < end
            profiler.wait(at_most_s=0.01)
            profiler.take()
        assert [followed.names.of(pid) for pid in gone] == [""] * 5


def test_those_that_no_one_asked_about_are_forgotten_at_once() -> None:
    with Profiler(ProfileOptions(pids=(os.getpid(),), tree=True, frequency=1)) as profiler:
        gone = [_run("true") for _ in range(5)]
        followed = profiler._sampling.watch.followed
        followed.drain()
        followed.forget_exited(keep={gone[0]})
        assert [followed.spaces.knows(pid) for pid in gone] == [True, *[False] * 4]


def test_those_with_samples_have_their_names_as_long_as_it_goes_on() -> None:
    with Profiler(ProfileOptions(pids=(os.getpid(),), tree=True, frequency=499)) as profiler:
        sampled = _run(sys.executable, "-c", BUSY)
        for _ in range(4):
            profiler.take()
        profile = profiler.stop()
    rows = [row for row in profile.rows() if row.labels.pid == sampled]
    named = [row.weight for row in rows if "python" in str(row.user)]
    assert sum(named) * 2 > sum(row.weight for row in rows) > 0
