"""Windows of a run that goes on: exact together, and each forgets the one before."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from purebpf.observe.runtimes.cpython.interpreter_table import InterpreterTable
from purebpf.observe.unwind.user_stacks import UserStacks
from purebpf.results import Profile
from purebpf.tools.profile.request import ProfileOptions
from purebpf.tools.profile.windows import WindowProfiler
from tests.commands.conftest import Workloads

pytestmark = [pytest.mark.needs("bpf", "perf_event", "gcc"), pytest.mark.any_kernel]

CHURN = """
import subprocess, sys
print("ready", flush=True)
while True:
    subprocess.run([sys.argv[1], "-c", "exit $((1 + 2 * 3))"], check=False)
"""


@contextmanager
def churning() -> Iterator[int]:
    """Short processes, one after the other."""
    words = [sys.executable, "-c", CHURN, "/bin/sh"]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            yield process.pid
        finally:
            process.kill()


def windows(profiler: WindowProfiler, count: int, length_s: float) -> list[Profile]:
    profiles = []
    for _ in range(count - 1):
        profiler.wait(at_most_s=length_s)
        profiles.append(profiler.window())
    profiler.wait(at_most_s=length_s)
    return [*profiles, profiler.window(is_last=True)]


def counted(profile: Profile) -> int:
    value = profile.about["counted"]
    assert isinstance(value, int)
    return value


def test_windows_add_up_to_what_was_counted(workloads: Workloads) -> None:
    with (
        workloads.running("split") as pid,
        churning() as shell,
        WindowProfiler(ProfileOptions(frequency=199, pids=(pid, shell), tree=True)) as profiler,
    ):
        profiles = windows(profiler, 7, 0.2)
        in_all = profiler._before  # noqa: SLF001
    assert sum(profile.total for profile in profiles) == in_all["counted"]
    assert sum(counted(profile) for profile in profiles) == in_all["counted"]
    assert sum(profile.loss.seen for profile in profiles) == in_all["seen"]
    assert sum(profile.total > 0 for profile in profiles) > 1
    assert not any(
        cause.lost
        for profile in profiles
        for cause in profile.loss.causes
        if cause.name in ("map_full", "map_busy", "stacks_lost")
    )
    rows = [row for profile in profiles[1:] for row in profile.rows()]
    names = {frame.name for row in rows for frame in row.user or () if hasattr(frame, "name")}
    assert "spend_seventy" in names, "a known process keeps its names in later windows"
    assert not any(row.kernel is None for row in rows), "kernel stacks outlive the emptied map"


def test_each_sample_of_a_window_is_counted_lost_or_idle() -> None:
    """However close together windows are, and however little there is room for.

    By frame pointers: no copy waits, so that each window has its own samples alone.
    """
    options = ProfileOptions(
        frequency=997, call_graph="fp", python=False, hash_storage_size=16, stack_storage_size=16
    )
    with churning(), WindowProfiler(options) as profiler:
        profiles = windows(profiler, 25, 0.02)
    for profile in profiles:
        lost = {cause.name: cause.lost for cause in profile.loss.causes}
        aside = profile.about["idle"]
        assert isinstance(aside, int)
        full = lost["map_full"] + lost["map_busy"]
        assert profile.loss.seen == profile.total + full + aside
    assert sum(profile.total for profile in profiles) > 25


def test_a_pause_is_in_no_window(workloads: Workloads) -> None:
    with (
        workloads.running("split") as pid,
        WindowProfiler(ProfileOptions(frequency=199, pids=(pid,))) as profiler,
    ):
        while not (first := profiler.window(pause=True)).total:
            profiler.resume()
            profiler.wait(at_most_s=0.2)
        time.sleep(0.3)
        paused = profiler.window(pause=True)
        profiler.resume()
        profiler.wait(at_most_s=0.2)
        while not (last := profiler.window()).total:  # on a busy machine
            profiler.wait(at_most_s=0.2)
    assert first.total
    assert last.total
    assert (paused.total, paused.loss.seen, paused.loss.expected) == (0, 0, 0)


def test_the_end_of_a_window_is_not_sampled_and_not_expected(
    workloads: Workloads, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stacks are finished after the last sample, which may take seconds."""
    finish = UserStacks.finish

    def slowly(stacks: UserStacks) -> None:
        time.sleep(1.0)
        finish(stacks)

    monkeypatch.setattr(UserStacks, "finish", slowly)
    with (
        workloads.running("split") as pid,
        WindowProfiler(ProfileOptions(frequency=199, pids=(pid,))) as profiler,
    ):
        begun_s = time.monotonic()
        profiler.wait(at_most_s=0.3)
        asked_s = time.monotonic() - begun_s
        last = profiler.window(is_last=True)
        whole_s = time.monotonic() - begun_s
    elapsed_s = last.about["elapsed_s"]
    assert isinstance(elapsed_s, float)
    assert asked_s - 0.1 < elapsed_s <= whole_s - 1.0 + 0.1


def test_processes_that_are_gone_are_forgotten(workloads: Workloads) -> None:
    """What is kept is what runs, and what was asked about and ended in the last two windows."""
    rounds: list[list[int]] = []
    with (
        workloads.running("split") as pid,
        WindowProfiler(ProfileOptions(frequency=199, pids=(pid,), tree=True)) as profiler,
    ):
        for _ in range(5):
            rounds.append([])
            for _ in range(11):
                with subprocess.Popen(["/bin/true"]) as process:
                    rounds[-1].append(process.pid)
            profiler.wait(at_most_s=0.05)
            followed = profiler._sampling.watch.followed  # noqa: SLF001
            followed.drain()
            assert followed.spaces.knows(rounds[-1][0]), "they were known at all"
            profiler.window()
        known = followed.spaces.processes
        unread = followed._unread.pieces  # noqa: SLF001
        payers = profiler._symbolizer._payers  # noqa: SLF001
        stacks = len(profiler._sampling.loaded.maps["stacks"])  # noqa: SLF001
    assert rounds[-1][0] in known
    early = {*rounds[0], *rounds[1], *rounds[2]}
    assert not known & early
    assert not unread.keys() & early
    assert payers.keys() <= {pid}
    assert stacks < 100, "since the last window only"


def test_processes_are_listed_around_the_start_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """To ask each process of the machine for its program, every 5 s, costs more than to sample.

    Before the start, and once more for processes that began before their records were read.
    """
    listed = []
    publish = InterpreterTable.publish_running
    monkeypatch.setattr(
        InterpreterTable,
        "publish_running",
        lambda table, *args, **words: listed.append(1) or publish(table, *args, **words),
    )
    with WindowProfiler(ProfileOptions(frequency=19)) as profiler:
        for _ in range(3):
            profiler.wait(at_most_s=0.05)
            profiler.window()
    assert len(listed) == 2


def test_stacks_of_a_window_go_however_busy_it_is(
    workloads: Workloads, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a copy that waits at the end of each window, those of all would be kept for it."""
    monkeypatch.setattr(UserStacks, "is_behind", True)
    with (
        workloads.running("split") as pid,
        WindowProfiler(ProfileOptions(frequency=199, pids=(pid,))) as profiler,
    ):
        total = 0
        for _ in range(5):
            profiler.wait(at_most_s=0.2)
            total += profiler.window().total
        kept = profiler._taken.traces  # noqa: SLF001
        waiting = profiler._finished.waiting_kernel_stacks()  # noqa: SLF001
    assert total
    assert kept.keys() <= waiting
