"""`--comm`: processes of a name that start, take another name and end during the run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter as Counts
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import pytest

from purebpf.measure.latency import Latency, Request
from purebpf.tools.exec import ExecOptions, Processes
from purebpf.tools.offcpu import OffCpu, OffCpuOptions
from purebpf.tools.profile.request import ProfileOptions
from purebpf.tools.profile.session import Profiler
from purebpf.tools.record import Recorder, RecordOptions
from purebpf.tools.sampleip.request import SampleIpOptions
from purebpf.tools.sampleip.session import Sampler
from purebpf.tools.summary import Summary, SummaryOptions
from purebpf.tools.trace import TraceOptions, Traces
from purebpf.tools.wall import Wall, WallOptions
from purebpf.wire.perf_data_reader import PerfData
from purebpf.wire.perf_records import Sample
from tests.support.environment import run, said

pytestmark = pytest.mark.needs("bpf", "perf_event")

CALLS = 103
NAME = f"of{os.getpid()}"
WORK = f"""
import ctypes, json, os, sys, threading, time

def rename(name):
    ctypes.CDLL(None).prctl(15, name.encode(), 0, 0, 0)

def work():
    time.sleep(0.03)
    for _ in range({CALLS}):
        os.getppid()
    began = time.process_time()
    while time.process_time() - began < 0.08:
        sum(range(20000))
"""
PROGRAM = f"""{WORK}
name, path = sys.argv[1:]

def named():
    "Work under the name, then under another."
    rename(name)
    work()
    rename("another")
    work()

def executed():
    "Take the name by execve."
    work()
    os.execv(path, [path, "-S", "-c", {WORK!r} + "work()"])

def child_of_named():
    "Fork under the name: the child inherits it, and goes by another one later."
    rename(name)
    child = os.fork()
    work()
    if not child:
        rename("another")
        work()
        os._exit(0)
    os.waitpid(child, 0)
    return child

def thread():
    "Only another thread has the name."
    def run():
        rename(name)
        work()
    one = threading.Thread(target=run)
    one.start()
    one.join()

def run(action):
    read, write = os.pipe()
    pid = os.fork()
    if not pid:
        os.set_inheritable(write, False)
        result = action()
        os.write(write, json.dumps(result).encode())
        os._exit(0)
    os.close(write)
    answer = os.read(read, 99)
    os.waitpid(pid, 0)
    return [pid, json.loads(answer or "null")]

