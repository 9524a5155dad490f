"""Processes of a tree, followed from fork to the last that is heard of them."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from purebpf import objects
from purebpf.loader.load.load import load
from purebpf.loader.maps.map import Map
from purebpf.observe.instruments.process_tree import ProcessTree, follow
from purebpf.observe.instruments.task_filter import TaskFilter
from purebpf.syscall import proc, tracefs

pytestmark = pytest.mark.needs("bpf")

PRIME = 211
SHORT = f"i=0; while [ $i -lt {PRIME} ]; do /bin/true; i=$((i+1)); done"


def entered(tree: ProcessTree) -> int:
    return int(tree._object.maps["tree_stats"][0].entered)


@pytest.fixture
def tgids() -> Iterator[Map]:
    with load(objects.spec("process_tree").resize(tgids=4096)) as owner:
        yield owner.maps["tgids"]


def test_each_child_enters_once(tgids: Map) -> None:
    with subprocess.Popen(["sh", "-c", f"read go; {SHORT}"], stdin=subprocess.PIPE) as shell:
        tgids[shell.pid] = 1
        with ProcessTree(tgids) as tree:
            shell.communicate(b"\n")
            assert entered(tree) == PRIME
            assert tree.missed == 0


@contextmanager
def freed_tasks() -> Iterator[Callable[[Iterable[int]], None]]:
    """A function that waits until the kernel has freed tasks (sched_process_free).

    The kernel frees a task after a grace period of RCU. That may take many seconds where the CPUs
    run guests, so nothing here depends on a clock. Programs that were attached to the tracepoint
    before have run for these tasks.
    """
    instance = Path(tracefs.mount_point() or "", "instances", f"purebpf-test-{os.getpid()}")
    instance.mkdir()
    try:
        (instance / "events/sched/sched_process_free/enable").write_text("1")
        with (instance / "trace_pipe").open() as lines:

            def wait_for(tids: Iterable[int]) -> None:
                left = set(tids)
                while left:
                    match = re.search(r"sched_process_free: .* pid=(\d+)", lines.readline())
                    left -= {int(match[1])} if match else set()

            yield wait_for
        (instance / "events/sched/sched_process_free/enable").write_text("0")
    finally:
        instance.rmdir()


@pytest.mark.needs("tracefs")
def test_a_process_that_has_ended_leaves(tgids: Map) -> None:
    with subprocess.Popen(["sh", "-c", f"read go; {SHORT}"], stdin=subprocess.PIPE) as shell:
        tgids[shell.pid] = 1
        with ProcessTree(tgids) as tree, freed_tasks() as wait_for:
            shell.communicate(b"\n")
            assert entered(tree) == PRIME
            wait_for([shell.pid, *tgids])
            assert list(tgids) == []


def test_others_do_not_enter(tgids: Map) -> None:
    with ProcessTree(tgids) as tree:
        subprocess.run(["sh", "-c", SHORT], check=True)
        assert (entered(tree), len(tgids)) == (0, 0)


def test_processes_of_a_name_enter_at_execve(tgids: Map, tmp_path: Path) -> None:
    path = tmp_path / f"of{os.getpid()}"
    path.symlink_to("/bin/true")
    with ProcessTree(tgids, name=path.name, children=False) as tree:
        subprocess.run(["sh", "-c", SHORT.replace("/bin/true", str(path))], check=True)
        assert (entered(tree), tree.missed) == (PRIME, 0)


def test_a_process_leaves_with_its_name(tgids: Map, tmp_path: Path) -> None:
    path = tmp_path / f"of{os.getpid()}"
    path.symlink_to("/bin/sh")
    command = [path, "-c", "read go; exec sleep 30"]
    with (
        subprocess.Popen(command, stdin=subprocess.PIPE) as shell,  # it has the name before
        ProcessTree(tgids, name=path.name, children=False),
    ):
        assert shell.pid in tgids
        assert shell.stdin is not None
        shell.stdin.write(b"\n")
        shell.stdin.flush()
        until = time.monotonic() + 20
        while shell.pid in tgids and time.monotonic() < until:
            time.sleep(0.01)
        assert shell.pid not in tgids
        shell.kill()


def test_a_command_enters_at_its_execve(tgids: Map) -> None:
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.read(read, 1)
        os.execvp("sh", ["sh", "-c", SHORT])
    with ProcessTree(tgids, command_pid=child) as tree:
        assert len(tgids) == 0
        os.write(write, b"!")
        os.waitpid(child, 0)
        assert entered(tree) == PRIME + 1
    os.close(read)
    os.close(write)


def test_children_without_a_place_are_counted() -> None:
    with load(objects.spec("process_tree").resize(tgids=1)) as owner:
        tgids = owner.maps["tgids"]
        with subprocess.Popen(["sh", "-c", f"read go; {SHORT}"], stdin=subprocess.PIPE) as shell:
            tgids[shell.pid] = 1
            with ProcessTree(tgids) as tree:
                shell.communicate(b"\n")
                assert (entered(tree), tree.missed) == (0, PRIME)


def start_as(pid: int) -> subprocess.Popen[bytes]:
    """Start a process with a process ID that was used before."""
    for _ in range(1000):
        Path("/proc/sys/kernel/ns_last_pid").write_text(str(pid - 1))
        process = subprocess.Popen(["sleep", "60"])
        if process.pid == pid:
            return process
        process.kill()
        process.wait()
    raise AssertionError(f"{pid} is in use")


@pytest.mark.alone  # the next process must have that number
def test_another_process_with_the_id_of_an_ended_one_is_not_in(tgids: Map) -> None:
    """Of two wanted processes, one ends, and the kernel gives its ID to another program."""
    with ExitStack() as owned:
        stays, ends = (owned.enter_context(subprocess.Popen(["sleep", "60"])) for _ in range(2))
        owned.callback(stays.kill)
        tgids.update({stays.pid: 1, ends.pid: 1})
        whose = TaskFilter(pids=(stays.pid, ends.pid))
        assert follow(whose, {"tgids": tgids}, owned) is None
        ends.send_signal(signal.SIGKILL)
        ends.wait()
        other = owned.enter_context(start_as(ends.pid))
        owned.callback(other.kill)
        assert other.pid == ends.pid
        assert list(tgids) == [stays.pid]


START_THREAD = """
import pathlib, sys, threading, time
for _ in range(1000):
    pathlib.Path("/proc/sys/kernel/ns_last_pid").write_text(str(int(sys.argv[1]) - 1))
    thread = threading.Thread(target=time.sleep, args=(60,), daemon=True)
    thread.start()
    if thread.native_id == int(sys.argv[1]):
        print("started", flush=True)
        time.sleep(60)
