"""The wall clock of a thread adds up."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from purebpf.measure.sched_trace import Request, ThreadTime
from purebpf.results.build.offcpu_rows import ON_CPU
from purebpf.tools import offcpu, profile
from purebpf.tools.wall import Wall, WallOptions
from purebpf.tools.wall.session import WallResult
from tests.commands.conftest import ROOT, Workloads, thread_ids

pytestmark = pytest.mark.needs("bpf", "perf_event", "gcc")

SECONDS = 1.0


def run(options: WallOptions, seconds: float = SECONDS) -> WallResult:
    """Trace for a while, as a library user would."""
    with Wall(options) as clock:
        time.sleep(seconds)
        return clock.stop()


def elapsed_ns(found: WallResult) -> int:
    about = found.profile.about
    return about["ended_ns"] - about["started_ns"]  # type: ignore[operator, no-any-return]


def test_every_threads_time_is_explained(workloads: Workloads) -> None:
    with workloads.running("wait", "three") as pid:
        found = run(WallOptions(pids=(pid,)))
    threads = {each.labels.comm: each for each in found.threads}
    assert threads.keys() == {"spinner", "reader", "wait"}
    for each in threads.values():
        assert each.wall_ns == pytest.approx(elapsed_ns(found), rel=0.01)
    assert threads["spinner"].off_ns < 0.05 * threads["spinner"].wall_ns
    for name in ("reader", "wait"):
        assert threads[name].off_ns == pytest.approx(elapsed_ns(found), rel=0.01)
        assert threads[name].on_ns == 0


def test_the_rows_of_a_thread_add_up_to_its_wall_clock(workloads: Workloads) -> None:
    with workloads.running("wait", "three") as pid:
        found = run(WallOptions(pids=(pid,)))
    weights: Counter[tuple[int, str]] = Counter()
    for row in found.profile.rows():
        weights[row.labels.tid, row.marks.kind] += row.weight
    for each in found.threads:
        tid = each.labels.tid
        assert weights[tid, "on-CPU"] == each.on_ns
        assert weights[tid, "off-CPU"] == each.off_ns
        assert weights[tid, "run-queue"] == each.queued_ns


def test_time_on_the_cpu_is_the_kernels_own(workloads: Workloads) -> None:
    def on_cpu() -> tuple[int, int]:
        return time.monotonic_ns(), int(schedstat.read_text().split()[0])

    with workloads.running("wait", "three") as pid:
        (tid,) = thread_ids(pid, "spinner")
        schedstat = Path(f"/proc/{pid}/task/{tid}/schedstat")
        with Wall(WallOptions(tids=(tid,))) as clock:
            began, before = on_cpu()
            time.sleep(SECONDS)
            ended, after = on_cpu()
            found = clock.stop()
    (thread,) = found.threads
    # the kernel adds up at ticks and switches; a turn that it has not added yet may be missing
    share = (after - before) / (ended - began)
    assert thread.on_ns / thread.wall_ns == pytest.approx(share, abs=0.2)


def test_profile_and_offcpu_add_up_as_well(workloads: Workloads) -> None:
    frequency = 999
    with workloads.running("wait", "three") as pid:
        sampled = profile.ProfileOptions(pids=(pid,), frequency=frequency)
        waited = offcpu.OffCpuOptions(pids=(pid,), preempt=True)
        with profile.Profiler(sampled) as profiler, offcpu.OffCpu(waited) as waiting:
            time.sleep(SECONDS)
            off, on = waiting.stop(), profiler.stop()
    wall_s = (off.about["ended_ns"] - off.about["started_ns"]) / 1e9  # type: ignore[operator]
    elapsed_s = float(str(on.about["elapsed_s"]))
    waits: Counter[str] = Counter()
    runs: Counter[str] = Counter()
    for row in off.rows():
        waits[row.labels.comm] += row.weight
    for row in on.rows():
        runs[row.labels.comm] += row.weight
    for thread in ("spinner", "reader", "wait"):
        running = runs[thread] / frequency / elapsed_s
        share = waits[thread] / 1e9 / wall_s + running
        # alone on its CPU the spinner has every sample; else they are drawn, and the profile has
        # a moment more at both ends
        idle = max(1 - running, 0)
        drawn = 4 * (running * idle / (frequency * elapsed_s)) ** 0.5
        ends = min((elapsed_s - wall_s) / elapsed_s, running, idle)
        assert share == pytest.approx(1, abs=0.01 + drawn + ends), thread


ON_AND_OFF = """
import time
while True:
    time.sleep(0.001)
    end = time.monotonic() + 0.1
    while time.monotonic() < end:
        pass
