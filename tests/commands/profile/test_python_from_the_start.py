"""Python functions are in the first samples of a run, not from some later moment on."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from purebpf.tools.profile import ProfileOptions, Profiler

pytestmark = pytest.mark.needs("bpf", "perf_event", "task_pt_regs", "vmlinux_btf")

SPIN = "print(flush=True)\ndef marked():\n    while True: pass\nmarked()"


@pytest.fixture
def spinning() -> Iterator[int]:
    """A Python process that runs one function."""
    with subprocess.Popen([sys.executable, "-c", SPIN], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process.pid
        process.kill()


def test_a_run_of_the_machine_knows_running_interpreters_when_it_starts(spinning: int) -> None:
    with Profiler(ProfileOptions(frequency=499, duration_s=0.5)) as profiler:
        python = profiler._sampling.python
        assert python is not None
        assert spinning in python.interpreters.published
        profiler.wait()
        profile = profiler.stop()
    rows = [row for row in profile.rows() if row.labels.pid == spinning and row.user]
    assert rows
    assert all(any(getattr(frame, "name", "") == "marked" for frame in row.user) for row in rows)
    assert "python_stacks" in profile.about


def test_a_hint_knows_that_python_functions_are_read(
    spinning: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[bool] = []
    monkeypatch.setattr(
        "purebpf.measure.stacks.assemble_profile.hints",
        lambda profile, _: told.append("python_stacks" in profile.about) or [],
    )
    with Profiler(ProfileOptions(pids=(spinning,), frequency=499, duration_s=0.2)) as profiler:
        profiler.wait()
        profiler.stop()
    assert told == [True]