"""


@pytest.mark.alone  # the next process must have that number
@pytest.mark.parametrize("is_thread", [False, True])
def test_another_task_with_the_number_of_an_ended_thread_is_not_in(
    tgids: Map, *, is_thread: bool
) -> None:
    with ExitStack() as owned:
        stays, ends = (owned.enter_context(subprocess.Popen(["sleep", "60"])) for _ in range(2))
        owned.callback(stays.kill)
        tids = owned.enter_context(load(objects.spec("process_tree").resize(tids=2))).maps["tids"]
        tids.update({stays.pid: 1, ends.pid: 1})
        whose = TaskFilter(tids=(stays.pid, ends.pid))
        assert follow(whose, {"tgids": tgids, "tids": tids}, owned) is None
        ends.kill()
        ends.wait()
        if is_thread:
            words = [sys.executable, "-c", START_THREAD, str(ends.pid)]
            other = owned.enter_context(subprocess.Popen(words, stdout=subprocess.PIPE))
            owned.callback(other.kill)
            assert other.stdout
            assert other.stdout.readline() == b"started\n"
        else:
            owned.callback(owned.enter_context(start_as(ends.pid)).kill)
        assert list(tids) == [stays.pid]


EXECUTE_IN_THREAD = """
import os, sys, threading
def execute():
    print(threading.get_native_id(), flush=True)
    sys.stdin.readline()
    os.execv("/bin/sleep", ["sleep", "60"])
thread = threading.Thread(target=execute)
thread.start()
thread.join()
"""


def test_a_thread_that_executes_a_program_has_the_number_of_its_process(tgids: Map) -> None:
    """All other threads end, and the kernel gives it the number of the first one."""
    with ExitStack() as owned:
        words = [sys.executable, "-c", EXECUTE_IN_THREAD]
        process = owned.enter_context(
            subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        )
        owned.callback(process.kill)
        assert process.stdin
        assert process.stdout
        tid = int(process.stdout.readline())
        tids = owned.enter_context(load(objects.spec("process_tree").resize(tids=1))).maps["tids"]
        tids[tid] = 1
        assert follow(TaskFilter(tids=(tid,)), {"tgids": tgids, "tids": tids}, owned) is None
        process.stdin.write(b"\n")
        process.stdin.flush()
        deadline = time.monotonic() + 60
        while proc.comm(process.pid) != "sleep" and time.monotonic() < deadline:
            time.sleep(0.01)
        assert list(tids) == [process.pid]


@pytest.mark.parametrize("kind", ["tids", "pids"])
def test_tasks_that_ended_before_the_programs_were_attached_are_not_in(
    tgids: Map, *, kind: str
) -> None:
    """The number of one was given to another task between the look at /proc and the programs."""
    with ExitStack() as owned:
        stays, ends = (owned.enter_context(subprocess.Popen(["sleep", "60"])) for _ in range(2))
        owned.callback(stays.kill)
        tids = owned.enter_context(load(objects.spec("process_tree").resize(tids=2))).maps["tids"]
        started = {process.pid: proc.start_ticks(process.pid) for process in (stays, ends)}
        whose = TaskFilter(started=started)._replace(**{kind: tuple(started)})
        whose.fill({"tgids": tgids, "tids": tids})
        ends.kill()
        ends.wait()
        time.sleep(0.05)  # ticks of /proc have 10 ms
        owned.callback(owned.enter_context(start_as(ends.pid)).kill)
        assert follow(whose, {"tgids": tgids, "tids": tids}, owned) is None
        assert list(tids if kind == "tids" else tgids) == [stays.pid]
