"""Looks at random moments: where threads wait, in shares that the programs know."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from purebpf.observe.instruments.sleepers import SleeperList
from purebpf.results import Profile
from purebpf.results.model.profile import Row
from purebpf.symbols.frame import Frame
from purebpf.tools.profile.request import ProfileOptions
from purebpf.tools.profile.windows import WindowProfiler
from tests.support.host.faults import slow_host

pytestmark = [
    pytest.mark.needs("bpf", "perf_event", "gcc"),
    pytest.mark.alone,  # shares of time, within a thousandth
]
SHOWN = pytest.mark.needs("task_pt_regs")

NAPS = r"""
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
#define NO_TAIL_CALL asm volatile("")
__attribute__((noipa)) void nap_thirty(void) { usleep(30000); NO_TAIL_CALL; }
__attribute__((noipa)) void nap_seventy(void) { usleep(70000); NO_TAIL_CALL; }
__attribute__((noipa)) void *naps(void *unused) { for (;;) { nap_thirty(); nap_seventy(); } }
__attribute__((noipa)) void sleep_on(void) { pause(); NO_TAIL_CALL; }
int main(void)
{
	pthread_t thread;

	pthread_create(&thread, 0, naps, 0);
	puts("ready");
	fflush(stdout);
	for (;;)
		sleep_on();
}
"""

FOR_THE_GIL = """
import threading, time
def spin():
    while True:
        sum(range(1000))
def rest():
    time.sleep(1000)
threading.Thread(target=rest, daemon=True).start()
for _ in range(3):
    threading.Thread(target=spin, daemon=True).start()
print("ready", flush=True)
time.sleep(1000)
"""


CROWD = """
import threading, time
threading.stack_size(65536)
def rest():
    while True:
        time.sleep(0.2)
for _ in range(600):
    threading.Thread(target=rest, daemon=True).start()
print("ready", flush=True)
time.sleep(1000)
"""


@pytest.fixture(scope="module")
def naps() -> Iterator[str]:
    """A program without frame pointers that knows how long it is where, for any user."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        source, built = Path(folder, "naps.c"), Path(folder, "naps")
        source.write_text(NAPS)
        subprocess.run(["gcc", "-O2", "-pthread", "-o", built, source], check=True)
        yield str(built)


@contextmanager
def running(words: Sequence[str], *, sleeps: bool = True, **options: object) -> Iterator[int]:
    """A program that says when it is ready; its first thread sleeps then, unless it never does."""
    with subprocess.Popen(words, stdout=subprocess.PIPE, **options) as process:  # type: ignore[call-overload]
        try:
            assert process.stdout.readline() == b"ready\n"
            end = time.monotonic() + 60
            while (
                sleeps and Path(f"/proc/{process.pid}/stat").read_text().split(") ")[-1][0] != "S"
            ):
                assert time.monotonic() < end
                time.sleep(0.01)
            yield process.pid
        finally:
            process.kill()


@contextmanager
def looking() -> Iterator[WindowProfiler]:
    """A profiler of the machine that looks where threads wait."""
    with WindowProfiler(ProfileOptions(frequency=19), with_addresses=False) as profiler:
        profiler.sample_waits(20)
        yield profiler


def look(profiler: WindowProfiler, count: int, every_s: float = 0.037) -> Profile:
    """So many looks, at moments that are not multiples of a nap, and what they saw."""
    waits = profiler._waits  # noqa: SLF001
    assert waits is not None
    for _ in range(count):
        profiler.wait(at_most_s=every_s)
        waits.due_s = 0.0
        profiler.look_if_due()
    return profiler.waits()


def rows_of(profile: Profile, pid: int) -> list[Row]:
    return [row for row in profile.rows() if row.labels.pid == pid]


def names(row: Row) -> list[str]:
    return [frame.name for frame in row.user or () if isinstance(frame, Frame)]


