"""`-p` means processes alone, and `--tree` with their children: the same in every command."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter as Counts
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from purebpf.measure import target_ends
from purebpf.measure.latency import Latency, Request
from purebpf.tools.latency import CallLatency, LatencyOptions
from purebpf.tools.lock import LockOptions, UserLocks
from purebpf.tools.offcpu import OffCpu, OffCpuOptions
from purebpf.tools.record import Recorder, RecordOptions
from purebpf.tools.sampleip.request import SampleIpOptions
from purebpf.tools.sampleip.session import Sampler
from purebpf.tools.stat import Counter, StatOptions
from purebpf.tools.summary import Summary, SummaryOptions
from purebpf.tools.trace import TraceOptions, Traces
from purebpf.tools.wall import Wall, WallOptions
from purebpf.wire.perf_data_reader import PerfData
from purebpf.wire.perf_records import Sample
from tests.support.nightly import by_day

pytestmark = pytest.mark.needs("bpf", "perf_event")

CALLS = 103
PROGRAM = f"""
import os, sys, threading, time

def wait():
    lock = threading.Lock()
    lock.acquire()
    thread = threading.Thread(target=lock.acquire)
    thread.start()
    time.sleep(0.05)
    lock.release()
    thread.join()

def work():
    wait()
    for _ in range({CALLS}):
        os.getppid()
    began = time.process_time()
    while time.process_time() - began < 0.05:
        time.sleep(0.001)
        sum(range(20000))

asked, ask = os.pipe()
done, say = os.pipe()
before = os.fork()
if not before:
    while os.read(asked, 1):
        work()
        os.write(say, b"!")
print(before, flush=True)
for line in sys.stdin:
    os.write(ask, b"!")
    after = os.fork()
    if not after:
        work()
        os._exit(0)
    work()
    os.waitpid(after, 0)
    os.read(done, 1)
    print(after, flush=True)
"""
"""A process with a child of before the run, and at each line one that it starts then."""


class Family(NamedTuple):
    process: subprocess.Popen[str]
    before: int

    def work(self) -> int:
        """All work once; the child that was started for it."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())


@contextmanager
def running() -> Iterator[Family]:
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        before = int(process.stdout.readline())
        try:
            yield Family(process, before)
        finally:
            os.kill(before, signal.SIGKILL)
            process.kill()


Seen = Callable[[Family, bool, Path], tuple[set[int], int]]
"""Measures a family while it works, with its tree or not: whom it saw, and the new child."""


def offcpu(family: Family, tree: bool, _: Path) -> tuple[set[int], int]:
    with OffCpu(OffCpuOptions(pids=(family.process.pid,), tree=tree)) as tracer:
        child = family.work()
        return {row.labels.pid for row in tracer.stop().rows()}, child


def wall(family: Family, tree: bool, _: Path) -> tuple[set[int], int]:
    with Wall(WallOptions(pids=(family.process.pid,), tree=tree)) as tracer:
        child = family.work()
        return {row.labels.pid for row in tracer.stop().profile.rows()}, child


def summary(family: Family, tree: bool, _: Path) -> tuple[set[int], int]:
    options = SummaryOptions(
        pids=(family.process.pid,), tree=tree, mode="process", calls=("getppid",)
    )
    with Summary(options) as tracer:
        child = family.work()
        groups = [group for group in tracer.stop().groups if group.rows]
    assert {row.statistics.calls for group in groups for row in group.rows} == {CALLS}
    return {group.label.number for group in groups}, child


def runqlat(family: Family, tree: bool, _: Path) -> tuple[set[int], int]:
    with Latency(Request("run_queue", "pid", pids=(family.process.pid,), tree=tree)) as tracer:
        child = family.work()
        return {each.group.number for each in tracer.stop().distributions}, child


def record(family: Family, tree: bool, folder: Path) -> tuple[set[int], int]:
    path = folder / "perf.data"
    options = RecordOptions(pids=(family.process.pid,), tree=tree, output=str(path))
    with Recorder(options) as recorder:
        child = family.work()
        recorder.stop()
    data = path.read_bytes()
    file = PerfData(lambda at, size: data[at : at + size], len(data), str(path))
    records = [placed.record for placed in file.records()]
    return {each.pid for each in records if isinstance(each, Sample)}, child


def sampleip(family: Family, tree: bool, _: Path) -> tuple[set[int], int]:
    options = SampleIpOptions(counting=True, pids=(family.process.pid,), tree=tree)
    with Sampler(options) as sampler:
        child = family.work()
        rows = sampler.stop()[1].rows
    return {pid for _address, pid, _count, _place in rows if pid}, child


def trace(family: Family, tree: bool, _: Path) -> tuple[set[int], int]:
    options = TraceOptions(pids=(family.process.pid,), tree=tree, events=("getppid",))
    with Traces(options) as tracer:
        child = family.work()
        calls = [
            event for event in (*tracer.drain(), *tracer.stop().events) if hasattr(event, "words")
        ]
    counts = Counts(call.task.pid for call in calls)
    assert set(counts.values()) == {CALLS}
    return set(counts), child


def latency(family: Family, tree: bool, _: Path) -> tuple[set[int], int]:
    pair = "syscalls:sys_enter_getppid,syscalls:sys_exit_getppid"
    options = LatencyOptions(pairs=(pair,), pids=(family.process.pid,), tree=tree, by="process")
    with CallLatency(options) as tracer:
        child = family.work()
        tracer.stop()
        rows = tracer.rows
    assert {row.calls for row in rows} == {CALLS}
    return {row.pid for row in rows}, child


def lock(family: Family, tree: bool, _: Path) -> tuple[set[int], int]:
    options = LockOptions(pids=(family.process.pid,), tree=tree, by="process")
    with UserLocks(options) as tracer:
        child = family.work()
        tracer.stop()
        return {row.pid for row in tracer.rows}, child


of_user_locks = pytest.param(lock, marks=pytest.mark.needs("task_pt_regs", "atomic_fetch"))


@pytest.mark.parametrize(
    "measure",
    [
        *by_day(
            [offcpu, wall, summary, runqlat, record, sampleip, trace, latency],
            [offcpu, runqlat, record, trace],
        ),
        of_user_locks,
    ],
)
@pytest.mark.parametrize("tree", [False, True])
def test_children_belong_to_a_tree_alone(measure: Seen, tree: bool, tmp_path: Path) -> None:
    with running() as family:
        seen, child = measure(family, tree, tmp_path)
        family_pids = {family.process.pid, family.before, child}
    assert seen == (family_pids if tree else {family.process.pid})


def test_a_child_may_end_as_the_run_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    gone = 4_194_304
    monkeypatch.setattr(target_ends, "descendants", lambda pids: {*pids, gone})
    with Latency(Request("run_queue", pids=(os.getpid(),), tree=True)) as tracer:
        tracer.stop()
    with Counter(StatOptions((("task-clock",),), pids=(os.getpid(),), tree=True)) as counter:
        counter.stop()


@pytest.mark.alone  # a BPF program at the tracepoint would hide its passes
@pytest.mark.needs("perf", "tracefs")
@pytest.mark.parametrize(("tree", "processes"), [(False, 1), (True, 3)])
def test_stat_counts_children_of_a_tree_alone(tree: bool, processes: int) -> None:
    groups = (("syscalls:sys_enter_getppid",),)
    with (
        running() as family,
        Counter(StatOptions(groups, pids=(family.process.pid,), tree=tree)) as counter,
    ):
        family.work()
        (count,) = counter.stop().counts
    assert count.value == processes * CALLS
