"""lock --userspace against a program of which threads wait for a lock of a known kind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from purebpf.results.model.intervals import Interval
from purebpf.tools.lock import LockOptions, UserLocks, UserRow, UserWait
from tests.support.environment import ROOT, run

pytestmark = pytest.mark.needs(
    "bpf", "perf_event", "task_pt_regs", "vmlinux_btf", "gcc", "x86_64", "atomic_fetch"
)
THREADS = 3
FUTEX = "202 "
"""How /proc/PID/task/TID/syscall begins for a thread that waits in futex(2)."""
SPINS = """
import sys, threading, time
def spin(until):
    while time.monotonic() < until:
        sum(range(1000))
print(sys.stdin.readline(), flush=True)
until = time.monotonic() + 0.5
threads = [threading.Thread(target=spin, args=(until,)) for _ in range(2)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
"""


class Held:
    """The program while it runs."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.pid = process.pid

    def step(self) -> None:
        assert self.process.stdin
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def read(self) -> str:
        assert self.process.stdout
        return self.process.stdout.readline()

    def hold(self) -> int:
        """Until all threads wait; when that was seen, in nanoseconds."""
        self.step()
        said = int(self.read())
        if said != self.pid:  # the program runs in a PID namespace of its own, below unshare
            assert said == 1
            children = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text()
            self.pid = int(children)
        tasks = Path(f"/proc/{self.pid}/task")
        while True:
            calls = [(tasks / tid / "syscall").read_text() for tid in os.listdir(tasks)]
            if sum(call.startswith(FUTEX) for call in calls) == THREADS:
                return time.monotonic_ns()
            time.sleep(0.001)

    def give(self) -> tuple[int, int, int]:
        """Let go: when it began, when it let go, and when all threads had ended."""
        self.step()
        began_ns, given_ns, ended_ns = map(int, self.read().split())
        return began_ns, given_ns, ended_ns


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("lock") / "user_locks"
    source = ROOT / "tests/data/user_locks.c"
    subprocess.run(["gcc", "-O2", "-pthread", "-o", target, source], check=True)
    return target


@contextmanager
def held(program: Path, kind: str, prefix: tuple[str, ...] = ()) -> Iterator[Held]:
    words = [*prefix, str(program), kind, str(THREADS)]
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
        try:
            yield Held(process)
        finally:
            process.kill()


def measure(program: Path, kind: str, **options: object) -> tuple[UserRow, tuple[int, ...]]:
    with held(program, kind) as process:
        asked = LockOptions(pids=(process.pid,), types=(kind,))._replace(**options)
        with UserLocks(asked) as locks:
            seen_ns = process.hold()
            times = process.give()
            ending = locks.stop()
    assert not ending.loss.any
    (row,) = locks.rows
    return row, (seen_ns, *times)


@pytest.mark.parametrize("kind", ["mutex", "rwlock", "semaphore", "condition"])
def test_waits_are_counted_timed_and_named(program, kind):
    row, (seen_ns, began_ns, given_ns, ended_ns) = measure(program, kind)
    assert (row.type, row.name) == (kind, "wait_here")
    assert (row.waits, row.open, row.timeouts) == (THREADS, 0, 0)
    assert row.most_waiting == THREADS
    assert row.handed_on == THREADS - 1
    assert sum(row.buckets) == THREADS
    assert THREADS * (given_ns - seen_ns) <= row.total_ns <= THREADS * (ended_ns - began_ns)
    assert 0 < row.woken <= THREADS
    assert 0 < row.wake_ns <= row.woken * (ended_ns - given_ns)


def test_the_owner_of_a_mutex_is_the_thread_that_holds_it(program):
    with (
        held(program, "mutex") as process,
        UserLocks(LockOptions(pids=(process.pid,), by="owner")) as locks,
    ):
        process.hold()
        locks.stop()
        (row,) = locks.rows
    assert (row.pid, row.tid, row.name) == (process.pid, process.pid, "user_locks")
    assert (row.waits, row.open) == (0, THREADS)


def test_the_owner_in_a_pid_namespace_has_the_number_that_we_see(program):
    isolated = ("unshare", "--pid", "--fork", "--kill-child")
    with (
        held(program, "mutex", prefix=isolated) as process,
        UserLocks(LockOptions(by="owner")) as locks,
    ):
        process.hold()
        locks.stop()
    assert process.pid != process.process.pid
    row = next(row for row in locks.rows if row.pid == process.pid)
    assert (row.tid, row.name) == (process.pid, "user_locks")


def test_a_lock_has_the_name_of_its_variable(program):
    with (
        held(program, "mutex") as process,
        UserLocks(LockOptions(pids=(process.pid,), by="lock")) as locks,
    ):
        process.hold()
        locks.stop()
        (row,) = locks.rows
    assert row.name == "mutex in user_locks"
    assert row.pid == process.pid


def test_a_lock_of_a_process_that_has_ended_has_its_name_too(program):
    with held(program, "mutex") as process, UserLocks(LockOptions(by="lock")) as locks:
        process.hold()
        process.give()
        process.process.communicate()
        locks.stop()
    names = {row.name for row in locks.rows if row.pid == process.pid}
    assert names == {"mutex in user_locks"}


@pytest.mark.parametrize("by", ["process", "thread", "cgroup"])
def test_waits_are_grouped(program, by):
    with (
        held(program, "mutex") as process,
        UserLocks(LockOptions(pids=(process.pid,), by=by)) as locks,
    ):
        process.hold()
        process.give()
        locks.stop()
    waits = [row.waits for row in locks.rows]
    assert sum(waits) == THREADS
    assert len(waits) == (THREADS if by == "thread" else 1)


def test_stacks_lead_to_the_wait_and_to_who_let_go(program):
    row, _ = measure(program, "semaphore", stacks=True)
    assert "wait_here" in row.stack
    assert "give" in row.waker


def test_slow_waits_are_shown_one_by_one(program):
    with held(program, "mutex") as process:
        options = LockOptions(pids=(process.pid,), slower_ms=0, stacks=True)
        with UserLocks(options) as locks:
            process.hold()
            process.give()
            ending = locks.stop()
    assert not ending.loss.any
    (row,) = locks.rows
    waits = [event for event in ending.events if isinstance(event, UserWait)]
    assert sum(wait.took_ns for wait in waits) == row.total_ns
    assert max(wait.took_ns for wait in waits) == row.max_ns
    assert {(wait.pid, wait.type, wait.caller) for wait in waits} == {
        (process.pid, "mutex", "wait_here")
    }
    assert {wait.name for wait in waits} == {"mutex in user_locks"}
    assert len({wait.tid for wait in waits}) == THREADS
    assert process.pid in {wait.owner_tid for wait in waits}
    assert all("wait_here" in wait.stack for wait in waits)
    assert any("give" in wait.waker for wait in waits)


def test_waits_that_are_not_slow_are_added_up_only(program):
    with (
        held(program, "mutex") as process,
        UserLocks(LockOptions(pids=(process.pid,), slower_ms=100_000)) as locks,
    ):
        process.hold()
        process.give()
        ending = locks.stop()
    assert ending.events == ()
    assert sum(row.waits for row in locks.rows) == THREADS


def test_waits_begin_on_the_cpus_that_are_asked_for(program):
    here, *others = sorted(os.sched_getaffinity(0))
    if not others:
        pytest.skip("one CPU")
    for cpu, waits in ((here, THREADS), (others[0], 0)):
        with held(program, "mutex") as process:
            os.sched_setaffinity(process.pid, {here})
            with UserLocks(LockOptions(pids=(process.pid,), cpus=(cpu,))) as locks:
                process.hold()
                process.give()
                locks.stop()
        assert sum(row.waits for row in locks.rows) == waits


def test_intervals_add_up_to_all(program):
    with (
        held(program, "mutex") as process,
        UserLocks(LockOptions(pids=(process.pid,), interval_s=0.1)) as locks,
    ):
        process.hold()
        events: list[object] = []
        while len(events) < 2:
            assert not locks.wait()
            events += locks.drain()
        process.give()
        ending = locks.stop()
    (row,) = locks.rows
    intervals = [event for event in (*events, *ending.events) if isinstance(event, Interval)]
    rows = [part for interval in intervals for part in interval.rows]
    assert sum(part.total_ns for part in rows) == row.total_ns
    assert sum(part.waits for part in rows) == row.waits == THREADS


def test_waits_for_work_are_added_up_apart(program):
    with (
        held(program, "condition") as process,
        UserLocks(LockOptions(pids=(process.pid,))) as locks,
    ):
        began_ns = time.monotonic_ns()
        process.hold()
        locks.stop()
    assert not [row for row in locks.rows if row.type == "condition"]
    waits, total_ns = locks.others["condition"]
    assert waits == THREADS
    assert 0 < total_ns <= THREADS * (time.monotonic_ns() - began_ns)


def test_threads_of_python_wait_for_the_gil():
    pipe = subprocess.PIPE
    words = [sys.executable, "-c", SPINS]
    with subprocess.Popen(words, stdin=pipe, stdout=pipe, text=True) as process:
        options = LockOptions(pids=(process.pid,), types=("GIL",))
        with UserLocks(options) as locks:
            process.communicate("\n")
            locks.stop()
    assert {row.type for row in locks.rows} == {"GIL"}
    assert any(row.name.startswith("spin (<string>:") for row in locks.rows)


def test_json_has_every_field(program):
    with held(program, "mutex") as process:
        run_s = ("0.2", "--userspace", "--by", "owner", "--format", "json", "-p", str(process.pid))
        process.hold()  # waits that begin before the run are not seen
        done = run("lock", *run_s)
    summary, loss = map(json.loads, done.stdout.splitlines())
    assert (summary["event"], summary["by"], summary["rows"]) == ("summary", "owner", [])
    assert loss["event"] == "loss"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--format", "folded", "--by", "owner"), "--by owner excludes it"),
        (("--format", "folded", "-i", "1"), "-i excludes it"),
        (("--format", "csv", "--slower", "1"), "--slower excludes it"),
        (("--userspace", "--type", "rwsem"), "unknown type of lock 'rwsem'"),
        (("--type", "GIL"), "others with --userspace"),
    ],
)
def test_options_that_do_not_go_together_are_refused(words, said):
    done = run("lock", *words)
    assert done.returncode == 2
    assert said in done.stderr
