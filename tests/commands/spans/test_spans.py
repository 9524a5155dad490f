"""runqlat and cpudist against what the kernel itself counts of a thread's turns."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from purebpf.observe.instruments.latency_histograms import Spans
from purebpf.observe.instruments.task_filter import TaskFilter
from purebpf.results.shape.distribution import Distribution
from purebpf.results.shape.histogram import bucket_bounds
from tests.commands.conftest import ROOT, Workloads
from tests.commands.waiting import waiting

pytestmark = pytest.mark.needs("bpf", "vmlinux_btf", "gcc")

MEASURES = ("run_queue", "on_cpu", "off_cpu")
TOLERANCE_NS = 200_000 if os.environ.get("PUREBPF_SLOW_HOST") else 100_000
"""For each turn: the kernel reads its clock elsewhere than the program does, and a CPU that idles
takes a while to wake, which the kernel does not count as waiting."""

TRIES = 40


class Turns(NamedTuple):
    """What the kernel says of a thread: nanoseconds, and how often it left a CPU."""

    on_cpu_ns: int
    waited_ns: int
    switches: int

    @classmethod
    def of(cls, tid: int) -> Turns:
        """From /proc, of a thread that sleeps."""
        times = Path(f"/proc/{tid}/schedstat").read_text().split()
        status = Path(f"/proc/{tid}/status").read_text()
        switches = re.findall(r"ctxt_switches:\s+(\d+)", status)
        return cls(int(times[0]), int(times[1]), sum(map(int, switches)))

    def since(self, before: Turns) -> Turns:
        """What came after `before`."""
        return Turns(*(now - then for now, then in zip(self, before, strict=True)))


@contextmanager
def spans(measure: str, whose: TaskFilter, by: str = "", groups: int = 64) -> Iterator[Spans]:
    with Spans(measure, by=by, whose=whose, groups=groups) as found:
        found.start()
        yield found


def found(measured: Spans) -> list[Distribution]:
    measured.stop()
    return measured.distributions(measured.read(), {}, {})


def lost(measured: Spans) -> dict[str, int]:
    subject = ("begun", "ended", "given_up", "open_at_start", "in_flight")
    return {
        name: count for name, count in measured.stats().items() if count and name not in subject
    }


def observed(
    workloads: Workloads, measure: str, *arguments: object, by: str = ""
) -> tuple[Distribution, Turns]:
    """What was measured of a workload, and what the kernel says of it.

    A kernel may be built so that it switches without tracing it, now and then. It is reported, and
    the run repeated.
    """
    for _ in range(TRIES):
        with (
            waiting(workloads, *arguments) as workload,
            spans(measure, TaskFilter(pids=(workload.pid,)), by) as measured,
        ):
            before = Turns.of(workload.pid)
            workload.act()
            turns = Turns.of(workload.pid).since(before)
            (everything,) = found(measured)
            if not measured.stats()["switches_missed"]:
                assert not lost(measured)
                return everything, turns
    pytest.skip(f"each of {TRIES} runs had switches that this kernel did not trace")


@pytest.mark.parametrize("measure", MEASURES)
def test_every_turn_is_counted_once(workloads: Workloads, measure: str) -> None:
    everything, turns = observed(workloads, measure, "sleeps", 211, 1_000_000)
    assert turns.switches > 200  # a sleep may be over before the thread has left its CPU
    # the sleep that the run began in has no beginning, and the last one no end
    assert everything.durations == turns.switches - (measure == "off_cpu")


@pytest.mark.parametrize(("measure", "field"), [("run_queue", 1), ("on_cpu", 0)])
def test_times_are_those_of_the_scheduler(workloads: Workloads, measure: str, field: int) -> None:
    everything, turns = observed(workloads, measure, "sleeps", 211, 1_000_000)
    difference = abs(everything.total_ns - turns[field])
    assert difference < turns[field] / 20 + TOLERANCE_NS * turns.switches


def test_sleeps_are_in_their_bucket(workloads: Workloads) -> None:
    everything, _ = observed(workloads, "off_cpu", "sleeps", 101, 5_000_000)
    long = sum(
        count
        for bucket, count in enumerate(everything.buckets)
        if bucket_bounds(bucket)[1] > 5000  # microseconds
    )
    assert long >= 101
    assert everything.total_ns >= 101 * 5_000_000


@pytest.mark.parametrize("measure", MEASURES)
def test_children_are_followed_and_others_are_not(workloads: Workloads, measure: str) -> None:
    with (
        waiting(workloads, "forks", 7) as workload,
        spans(measure, TaskFilter(pids=(workload.pid,), tree=True), by="pid") as measured,
    ):
        workload.act()
        groups = found(measured)
    pids = {each.group.number for each in groups}
    if measure == "off_cpu":  # a child may run through without leaving
        assert workload.pid in pids
        assert len(pids) <= 8
    else:
        assert len(pids) == 8
    assert {each.group.name for each in groups} == {"syscalls"}


def test_threads_are_counted_separately(workloads: Workloads) -> None:
    with (
        waiting(workloads, "threads", 5) as workload,
        spans("on_cpu", TaskFilter(pids=(workload.pid,)), by="tid") as measured,
    ):
        workload.act()
        groups = [each.group for each in found(measured)]
    assert len({group.number for group in groups}) == len(groups) == 6
    # a thread names itself, and may be preempted before it has
    assert {group.name for group in groups} == {"syscalls", "worker"}
    assert (workload.pid, "syscalls") in {(group.number, group.name) for group in groups}


def test_one_thread_alone(workloads: Workloads) -> None:
    with (
        waiting(workloads, "threads", 5) as workload,
        spans("on_cpu", TaskFilter(tids=(workload.pid,)), by="tid") as measured,
    ):
        workload.act()
        assert [each.group.number for each in found(measured)] == [workload.pid]


@pytest.mark.parametrize("by", ["pidns", "cgroup"])
def test_groups_that_everybody_is_in(workloads: Workloads, by: str) -> None:
    group, turns = observed(workloads, "run_queue", "sleeps", 31, 1_000_000, by=by)
    assert group.durations == turns.switches
    if by == "pidns":
        assert group.group.number == Path("/proc/self/ns/pid").stat().st_ino


def test_other_cpus_are_left_out(workloads: Workloads) -> None:
    with (
        waiting(workloads, "sleeps", 31, 1_000_000) as workload,
        spans("run_queue", TaskFilter(pids=(workload.pid,), cpus=(4000,))) as measured,
    ):
        workload.act()
        (everything,) = found(measured)
    assert everything.durations == 0


def test_groups_without_room_are_reported(workloads: Workloads) -> None:
    with (
        waiting(workloads, "forks", 40) as workload,
        spans(
            "on_cpu", TaskFilter(pids=(workload.pid,), tree=True), by="pid", groups=1
        ) as measured,
    ):
        workload.act()
        found(measured)
        assert measured.stats()["rows_full"] > 0
        assert measured.stats()["names_full"] > 0


def test_intervals_add_up(workloads: Workloads) -> None:
    with (
        waiting(workloads, "sleeps", 31, 1_000_000) as workload,
        spans("run_queue", TaskFilter(pids=(workload.pid,))) as measured,
    ):
        before = Turns.of(workload.pid)
        first = measured.read()
        workload.act()
        turns = Turns.of(workload.pid).since(before)
        second = measured.read()
        (between,) = measured.distributions(second, first, {})
        (after,) = measured.distributions(measured.read(), second, {})
        missed = measured.stats()["switches_missed"]
    assert 0 <= turns.switches - between.durations <= 2 * missed
    assert after.durations == after.total_ns == 0


def run(command: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", "purebpf", command, *arguments]
    return subprocess.run(line, capture_output=True, text=True, check=False, cwd=ROOT, timeout=100)


@pytest.mark.parametrize(
    ("command", "title"),
    [
        (["runqlat"], "Tracing run queue latency... Hit Ctrl-C to end."),
        (["cpudist"], "Tracing on-CPU time... Hit Ctrl-C to end."),
        (["cpudist", "-O"], "Tracing off-CPU time... Hit Ctrl-C to end."),
    ],
)
def test_a_command_and_its_children(workloads: Workloads, command: list[str], title: str) -> None:
    workload = [workloads.path("syscalls"), "forks", "3"]
    result = run(*command, "--format", "json", "-P", "--", *workload)
    assert result.returncode == 0
    first, second, *_ = result.stderr.splitlines()
    assert first == title
    assert second.startswith("lost: ")
    document = json.loads(result.stdout)
    assert document["unit_ns"] == 1000
    for group in document["groups"]:
        assert group["group"]["comm"] == "syscalls"
        assert group["count"] == sum(count for *_, count in group["buckets"])
        least = sum(low * count for low, _, count in group["buckets"])
        most = sum(high * count for _, high, count in group["buckets"])
        assert least <= group["total_ns"] <= most


@pytest.mark.any_kernel
def test_results_come_as_often_as_asked() -> None:
    result = run("runqlat", "-mT", "0.2", "3")
    assert result.returncode == 0
    assert len(re.findall(r"^\d\d:\d\d:\d\d$", result.stdout, re.MULTILINE)) == 3


@pytest.mark.any_kernel
def test_the_status_is_the_commands() -> None:
    assert run("runqlat", "--", "sh", "-c", "exit 7").returncode == 7
    assert run("cpudist", "--", "no-such-command").returncode == 127


@pytest.mark.any_kernel
def test_a_target_that_is_not_there() -> None:
    result = run("cpudist", "-p", "4194000")
    assert result.returncode == 1
    assert "no process or thread has ID 4194000" in result.stderr
