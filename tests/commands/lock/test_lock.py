"""lock against a mutex that a thread of a known program holds."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from purebpf.loader.types.kernel_btf import kernel_btf
from purebpf.results.model.intervals import Interval
from purebpf.tools.lock import LockOptions, LockRow, Locks, Wait
from tests.support.environment import run
from tests.support.programs.held_lock import PROGRAM, has_userfaultfd

pytestmark = [
    pytest.mark.needs("bpf", "vmlinux_btf"),
    pytest.mark.skipif(not has_userfaultfd(), reason="this kernel gives no userfaultfd"),
    pytest.mark.skipif(
        not kernel_btf().find("btf_trace_contention_begin"),
        reason="no tracepoint contention_begin: Linux 5.19 and later",
    ),
]
WAITERS = 3


class Held:
    """The program while it runs."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.pid = process.pid
        self.holder = 0

    def say(self) -> str:
        """Let it go on; its next line."""
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return self.process.stdout.readline()

    def hold(self) -> None:
        """Until all wait, and some time more."""
        self.holder = int(self.say())

    def give(self) -> list[int]:
        """Let the lock go; when it all happened."""
        return [int(word) for word in self.say().split()]


@contextmanager
def held(waiters: int = WAITERS, hold_s: float = 0.1, file: Path | None = None) -> Iterator[Held]:
    words = [sys.executable, str(PROGRAM), str(waiters), str(hold_s), *([file] if file else [])]
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
        try:
            yield Held(process)
        finally:
            process.kill()


def measure(
    options: LockOptions, held: Held
) -> tuple[tuple[LockRow, ...], tuple[Wait, ...], list[int]]:
    with Locks(options._replace(pids=(held.pid,), types=("mutex",))) as locks:
        held.hold()
        times = held.give()
        ending = locks.stop()
    assert not ending.loss.any
    return locks.rows, ending.events, times


def of_pipe(rows: tuple[LockRow, ...]) -> LockRow:
    """The row with the waits for the pipe: the interpreter may have waited for something else."""
    return max(rows, key=lambda row: row.total_ns)


def test_waits_are_counted_and_timed():
    with held() as program:
        rows, events, times = measure(LockOptions(slower_ms=50), program)
    began_ns, waiting_ns, given_ns, ended_ns = times
    row = of_pipe(rows)
    assert (row.waits, row.open, row.type) == (WAITERS, 0, "mutex")
    assert "pipe_read" in row.name
    assert sum(row.buckets) == WAITERS
    assert WAITERS * (given_ns - waiting_ns) <= row.total_ns <= WAITERS * (ended_ns - began_ns)
    assert sum(event.took_ns for event in events) == row.total_ns
    assert max(event.took_ns for event in events) == row.max_ns
    assert {(event.owner_pid, event.owner_tid) for event in events} == {
        (program.pid, program.holder)
    }
    assert len({event.lock for event in events}) == 1


@pytest.mark.parametrize("by", ["lock", "process", "thread", "owner", "cgroup"])
def test_waits_are_grouped(by):
    with held(hold_s=0.02) as program:
        rows, _, (_, waiting_ns, given_ns, _) = measure(LockOptions(by=by), program)
    row = of_pipe(rows)
    if by == "thread":
        rows = tuple(row for row in rows if row.total_ns >= given_ns - waiting_ns)
        assert len({row.tid for row in rows}) == WAITERS
        assert {row.pid for row in rows} == {program.pid}
        return
    assert row.waits >= WAITERS
    if by == "owner":
        assert (row.pid, row.tid) == (program.pid, program.holder)
    if by == "process":
        assert row.pid == program.pid
    if by == "lock":
        assert row.name.removeprefix("pipe_inode_info.mutex at ").startswith("0xffff")


def test_waits_that_last_are_open():
    with held() as program, Locks(LockOptions(pids=(program.pid,), types=("mutex",))) as locks:
        program.hold()
        ending = locks.stop()
        row = of_pipe(locks.rows)
        program.give()
    assert not ending.loss.any
    assert (row.waits, row.open) == (0, WAITERS)
    assert row.total_ns > WAITERS * 100_000_000


@pytest.mark.skipif(
    not kernel_btf().find("bpf_task_from_pid"), reason="no bpf_task_from_pid: Linux 6.2 and later"
)
def test_stacks_lead_to_the_wait_and_to_the_owner():
    with held(hold_s=0.02) as program:
        rows, events, _ = measure(LockOptions(by="owner", stacks=True, slower_ms=10), program)
    row = of_pipe(rows)
    assert any("pipe_read" in name for name in row.stack)
    assert any("handle_userfault" in name for name in row.owner_stack)
    assert {event.owner_stack for event in events} == {row.owner_stack}