@SHOWN
def test_waits_have_their_shares_and_whole_stacks(naps: str) -> None:
    with running([naps]) as pid, looking() as profiler:
        look(profiler, 1)
        profile = look(profiler, 120)
    elapsed_ns = round(1e9 * float(str(profile.about["elapsed_s"])))
    weights: Counter[str] = Counter()
    for row in rows_of(profile, pid):
        assert row.labels.process_name == "naps"
        for name in {"nap_thirty", "nap_seventy", "sleep_on"} & {*names(row)}:
            weights[name] += row.weight
            assert names(row)[-1] in ("_start", "__clone3", "clone3", "__clone"), "a whole stack"
    assert weights["sleep_on"] == pytest.approx(elapsed_ns, rel=0.001), "it never ran"
    nap_ns = weights["nap_thirty"] + weights["nap_seventy"]
    waited_ns = sum(row.weight for row in rows_of(profile, pid)) - weights["sleep_on"]
    assert 0.7 * elapsed_ns < waited_ns <= 1.001 * elapsed_ns
    if not slow_host():  # there a look takes as long as a nap: it has run again, and is not read
        assert nap_ns > 0.7 * elapsed_ns
        assert 0.15 < weights["nap_thirty"] / nap_ns < 0.45, "0.3, within three errors of 120 looks"
    assert profile.loss.seen > 240


def test_every_kernel_shows_how_long_a_thread_sleeps_and_where(naps: str) -> None:
    with running([naps]) as pid, looking() as profiler:
        look(profiler, 1)
        profile = look(profiler, 5)
    elapsed_ns = 1e9 * float(str(profile.about["elapsed_s"]))
    longest = max(rows_of(profile, pid), key=lambda row: row.weight)
    assert longest.weight == pytest.approx(elapsed_ns, rel=0.001)
    assert longest.labels.state == "S"
    assert any("sys_" in frame.name for frame in longest.kernel or () if isinstance(frame, Frame))


@SHOWN
def test_windows_keep_what_sleeps_through_them_and_forget_the_rest(naps: str) -> None:
    with looking() as profiler:
        with running([naps]) as pid:
            first, second = look(profiler, 3), None
            profiler.window()
            second = look(profiler, 3)
            profiler.window()
        gone = pid
        third = look(profiler, 3)
        known = profiler._waits._known  # type: ignore[union-attr]  # noqa: SLF001
        assert gone not in {place.pid for place, _ in known.values()}
    for profile in (first, second):
        assert any("sleep_on" in names(row) for row in rows_of(profile, pid))
    assert not rows_of(third, gone)


@SHOWN
def test_what_executed_another_program_has_its_names(naps: str, tmp_path: Path) -> None:
    go = tmp_path / "go"
    words = ["sh", "-c", f"echo ready; while [ ! -e {go} ]; do sleep 0.1; done; exec {naps}"]
    with running(words) as pid, looking() as profiler:
        before = look(profiler, 2, 0.1)
        profiler.window()
        go.touch()
        end = time.monotonic() + 60
        while "naps" not in Path(f"/proc/{pid}/comm").read_text():
            assert time.monotonic() < end
            profiler.wait(at_most_s=0.05)
        time.sleep(0.2)
        after = look(profiler, 2)
    assert not any("sleep_on" in names(row) for row in rows_of(before, pid))
    assert any("sleep_on" in names(row) for row in rows_of(after, pid))


@SHOWN
def test_threads_of_another_user_are_read_by_a_child_that_ends(naps: str) -> None:
    children = Path(f"/proc/self/task/{os.getpid()}/children")
    before = {*children.read_text().split()}
    with running([naps], user=65534, group=65534, extra_groups=[]) as pid, looking() as profiler:
        profile = look(profiler, 5)
        left = {*children.read_text().split()} - before - {str(pid)}
    assert any("sleep_on" in names(row) for row in rows_of(profile, pid))
    assert not left


@SHOWN
def test_waits_for_the_gil_say_so_above_pythons_functions() -> None:
    with running([sys.executable, "-c", FOR_THE_GIL]) as pid, looking() as profiler:
        look(profiler, 2)
        profile = look(profiler, 60)
    rows = rows_of(profile, pid)
    waiting = [row for row in rows if row.labels.state == "gil"]
    for row in waiting:
        if row.user:  # who waits for it wakes up every 5 ms, and may have been faster
            assert names(row)[0] == "[GIL]"
            assert "spin" in names(row)
    elapsed_ns = 1e9 * float(str(profile.about["elapsed_s"]))
    assert 0.5 * elapsed_ns < sum(row.weight for row in waiting) < 3 * elapsed_ns, "two of three"
    resting = [row for row in rows if "rest" in names(row)]
    assert sum(row.weight for row in resting) == pytest.approx(elapsed_ns, rel=0.001)
    assert {row.labels.state for row in resting} == {"S"}


