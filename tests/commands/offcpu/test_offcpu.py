"""What is measured off the CPU is what the threads did."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from purebpf.measure.sched_trace import Request, ThreadTime, Times
from purebpf.results import Profile, Row
from purebpf.results.formats.json import document
from purebpf.tools.offcpu import OffCpu, OffCpuOptions
from tests.commands.conftest import ROOT, Workloads, thread_ids
from tests.support.nightly import by_day

pytestmark = pytest.mark.needs("bpf", "gcc")

SLOW = os.environ.get("PUREBPF_SLOW_HOST") == "1"
CHILDREN = 40 if SLOW else 400


def run(options: OffCpuOptions, seconds: float = 0.3) -> Profile:
    """Trace for a while, as a library user would."""
    with OffCpu(options) as waiting:
        time.sleep(seconds)
        return waiting.stop()


def of_command(*command: str, **options: object) -> Profile:
    """Trace a command from its execve to its end."""
    from purebpf.measure.child import Child

    asked = OffCpuOptions(command=command, **options)  # type: ignore[arg-type]
    with Child(command) as child, OffCpu(asked, child.pid) as waiting:
        child.start()
        waiting.wait(child)
        return waiting.stop()


def names(row: Row) -> list[str]:
    """The functions of a row, leaf first."""
    return [getattr(entry, "name", "?") for entry in (*(row.kernel or ()), *(row.user or ()))]


def test_a_sleep_is_where_it_should_be() -> None:
    found = of_command("sleep", "1")
    sleep = max(found.rows(), key=lambda row: row.weight)
    assert sleep.labels.comm == "sleep"
    assert sleep.weight >= 990_000_000
    assert sleep.labels.state == "S"
    assert "do_nanosleep" in names(sleep)[0]


def test_tracing_and_switching_are_not_in_the_stacks() -> None:
    for row in of_command("sleep", "0.1").rows():
        leaf = names(row)[0]
        assert not leaf.startswith(("bpf_", "__bpf_", "__traceiter_", "__schedule"))
        assert leaf != "schedule"


def test_every_child_appears(workloads: Workloads) -> None:
    found = of_command(workloads.path("wait"), "forks", str(CHILDREN), "50")
    slept: Counter[int] = Counter()
    for row in found.rows():
        if any("nanosleep" in name for name in names(row)):
            slept[row.labels.pid] += row.weight
    assert len(slept) == CHILDREN
    # one that was preempted on its way to sleep slept less, and not once too often
    assert sum(weight >= 49_000_000 for weight in slept.values()) > 0.9 * CHILDREN


@pytest.mark.parametrize("of_users", [True, False], ids=["user threads", "kernel threads"])
def test_only_one_kind_of_threads(workloads: Workloads, of_users: bool) -> None:
    with workloads.running("wait", "naps", "0", "2000") as pid:
        found = run(OffCpuOptions(user_threads_only=of_users, kernel_threads_only=not of_users))
    assert any(row.labels.pid == pid for row in found.rows()) == of_users
    kernel_threads = [row for row in found.rows() if row.labels.comm.startswith("rcu_")]
    assert bool(kernel_threads) != of_users


def times_of(pid: int, threshold_ns: int | None, seconds: float = 0.3) -> Times:
    """All the time of a process, on the CPU and off it."""
    request = Request(
        pids=(pid,), states="RSDITtPW", threshold_ns=threshold_ns, on_cpu=True, frequency=49
    )
    with ThreadTime(request) as traced:
        time.sleep(seconds)
        return traced.stop()


@pytest.mark.needs("perf_event")
@pytest.mark.parametrize("threshold_ms", [0, 1, 100, 10_000])
def test_no_nanosecond_is_counted_twice(workloads: Workloads, threshold_ms: int) -> None:
    with workloads.running("wait", "naps", "0", "2000") as pid:
        found = times_of(pid, threshold_ms * 1_000_000)
    total = sum(span.duration_ns for span in found.spans.values())
    total += sum(span.duration_ns for _, span in found.singles)
    # what was being switched while the run began or ended is the rest
    assert total == pytest.approx(found.ended_ns - found.started_ns, abs=100_000)
    naps = [span for place, span in found.spans.items() if place.state == "S"]
    if threshold_ms == 0:
        assert len(found.singles) > 10
        assert all(place.state == "+" or place.is_open for place in found.spans)
    if threshold_ms == 10_000:
        assert not found.singles
        assert sum(span.times for span in naps) > 10


def test_single_waits_come_in_the_order_of_time(workloads: Workloads) -> None:
    with workloads.running("wait", "naps", "0", "2000") as pid:
        found = run(OffCpuOptions(pids=(pid,), one_by_one=True, threshold_ms=0))
    tree = json.loads(document(found))
    ends = [sample["time_ns"] for sample in tree["samples"]]
    assert len(ends) > 10
    assert ends == sorted(ends)
    assert {sample["pid"] for sample in tree["samples"]} == {pid}
    assert all(row["inflight"] for row in tree["stacks"])


def test_a_wait_that_never_ends_is_shown(workloads: Workloads) -> None:
    with workloads.running("wait", "three") as pid:
        found = run(OffCpuOptions(pids=(pid,)))
    elapsed_ns = found.about["ended_ns"] - found.about["started_ns"]  # type: ignore[operator]
    still = {row.labels.comm: row for row in found.rows() if row.marks.is_open}
    assert still.keys() == {"reader", "wait"}
    for row in still.values():
        assert row.weight == elapsed_ns
        assert row.labels.state == "S"
    assert any("pipe_read" in name for name in names(still["reader"]))
    assert any("futex" in name for name in names(still["wait"]))


@pytest.mark.needs("task_pt_regs")
def test_who_sleeps_all_the_time_has_a_user_stack(workloads: Workloads) -> None:
    with workloads.running("wait", "three") as pid:
        found = run(OffCpuOptions(pids=(pid,)))
    (reader,) = [row for row in found.rows() if row.labels.comm == "reader"]
    assert reader.user
    assert names(reader)[len(reader.kernel or ())].endswith("read")


def test_inflight_shows_nothing_else(workloads: Workloads) -> None:
    with workloads.running("wait", "naps", "0", "1000"):
        found = run(OffCpuOptions(inflight=True, threshold_ms=0, one_by_one=True))
    assert found.rows()
    assert all(row.marks.is_open for row in found.rows())


def test_the_holder_of_a_lock_is_the_waker(workloads: Workloads) -> None:
    rounds = 5 if SLOW else 20
    found = of_command(
        workloads.path("wait"), "convoy", "3", str(rounds), waker=True, call_graph="fp"
    )
    woken = [
        row
        for row in found.rows()
        if row.marks.waker
        and row.marks.waker.comm == "holder"
        and "queue" in names(row)
        and not any("barrier" in name for name in names(row))
    ]
    # five milliseconds in each round, but for a waiter that was late
    assert sum(row.weight for row in woken) > rounds * 5_000_000 / 2
    heaviest = max(woken, key=lambda row: row.weight)
    assert heaviest.labels.comm in ("waiter", "wait")
    assert heaviest.marks.waker
    stack = [getattr(entry, "name", "?") for entry in heaviest.marks.waker.user or ()]
    assert "hold" in stack
    assert 0 <= heaviest.marks.runnable < heaviest.weight


def test_state_selects_waits_by_the_state_of_the_task(workloads: Workloads) -> None:
    with workloads.running("wait", "three") as pid:
        found = {
            letter: {
                row.labels.state for row in run(OffCpuOptions(pids=(pid,), states=letter)).rows()
            }
            for letter in "DS"
        }
    # "?": it was off the CPU when the run began, and moved before it was looked at
    assert found["D"] <= {"?"}
    assert {"S"} <= found["S"] <= {"S", "?"}


def test_preemption_is_there_when_asked_for(workloads: Workloads) -> None:
    cpu = min(os.sched_getaffinity(0))
    with workloads.running("still") as pid:
        for tid in os.listdir(f"/proc/{pid}/task"):
            os.sched_setaffinity(int(tid), {cpu})
        without = run(OffCpuOptions(pids=(pid,)))
        preempted = run(OffCpuOptions(pids=(pid,), preempt=True))
    assert "R" not in {row.labels.state for row in without.rows()}
    # two threads that never wait share a CPU: each is off for at least half of the time
    elapsed_ns = preempted.about["ended_ns"] - preempted.about["started_ns"]  # type: ignore[operator]
    waited = sum(row.weight for row in preempted.rows() if row.labels.state == "R")
    assert waited > 0.9 * elapsed_ns


def test_min_and_max_select_waits_by_their_length(workloads: Workloads) -> None:
    with workloads.running("wait", "naps", "0", "5000") as pid:
        short = run(OffCpuOptions(pids=(pid,), max_us=1000))
        long = run(OffCpuOptions(pids=(pid,), min_us=5000))
    assert not [row for row in short.rows() if any("nanosleep" in name for name in names(row)[:1])]
    assert sum(row.weight for row in long.rows()) > 0.2e9


def test_a_thread_alone(workloads: Workloads) -> None:
    with workloads.running("wait", "three") as pid:
        (tid,) = thread_ids(pid, "reader")
        found = run(OffCpuOptions(tids=(tid,)))
    assert {row.labels.tid for row in found.rows()} == {tid}


@pytest.mark.parametrize("cpu", [0, 1])
def test_only_what_left_the_cpu_counts(workloads: Workloads, cpu: int) -> None:
    if os.sched_getaffinity(0) < {0, 1}:
        pytest.skip("one CPU only")
    program = str(workloads.path("wait"))
    with subprocess.Popen(["taskset", "-c", "0", program, "naps", "1000", "300000"]) as naps:
        try:
            time.sleep(0.2)
            found = run(OffCpuOptions(pids=(naps.pid,), cpus=(cpu,)), 0.5)
        finally:
            naps.kill()
    assert (found.total > 0.3e9) if cpu == 0 else not found.rows()


def test_processes_that_are_gone_are_named(workloads: Workloads) -> None:
    found = of_command(workloads.path("wait"), "naps", "5", "10000")
    napping = [row for row in found.rows() if "nanosleep" in names(row)[0]]
    assert napping
    unnamed = [row for row in napping if not {"nap", "naps", "main"} & {*names(row)}]
    assert not unnamed, found.about


def test_a_ring_that_is_too_small_loses_no_time(workloads: Workloads) -> None:
    request = Request(states="RSDITtPW", threshold_ns=0, on_cpu=True, frequency=49, ring_size=4096)
    with (
        workloads.running("wait", "naps", "0", "200") as pid,
        ThreadTime(request._replace(pids=(pid,))) as traced,
    ):
        time.sleep(0.5)  # the ring is not read during this
        found = traced.stop()
    assert found.stats["ring_full"] > 0
    total = sum(span.duration_ns for span in found.spans.values())
    total += sum(span.duration_ns for _, span in found.singles)
    assert total == pytest.approx(found.ended_ns - found.started_ns, abs=100_000)


def test_a_full_table_is_reported(workloads: Workloads) -> None:
    with workloads.running("wait", "naps", "0", "1000"):
        found = run(OffCpuOptions(hash_storage_size=1))
    lost = {cause.name: cause.lost for cause in found.loss.causes}
    assert lost["map_full"] > 0
    assert found.loss.any


def test_a_full_stack_table_is_reported(workloads: Workloads) -> None:
    with workloads.running("wait", "naps", "0", "1000"):
        found = run(OffCpuOptions(stack_storage_size=1))
    lost = {cause.name: cause.lost for cause in found.loss.causes}
    assert lost["stacks_lost"] > 0
    assert any(row.kernel is None for row in found.rows())


def test_nothing_is_lost_while_two_processes_switch_as_fast_as_they_can(
    workloads: Workloads,
) -> None:
    times = 500 if SLOW else 20_000
    found = of_command(workloads.path("wait"), "pingpong", str(times))
    lost = {cause.name: cause.lost for cause in found.loss.causes}
    # some hosts hide switches, and this is not the only thing that runs
    for allowed in ("switches_missed", "truncated", "undescribed", "births_missed"):
        lost.pop(allowed)
    assert not any(lost.values()), lost
    reads = sum(
        row.marks.times for row in found.rows() if any("pipe_read" in name for name in names(row))
    )
    assert reads > times / 4  # a byte that is there already is not waited for


@pytest.mark.any_kernel
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_run_and_prints(workloads: Workloads, number: signal.Signals) -> None:
    command = [sys.executable, "-m", "purebpf", "offcpu", "-d", "-p"]
    pipe = subprocess.PIPE
    with (
        workloads.running("wait", "three") as pid,
        subprocess.Popen(
            [*command, str(pid)], stdout=pipe, stderr=pipe, text=True, cwd=ROOT
        ) as traced,
    ):
        assert traced.stdout is not None
        assert traced.stdout.readline().endswith("... Hit Ctrl-C to end.\n")
        traced.send_signal(number)
        output, errors = traced.communicate()
    assert traced.returncode == 0
    assert "reader" in output
    assert "        ~" in output
    assert "\nlost: " in errors
    assert "\ncost: " in errors


def test_a_target_that_dies_is_not_an_error(workloads: Workloads) -> None:
    command = [sys.executable, "-m", "purebpf", "offcpu", "-f", "1", "--", "sh", "-c", "kill -9 $$"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 128 + signal.SIGKILL
    assert "lost: " in done.stderr


NAPS = """
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static void *nap(void *p) { for (;;) sleep(1000); return p; }
int main(int argc, char **argv)
{
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 16384);
    for (long n = 0; n < atol(argv[argc - 1]); n++) {
        pthread_t thread;
        if (pthread_create(&thread, &small, nap, NULL))
            return 1;
    }
    puts("there");
    fflush(stdout);
    pause();
}
"""


PEAK = """
import resource, subprocess, sys
status = subprocess.run(sys.argv[1:]).returncode
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr)
sys.exit(status)
"""
"""Runs a command and says how much memory it had, in KiB. A child of the tests themselves would
count their memory, which it has until its execve(2).
"""


@pytest.mark.slow
@pytest.mark.parametrize("command", by_day(["offcpu", "wall"], ["wall"]))
def test_thousands_of_threads_take_little_memory(command: str, tmp_path: Path) -> None:
    """A copied stack takes up to 64 KiB: 4,001 of them at once were 260 MB."""
    threads = 4001
    source, program = tmp_path / "naps.c", tmp_path / "naps"
    source.write_text(NAPS)
    subprocess.run(["gcc", "-O1", "-pthread", source, "-o", program], check=True)
    with subprocess.Popen([program, str(threads)], stdout=subprocess.PIPE, text=True) as napping:
        assert napping.stdout is not None
        assert napping.stdout.readline() == "there\n"
        arguments = ("-p", str(napping.pid), "--format", "json", "3")
        words = (sys.executable, "-m", "purebpf", command, *arguments)
        measured = subprocess.run(
            [sys.executable, "-c", PEAK, *words], capture_output=True, text=True, check=False
        )
        napping.kill()
    assert measured.returncode == 0, measured.stderr
    assert int(measured.stderr.split()[-1]) < 150_000
    found = json.loads(measured.stdout)
    assert len({row["tid"] for row in found["stacks"]}) == threads + 1
