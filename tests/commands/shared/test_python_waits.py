"""Python frames of threads that wait, and waits for the GIL: exact, on every CPython."""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from purebpf.results import Profile, Row
from purebpf.tools.offcpu import OffCpu
from purebpf.tools.offcpu import OffCpuOptions as OffOptions
from purebpf.tools.profile import ProfileOptions, Profiler
from purebpf.tools.wall import Wall, WallOptions
from tests.support.environment import run
from tests.support.programs import pythons
from tests.support.programs.python_programs import running

pytestmark = pytest.mark.needs("bpf", "perf_event", "task_pt_regs", "vmlinux_btf")
EVERY = [pytest.param(each, id=f"{each.version[1]}-{each.path}") for each in pythons.with_gil()]

# PyDLL does not release the GIL for a call: `keeps` sleeps with it.
WAITS = """
import ctypes, threading, time
libc = ctypes.PyDLL(None)
numbers = {}

def keeps():
    numbers["keeper"] = threading.get_native_id()
    while True:
        libc.usleep(60000)
        time.sleep(0.001)

def wants():
    numbers["waiter"] = threading.get_native_id()
    while True:
        time.sleep(0.001)

def sleeps():
    time.sleep(1000)

for function in keeps, wants, sleeps:
    threading.Thread(target=function, daemon=True).start()
while len(numbers) < 2:
    time.sleep(0.01)
time.sleep(0.2)
print(numbers["keeper"], numbers["waiter"], flush=True)
sleeps()
"""


def python_names(row: Row) -> list[str]:
    """Innermost first; "" for one of which the name was lost, which the profile counts."""
    frames = [frame for frame in row.user or () if frame.kind == "python"]
    return [getattr(frame, "name", "") for frame in frames]


def unnamed(profile: Profile) -> int:
    """Python frames of which the profile says that it lost the name."""
    return sum(cause.lost for cause in profile.loss.causes if cause.name == "python_unnamed")


def in_function(profile: Profile, function: str, state: str) -> int:
    """Nanoseconds in a state below a function."""
    return sum(
        row.weight
        for row in profile.rows()
        if row.labels.state == state and function in python_names(row)
    )


@pytest.mark.parametrize("python", pythons.params(pythons.with_gil()))
def test_waits_for_the_gil_name_its_holder(python: pythons.Python, tmp_path: Path) -> None:
    with running(python.path, WAITS, tmp_path) as (pid, numbers):
        keeper, waiter = map(int, numbers)
        with OffCpu(OffOptions(pids=(pid,), waker=True)) as waiting:
            waiting.wait(at_most_s=0.8)
            profile = waiting.stop()
    elapsed_ns = 1e9 * float(str(profile.about["elapsed_s"]))
    # else they wait for a CPU
    assert in_function(profile, "wants", "gil") > elapsed_ns / 4
    asleep_ns = in_function(profile, "keeps", "S")  # with the GIL, not for it
    assert asleep_ns > elapsed_ns / 4
    assert in_function(profile, "keeps", "gil") < asleep_ns / 2
    assert in_function(profile, "sleeps", "gil") == 0
    holders: Counter[str] = Counter()
    woken: Counter[bool] = Counter()
    for row in profile.rows():
        if row.labels.state == "gil" and row.labels.tid == waiter and row.user:
            holders[row.user[0].name] += row.weight
            waker = row.marks.waker
            if waker is not None and waker.tid == keeper:
                woken["keeps" in python_names(waker)] += 1
    (first, weight), *_ = holders.most_common(1)
    assert first == f"[GIL held by {keeper}]", holders
    assert weight > 0.8 * holders.total()
    assert woken[True] >= 1
    behind = {  # the frame of the GIL
        tuple(python_names(row)[1:2])
        for row in profile.rows()
        if row.labels.state == "gil" and row.user
    }
    assert behind <= {("wants",), ("keeps",)} | ({("",)} if unnamed(profile) else set())


def test_threads_that_sleep_all_the_time_have_python_frames(tmp_path: Path) -> None:
    with (
        running(sys.executable, WAITS, tmp_path) as (pid, _),
        OffCpu(OffOptions(pids=(pid,))) as waiting,
    ):
        waiting.wait(at_most_s=0.3)
        profile = waiting.stop()
    stacks = [python_names(row) for row in profile.rows() if row.marks.is_open]
    assert ["sleeps", "<module>"] in stacks
    assert any(names[:2] == ["sleeps", "Thread.run"] for names in stacks)


def test_the_wall_clock_has_the_gil_as_a_state(tmp_path: Path) -> None:
    with (
        running(sys.executable, WAITS, tmp_path) as (pid, numbers),
        Wall(WallOptions(pids=(pid,))) as clock,
    ):
        clock.wait(at_most_s=1)
        result = clock.stop()
    threads = {thread.labels.tid: thread for thread in result.threads}
    keeper, waiter = (threads[int(number)] for number in numbers)
    assert waiter.gil_ns > waiter.wall_ns / 2
    assert keeper.gil_ns < keeper.wall_ns / 4
    assert in_function(result.profile, "wants", "gil") >= waiter.gil_ns


def test_options_of_offcpu(tmp_path: Path) -> None:
    with running(sys.executable, WAITS, tmp_path) as (pid, _):
        options = ("--format", "json", "-U", "-p", str(pid), "1")
        gil, lines, without = (
            run("offcpu", *extra, *options).stdout
            for extra in (("--state", "gil"), ("--lines",), ("--no-python",))
        )
    states = {row["state"] for row in json.loads(gil)["stacks"]}
    assert "gil" in states
    assert states <= {"gil", "?"}  # off since before the run
    line = 1 + WAITS.splitlines().index("def sleeps():") + 1
    assert f'"line":{line}' in lines.replace(" ", "")
    assert '"gil"' not in without
    assert "wants" not in without


HOLDS = """
import hashlib, threading, time
data = b"x" * 3_000_000

def holds():
    while True:
        sum(range(100))

def released():
    while True:
        hashlib.sha256(data).digest()

threading.Thread(target=holds, daemon=True).start()
threading.Thread(target=released, daemon=True).start()
time.sleep(0.2)
print(flush=True)
time.sleep(1000)
"""


@pytest.mark.parametrize("python", [*EVERY[:1], *EVERY[-1:]])
def test_gil_counts_the_thread_that_holds_it(python: pythons.Python, tmp_path: Path) -> None:
    with running(python.path, HOLDS, tmp_path) as (pid, _):
        options = ProfileOptions(
            pids=(pid,), frequency=pythons.FREQUENCY, gil=True, kernel_stacks=False
        )
        with Profiler(options) as profiler:
            deadline = time.monotonic() + 20
            while time.monotonic() < deadline:  # until both had a CPU
                profiler.wait(at_most_s=0.5)
                profiler.take()
                so_far = profiler.so_far()
                if so_far.total > 20 and so_far.about["without_gil"]:
                    break
            profile = profiler.stop()
    functions: Counter[str] = Counter()
    for row in profile.rows():
        functions[(python_names(row) or ["?"])[0]] += row.weight
        # hashing 3 MB goes on without the GIL; digest(), which calls SHA256_Final(), keeps it
        names = [getattr(frame, "name", "") for frame in row.user]
        assert "SHA256_Update" not in names, names
    assert functions["holds"] > 0.8 * functions.total(), functions
    assert profile.about["without_gil"]


def test_gil_needs_python_frames() -> None:
    result = run("profile", "--gil", "--call-graph", "fp", "1")
    assert result.returncode == 1
    assert "--gil" in result.stderr