def test_what_only_the_look_keeps_from_its_cpu_does_not_wait() -> None:
    """A thread that has a CPU to itself, but for us, has no time in the run queue."""
    cpu = min(os.sched_getaffinity(0))
    before = os.sched_getaffinity(0)
    words = [sys.executable, "-c", "print('ready', flush=True)\nwhile True: pass"]
    try:
        os.sched_setaffinity(0, {cpu})
        with running(words, sleeps=False) as pid, looking() as profiler:
            profile = look(profiler, 40)
    finally:
        os.sched_setaffinity(0, before)
    elapsed_ns = 1e9 * float(str(profile.about["elapsed_s"]))
    ready = sum(row.weight for row in rows_of(profile, pid) if row.labels.state == "R")
    crowd = len(os.sched_getaffinity(0)) == 1 or os.getloadavg()[0] > 1.5
    assert ready < (0.7 if crowd else 0.2) * elapsed_ns


@SHOWN
def test_a_crowd_of_threads_takes_bounded_time_and_memory() -> None:
    """More threads that ran than are read: the others count, without a user stack."""
    with running([sys.executable, "-c", CROWD]) as pid, looking() as profiler:
        look(profiler, 1)
        profile = look(profiler, 2, 0.5)
    elapsed_ns = 1e9 * float(str(profile.about["elapsed_s"]))
    assert sum(row.weight for row in rows_of(profile, pid)) > 500 * elapsed_ns
    lost = {cause.name: cause.lost for cause in profile.loss.causes}
    assert lost["user_not_read"] >= 2 * (600 - 256 - 50)
    assert lost["threads_left_out"] == 0


@SHOWN
def test_a_crowd_that_sleeps_on_is_read_in_turns() -> None:
    words = [sys.executable, "-c", CROWD.replace("0.2", "1000")]
    counts = []
    with running(words) as pid, looking() as profiler:
        for _ in range(5):
            rows = rows_of(look(profiler, 1), pid)
            counts.append(sum(row.marks.times for row in rows if "rest" in names(row)))
    assert counts[0] <= 256
    assert counts[-1] == 600


@SHOWN
def test_what_ran_while_it_was_read_is_listed_again(naps: str) -> None:
    """To ask who rests changes nothing: who ran is whole in the next list, wherever it is then."""
    with running([naps]) as pid, SleeperList() as sleepers:
        (napping,) = {*map(int, os.listdir(f"/proc/{pid}/task"))} - {pid}
        time.sleep(0.2)
        assert {pid, napping} <= {sleeper.tid for sleeper in sleepers.read()}
        time.sleep(0.3)
        resting = sleepers.resting()
        whole = {sleeper.tid for sleeper in sleepers.read() if sleeper.where}
    assert pid in resting - whole
    assert napping in whole - resting


@SHOWN
def test_one_process_is_listed_alone(naps: str) -> None:
    with running([naps]) as pid, running([naps]) as other, SleeperList() as sleepers:
        assert {sleeper.pid for sleeper in sleepers.read(pid)} == {pid}
        assert other in sleepers.resting() | {sleeper.tid for sleeper in sleepers.read()}
        assert sleepers.resting(pid) <= {*map(int, os.listdir(f"/proc/{pid}/task"))}


@SHOWN
def test_threads_that_wake_hundreds_of_times_a_second_are_read() -> None:
    """They have run again before all other threads are read, so their process is listed again."""
    words = [sys.executable, "-c", CROWD.replace("600", "300")]
    busy = [sys.executable, "-c", CROWD.replace("600", "2").replace("0.2", "0.002")]
    with (
        running(words),
        running(busy) as pid,
        WindowProfiler(ProfileOptions(frequency=19), with_addresses=False) as profiler,
    ):
        profiler.sample_waits(20, by_thread=True)
        look(profiler, 2)
        rows = rows_of(look(profiler, 15), pid)
    read = sum(row.marks.times for row in rows if "rest" in names(row))
    seen = sum(row.marks.times for row in rows if row.labels.tid != pid)
    assert read > (0.2 if slow_host() else 0.5) * seen, (read, seen)


def test_looks_that_cost_much_still_come(naps: str) -> None:
    with (
        running([naps]),
        WindowProfiler(ProfileOptions(frequency=19), with_addresses=False) as profiler,
    ):
        profiler.sample_waits(20, share=1e-9, longest_s=0.3)
        waits = profiler._waits  # noqa: SLF001
        assert waits is not None
        for _ in range(3):
            waits.look()
        assert waits.due_s < time.monotonic() + 2 * 0.3