"""


@pytest.mark.parametrize("cpu", [0, 1])
def test_what_is_running_counts_on_its_cpu(cpu: int) -> None:
    if os.sched_getaffinity(0) < {0, 1}:
        pytest.skip("one CPU only")
    request = Request(cpus=(cpu,), on_cpu=True, frequency=49)
    everywhere = os.sched_getaffinity(0)
    with subprocess.Popen(["taskset", "-c", "0", sys.executable, "-c", ON_AND_OFF]) as spinner:
        try:
            with ThreadTime(request._replace(pids=(spinner.pid,))) as run:
                os.sched_setaffinity(0, {1})  # who looks there sees CPU 0 at work
                time.sleep(0.3)
                looks = [run.so_far().spans for _ in range(50)]
        finally:
            os.sched_setaffinity(0, everywhere)
            spinner.kill()
    running = [place for spans in looks for place in spans if place.state == ON_CPU]
    assert bool([place for place in running if place.is_open]) == (cpu == 0)


def test_text_has_a_table_and_marks(workloads: Workloads) -> None:
    command = [sys.executable, "-m", "purebpf", "wall", "-p"]
    with workloads.running("wait", "three") as pid:
        done = subprocess.run(
            [*command, str(pid), "--all", "0.3"],
            capture_output=True,
            text=True,
            cwd=ROOT,
            check=True,
        )
    title, _, *stacks = done.stdout.splitlines()
    table = next(at for at, line in enumerate(stacks) if line.split()[:1] == ["wall"])
    heads, *rest = stacks[table:]
    assert title == f"Tracing the wall clock of PID [{pid}], sampling at 99 Hertz for 0.3 secs."
    assert heads.split() == ["wall", "on-CPU", "off-CPU", "run-queue", "thread"]
    # each was there all the time: their order is chance
    assert sorted(line.split()[-2] for line in rest[:3]) == ["reader", "spinner", "wait"]
    assert any(" on-CPU" in line or " run-queue R" in line for line in stacks[:table])
    assert any(" off-CPU S" in line for line in stacks[:table])
    assert "\nlost: " in done.stderr


@pytest.mark.any_kernel
def test_folded_frames_are_marked(workloads: Workloads) -> None:
    command = [sys.executable, "-m", "purebpf", "wall", "-f", "-p"]
    with workloads.running("wait", "three") as pid:
        done = subprocess.run(
            [*command, str(pid), "0.3"], capture_output=True, text=True, cwd=ROOT, check=True
        )
    for line in done.stdout.splitlines():
        thread, *frames = line.rpartition(" ")[0].split(";")
        assert thread.partition("/")[0] in ("spinner", "reader", "wait")
        assert {frame.rpartition("_[")[2] for frame in frames} in ({"on]"}, {"off]"}, {"rq]"})


@pytest.mark.any_kernel
def test_json_has_the_threads(workloads: Workloads) -> None:
    command = [sys.executable, "-m", "purebpf", "wall", "--format", "json", "-p"]
    with workloads.running("wait", "three") as pid:
        done = subprocess.run(
            [*command, str(pid), "0.3"], capture_output=True, text=True, cwd=ROOT, check=True
        )
    found = json.loads(done.stdout)
    assert found["total"] == sum(each["wall_ns"] for each in found["threads"])
    kinds = {row["kind"] for row in found["stacks"]}
    assert "off-CPU" in kinds
    assert kinds & {"on-CPU", "run-queue"}
    assert any(row.get("inflight") for row in found["stacks"])


def test_a_command_and_its_children(workloads: Workloads) -> None:
    command = [sys.executable, "-m", "purebpf", "wall", "--format", "json", "--"]
    done = subprocess.run(
        [*command, workloads.path("wait"), "forks", "5", "100"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=True,
    )
    threads = json.loads(done.stdout)["threads"]
    assert len(threads) == 6
    assert all(each["wall_ns"] > 100_000_000 for each in threads)
