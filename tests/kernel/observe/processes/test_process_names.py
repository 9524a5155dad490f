"""A process has one name, its leader's, whatever its threads call themselves."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from purebpf.observe.processes.process_names import ProcessNames
from purebpf.tools.profile import ProfileOptions, Profiler
from purebpf.tools.top.render import rank_lines
from purebpf.wire.perf_records import Comm, Fork

NAMED_THREADS = """
import ctypes, threading, time
libc = ctypes.CDLL(None)
def work(number):
    libc.prctl(15, b"worker-%d" % number, 0, 0, 0)
    while True:
        sum(range(1000))
for number in range(3):
    threading.Thread(target=work, args=(number,), daemon=True).start()
print("ready", flush=True)
time.sleep(60)
"""


def comm(pid: int, tid: int, name: str) -> Comm:
    return Comm(**dict.fromkeys(Comm.__annotations__, 0) | {"pid": pid, "tid": tid, "comm": name})


def fork(pid: int, ppid: int) -> Fork:
    return Fork(**dict.fromkeys(Fork.__annotations__, 0) | {"pid": pid, "ppid": ppid})


def test_a_threads_name_is_not_the_processes() -> None:
    names = ProcessNames()
    names.note(1 << 22, "java")
    names.feed(comm(1 << 22, (1 << 22) + 1, "GC Thread#0"))
    assert names.of(1 << 22) == "java"
    names.feed(comm(1 << 22, 1 << 22, "renamed"))
    assert names.of(1 << 22) == "renamed"


def test_a_child_has_its_parents_until_it_executes() -> None:
    names = ProcessNames()
    names.note((1 << 22) + 1, "of an older process with the number")
    names.note(1 << 22, "sh")
    names.feed(fork((1 << 22) + 1, 1 << 22))
    assert names.of((1 << 22) + 1) == "sh"


def test_a_name_from_before_lost_records_is_not_shown() -> None:
    names = ProcessNames()
    here, gone, seen = os.getpid(), 1 << 22, (1 << 22) + 1
    for pid in (here, gone, seen):
        names.note(pid, "purebpf")  # the record of its exec was lost
    names.doubt({(gone, "node"), (seen, "purebpf"), (seen, "worker")})
    assert names.of(here) == Path("/proc/self/comm").read_text().strip()
    assert names.of(gone) == ""  # the names of its tasks are right
    assert names.of(seen) == "purebpf"


def test_a_process_that_is_there_has_its_name() -> None:
    assert ProcessNames().of(os.getpid()) == Path("/proc/self/comm").read_text().strip()
    assert ProcessNames().of(0) == ""


@pytest.mark.needs("bpf", "perf_event")
def test_a_process_with_named_threads_is_one_in_the_profile() -> None:
    command = [sys.executable, "-c", NAMED_THREADS]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            with Profiler(
                ProfileOptions(pids=(process.pid,), frequency=199, duration_s=1.0)
            ) as profiler:
                while not profiler.wait():
                    pass
                profile = profiler.stop()
        finally:
            process.kill()
    assert {row.labels.comm for row in profile.rows()} > {"worker-0", "worker-1"}
    (owner,) = {name for name, *_ in rank_lines(profile, "process")}
    assert owner.endswith(f" ({process.pid})")
    assert "worker" not in owner