print(json.dumps([run(action) for action in (named, executed, child_of_named, thread)]))
"""


class Pids(NamedTuple):
    """The processes of a run."""

    named: int
    executed: int
    parent: int
    child: int
    thread: int

    @property
    def wanted(self) -> set[int]:
        """All that had the name at some time."""
        return {*self[:4]}


def run_program(folder: Path) -> Pids:
    path = folder / NAME
    if not path.is_symlink():
        path.symlink_to(sys.executable)
    ran = subprocess.run(
        [sys.executable, "-S", "-c", PROGRAM, NAME, str(path)],
        stdout=subprocess.PIPE,
        check=True,
    )
    (named, _), (executed, _), (parent, child), (thread, _) = json.loads(ran.stdout)
    return Pids(named, executed, parent, child, thread)


Seen = Callable[[Path], tuple[Pids, set[int]]]


def offcpu(folder: Path) -> tuple[Pids, set[int]]:
    with OffCpu(OffCpuOptions(comm=NAME)) as tracer:
        pids = run_program(folder)
        return pids, {row.labels.pid or 0 for row in tracer.stop().rows()}


def wall(folder: Path) -> tuple[Pids, set[int]]:
    with Wall(WallOptions(comm=NAME)) as tracer:
        pids = run_program(folder)
        return pids, {row.labels.pid or 0 for row in tracer.stop().profile.rows()}


def runqlat(folder: Path) -> tuple[Pids, set[int]]:
    with Latency(Request("run_queue", "pid", comm=NAME)) as tracer:
        pids = run_program(folder)
        return pids, {each.group.number for each in tracer.stop().distributions}


def profile(folder: Path) -> tuple[Pids, set[int]]:
    with Profiler(ProfileOptions(comm=NAME, frequency=499)) as profiler:
        pids = run_program(folder)
        return pids, {row.labels.pid or 0 for row in profiler.stop().rows()}


def record(folder: Path) -> tuple[Pids, set[int]]:
    path = folder / "perf.data"
    with Recorder(RecordOptions(comm=NAME, output=str(path))) as recorder:
        pids = run_program(folder)
        recorder.stop()
    data = path.read_bytes()
    file = PerfData(lambda at, size: data[at : at + size], len(data), str(path))
    records = [placed.record for placed in file.records()]
    return pids, {each.pid for each in records if isinstance(each, Sample)}


def sampleip(folder: Path) -> tuple[Pids, set[int]]:
    with Sampler(SampleIpOptions(counting=True, comm=NAME)) as sampler:
        pids = run_program(folder)
        rows = sampler.stop()[1].rows
    return pids, {pid for _address, pid, _count, _place in rows if pid}


@pytest.mark.nightly
@pytest.mark.parametrize("seen", [offcpu, wall, runqlat, profile, record, sampleip])
def test_processes_that_come_and_go_are_measured(seen: Seen, tmp_path: Path) -> None:
    pids, found = seen(tmp_path)
    assert found == pids.wanted


def counted(pids: Pids) -> dict[int, int]:
    """The calls of each process while it had the name."""
    return dict.fromkeys(pids.wanted, CALLS)


def test_calls_count_while_a_process_has_the_name(tmp_path: Path) -> None:
    options = SummaryOptions(comm=NAME, mode="process", calls=("getppid",))
    with Summary(options) as tracer:
        pids = run_program(tmp_path)
        groups = [group for group in tracer.stop().groups if group.rows]
    calls = {group.label.number: group.rows[0].statistics.calls for group in groups}
    assert calls == counted(pids)


def trace(options: TraceOptions, folder: Path) -> tuple[Pids, Counts[int]]:
    with Traces(options) as tracer:
        pids = run_program(folder)
        events: Iterable[object] = (*tracer.drain(), *tracer.stop().events)
    return pids, Counts(event.task.pid for event in events if hasattr(event, "words"))  # type: ignore[attr-defined]


def test_calls_are_traced_while_a_process_has_the_name(tmp_path: Path) -> None:
    pids, calls = trace(TraceOptions(comm=NAME, events=("getppid",)), tmp_path)
    assert calls == counted(pids)


def test_children_stay_with_tree(tmp_path: Path) -> None:
    pids, calls = trace(TraceOptions(comm=NAME, tree=True, events=("getppid",)), tmp_path)
    twice = {pids.named: 2 * CALLS, pids.child: 2 * CALLS}
    assert calls == counted(pids) | twice


def test_each_execution_under_the_name_is_shown(tmp_path: Path) -> None:
    with Processes(ExecOptions(comm=NAME)) as session:
        pids = run_program(tmp_path)
        events = [*session.drain(), *session.stop().events]
    executed = [event.task.pid for event in events if type(event).__name__ == "Executed"]
    assert executed == [pids.executed]


def test_the_kernel_keeps_fifteen_bytes_of_a_name(tmp_path: Path) -> None:
    name = f"of-{os.getpid()}-with-a-long-name"
    (tmp_path / name).symlink_to("/bin/true")
    with Processes(ExecOptions(comm=name)) as session:
        subprocess.run([tmp_path / name], check=True)
        events = [*session.drain(), *session.stop().events]
    assert [type(event).__name__ for event in events].count("Executed") == 1


@pytest.mark.parametrize("line", [("triage", "1"), ("stat", "1"), ("dump",)])
def test_a_command_that_waits_for_no_process_says_once_that_there_is_none(
    line: tuple[str, ...],
) -> None:
    name, *rest = line
    done = run(name, "--comm", "nothing-like-it", *rest)
    assert (done.returncode, done.stdout) == (1, "")
    assert said(done) == f"purebpf {name}: no process is called 'nothing-like-it'"
