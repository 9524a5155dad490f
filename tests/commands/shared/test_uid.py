"""`--uid`: tasks that run as a user, from the moment that they become it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter as Counts
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from purebpf.measure.latency import Latency, Request
from purebpf.tools.exec import ExecOptions, Processes
from purebpf.tools.offcpu import OffCpu, OffCpuOptions
from purebpf.tools.profile.request import ProfileOptions
from purebpf.tools.profile.session import Profiler
from purebpf.tools.sampleip.request import SampleIpOptions
from purebpf.tools.sampleip.session import Sampler
from purebpf.tools.stat import Counter, StatOptions
from purebpf.tools.summary import Summary, SummaryOptions
from purebpf.tools.trace import TraceOptions, Traces
from purebpf.tools.wall import Wall, WallOptions

pytestmark = pytest.mark.needs("bpf", "perf_event")

USER = 64_000 + os.getpid() % 1000
"""That nothing else runs as."""
CALLS = 103
PROGRAM = f"""
import json, os, sys, time

def work():
    time.sleep(0.03)
    for _ in range({CALLS}):
        os.getppid()
    began = time.process_time()
    while time.process_time() - began < 0.08:
        sum(range(20000))

def run(user):
    child = os.fork()
    if not child:
        work()  # as root
        os.setuid(user)
        work()
        os.execv("/bin/true", ["true"])
    os.waitpid(child, 0)
    return child

print(json.dumps([run(user) for user in map(int, sys.argv[1:])]))
"""


class Pids(NamedTuple):
    """A process that becomes the user, and one that becomes another."""

    wanted: int
    other: int


def run_program() -> Pids:
    ran = subprocess.run(
        [sys.executable, "-S", "-c", PROGRAM, str(USER), str(USER + 1000)],
        stdout=subprocess.PIPE,
        check=True,
    )
    return Pids(*json.loads(ran.stdout))


Seen = Callable[[], tuple[Pids, set[int]]]


def offcpu() -> tuple[Pids, set[int]]:
    with OffCpu(OffCpuOptions(uid=USER)) as tracer:
        pids = run_program()
        return pids, {row.labels.pid or 0 for row in tracer.stop().rows()}


def wall() -> tuple[Pids, set[int]]:
    with Wall(WallOptions(uid=USER)) as tracer:
        pids = run_program()
        return pids, {row.labels.pid or 0 for row in tracer.stop().profile.rows()}


def runqlat() -> tuple[Pids, set[int]]:
    with Latency(Request("run_queue", "pid", uid=USER)) as tracer:
        pids = run_program()
        return pids, {each.group.number for each in tracer.stop().distributions}


def profile() -> tuple[Pids, set[int]]:
    with Profiler(ProfileOptions(uid=USER, frequency=499)) as profiler:
        pids = run_program()
        return pids, {row.labels.pid or 0 for row in profiler.stop().rows()}


def sampleip() -> tuple[Pids, set[int]]:
    with Sampler(SampleIpOptions(counting=True, uid=USER)) as sampler:
        pids = run_program()
        rows = sampler.stop()[1].rows
    return pids, {pid for _address, pid, _count, _place in rows if pid}


at_night = pytest.mark.nightly


@pytest.mark.parametrize(
    "seen",
    [
        offcpu,
        profile,
        *(pytest.param(each, marks=at_night) for each in (wall, runqlat, sampleip)),
    ],
)
def test_only_tasks_of_the_user_are_measured(seen: Seen) -> None:
    pids, found = seen()
    assert found == {pids.wanted}


def test_calls_count_from_the_change_of_the_user_on() -> None:
    with Summary(SummaryOptions(uid=USER, mode="process", calls=("getppid",))) as tracer:
        pids = run_program()
        groups = [group for group in tracer.stop().groups if group.rows]
    calls = {group.label.number: group.rows[0].statistics.calls for group in groups}
    assert calls == {pids.wanted: CALLS}


def test_page_faults_of_others_do_not_count() -> None:
    with Summary(SummaryOptions(uid=USER, mode="process", faults="min")) as tracer:
        pids = run_program()
        table = tracer.stop()
    assert {group.label.number for group in table.groups if group.faults} == {pids.wanted}


def test_calls_are_traced_from_the_change_of_the_user_on() -> None:
    with Traces(TraceOptions(uid=USER, events=("getppid",))) as tracer:
        pids = run_program()
        events = [*tracer.drain(), *tracer.stop().events]
    assert Counts(each.task.pid for each in events if hasattr(each, "words")) == {
        pids.wanted: CALLS
    }


def test_what_the_user_executes_is_shown() -> None:
    with Processes(ExecOptions(uid=USER)) as session:
        pids = run_program()
        events = [*session.drain(), *session.stop().events]
    executed = [event.task.pid for event in events if type(event).__name__ == "Executed"]
    assert executed == [pids.wanted]


def test_stat_counts_the_processes_that_the_user_has() -> None:
    waits = "import os, sys; os.setuid(int(sys.argv[1])); print(flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-S", "-c", waits, str(USER)], stdin=-1, stdout=-1
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.readline()
        options = StatOptions(groups=(("task-clock",),), uid=USER, by="thread")
        with Counter(options) as counter:
            process.stdin.close()
            process.wait()
            counts = counter.stop().counts
    (count,) = counts
    assert count.value
    assert str(process.pid) in count.key


def test_a_user_without_a_process_is_told(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "purebpf", "stat", "--uid", str(USER), "0.1"],
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert ran.returncode == 1
    assert f"no process belongs to user {USER}" in ran.stderr