@pytest.mark.skipif(
    not kernel_btf().find("bpf_get_kmem_cache"), reason="no bpf_get_kmem_cache: Linux 6.13"
)
def test_a_lock_in_a_slab_object_is_named_by_its_member(tmp_path):
    options = LockOptions(by="lock", types=("mutex",), slower_ms=10)
    with (
        held(hold_s=0.02, file=tmp_path / "file") as program,
        Locks(options._replace(pids=(program.pid,))) as locks,
    ):
        program.hold()
        program.give()
        ending = locks.stop()
    row = of_pipe(locks.rows)
    name, _, address = row.name.partition(" at ")
    assert name == "file.f_pos_lock"
    assert row.known_from == "slab filp"
    assert {(event.name, event.known_from) for event in ending.events} == {
        (row.name, row.known_from)
    }
    assert {f"{event.lock:#x}" for event in ending.events} == {address}


def test_intervals_add_up_to_all():
    with held() as program:
        options = LockOptions(pids=(program.pid,), types=("mutex",), interval_s=0.1)
        events: list[object] = []
        with Locks(options) as locks:
            program.hold()
            while len(events) < 2:
                assert not locks.wait()
                events += locks.drain()
            program.give()
            ending = locks.stop()
    intervals = [event for event in (*events, *ending.events) if isinstance(event, Interval)]
    assert len(intervals) > 2
    row = of_pipe(locks.rows)
    parts = [part for interval in intervals for part in interval.rows if part.name == row.name]
    assert sum(part.total_ns for part in parts) == row.total_ns
    assert sum(part.waits for part in parts) == row.waits == WAITERS
    assert [part.open for part in parts] == [WAITERS] * (len(parts) - 1) + [0]


def _trace_one_hold(program: Held, *words: str) -> None:
    """Run a command while the lock is held once and given; it loses nothing."""
    with subprocess.Popen(
        [sys.executable, "-P", "-m", "purebpf", *words], stderr=subprocess.PIPE
    ) as tracer:
        assert tracer.stderr
        assert b"Measuring" in tracer.stderr.readline()
        program.hold()
        program.give()
        tracer.terminate()
        assert b"lost: nothing" in tracer.stderr.read()


def test_each_stack_has_a_line(tmp_path):
    path = tmp_path / "folded"
    with held() as program:
        words = ["lock", "-p", str(program.pid), "--format", "folded", "-o", str(path)]
        _trace_one_hold(program, *words)
    lines = [line for line in path.read_text().splitlines() if "pipe_read;" in line]
    rows = [line.rpartition(" ") for line in lines]
    assert len({stack for stack, *_ in rows}) == len(rows)
    assert all(stack.endswith(";[mutex]") for stack, *_ in rows)
    assert sum(int(took_us) for *_, took_us in rows) > WAITERS * 100_000


def test_other_types_are_left_out():
    with held(hold_s=0.02) as program:
        options = LockOptions(pids=(program.pid,), types=("rwsem", "semaphore"))
        with Locks(options) as locks:
            program.hold()
            program.give()
            locks.stop()
    assert {row.type for row in locks.rows} <= {"rwsem:R", "rwsem:W", "semaphore"}


def test_the_command_prints_rows_stacks_and_json(tmp_path):
    with held() as program:
        words = ["lock", "-p", str(program.pid), "--stacks", "--slower", "50", "-o"]
        text, data = tmp_path / "text", tmp_path / "data"
        _trace_one_hold(program, *words, str(text))
    shown = text.read_text()
    assert shown.count(f" ({program.holder})\n") == WAITERS
    assert "pipe_read" in shown
    done = run("lock", "0.1", "--format", "json", "-o", str(data))
    assert done.returncode == 0, done.stderr
    *_, summary, loss = map(json.loads, data.read_text().splitlines())
    assert summary["event"] == "summary"
    assert loss["loss"]["rows_full"] == 0


def test_only_waits_below_a_function_are_shown() -> None:
    with held() as program:
        rows, events, _ = measure(LockOptions(slower_ms=50, functions=("mutex_lock",)), program)
    assert of_pipe(rows).waits == len(events) == WAITERS
    with held() as program:
        rows, events, _ = measure(LockOptions(slower_ms=0, functions=("no_such_part",)), program)
    assert (rows, events) == ((), ())


def test_only_chosen_locks_are_shown() -> None:
    with held() as program:
        rows, events, _ = measure(LockOptions(slower_ms=0, by="lock", locks=("0x10",)), program)
    assert (rows, events) == ((), ())
    with held() as program:
        rows, events, _ = measure(LockOptions(slower_ms=50, by="lock"), program)
    assert of_pipe(rows).waits == len(events) == WAITERS
    (name,) = {event.name for event in events}
    part = name.partition(" at ")[0].rpartition(" in ")[2]  # without the address
    with held() as program:
        options = LockOptions(slower_ms=50, by="lock", locks=("no such lock", part))
        rows, events, _ = measure(options, program)
    assert of_pipe(rows).waits == len(events) == WAITERS
