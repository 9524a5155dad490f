"""From within a PID namespace, tasks of those below it have the number that they have in ours."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import pytest

from purebpf.syscall import proc
from purebpf.tools.summary.loading import HOOKS
from tests.commands.conftest import ROOT, Workloads, children

pytestmark = pytest.mark.needs("bpf", "gcc", "vmlinux_btf", "pid_namespace")

NEW_NAMESPACE = ("unshare", "--pid", "--fork", "--kill-child")
ABOVE = (*NEW_NAMESPACE, "--mount-proc")
SECONDS = "2"  # for a workload to be sampled on a busy machine


class Nested(NamedTuple):
    """A workload in a PID namespace below one: its number there, and how to run commands there."""

    pid: int
    prefix: tuple[str, ...]


@contextmanager
def running_below(workloads: Workloads, name: str, *arguments: str) -> Iterator[Nested]:
    """Run one that never ends in a PID namespace below another new one."""
    shell = ("sh", "-c", '"$@"; exit', "sh")  # its /proc is that of the upper one
    command = [*ABOVE, *shell, *ABOVE, workloads.path(name), *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == b"ready\n"
        (first,) = children(process.pid)
        (second,) = children(first)
        (workload,) = children(second)
        status = proc.status(workload)
        assert status is not None
        *_, ours, number, innermost = map(int, status["NSpid"].split())
        assert (ours, innermost) == (workload, 1)
        enter = ("nsenter", f"--target={first}", "--pid", "--mount", f"--wd={ROOT}")
        yield Nested(number, enter)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def run(prefix: tuple[str, ...], name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command in the namespace above the workload's."""
    command = [*prefix, sys.executable, "-m", "purebpf", name, "-v", *arguments]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=ROOT, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done


def of(nested: Nested, name: str, pid: int, *arguments: str) -> dict[str, Any]:
    """What a command says of a process, which is complete, as JSON."""
    done = run(nested.prefix, name, "--format", "json", "-p", str(pid), *arguments, SECONDS)
    assert "outside_namespace=0" in done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def started_below(name: str, *options: str, command: list[str]) -> subprocess.CompletedProcess[str]:
    """Run a command that starts another one in a PID namespace below its own."""
    return run(ABOVE, name, *options, "--", *NEW_NAMESPACE, *command)


def one_after_the_other(times: int, workload: str) -> list[str]:
    """That many processes, each of which burns CPU time for a moment."""
    return ["sh", "-c", f"for i in $(seq {times}); do {workload}; done"]


def pids_of(stacks: list[dict[str, Any]], comm: str) -> list[int]:
    """Every process of a name once."""
    return sorted({stack["pid"] for stack in stacks if stack["comm"] == comm})


def are_ours(pids: list[int]) -> bool:
    """Whether these are numbers in a new namespace: its own are 1 and the command's."""
    return pids[0] > 1 and pids[-1] < 100


@pytest.mark.needs("perf_event")
def test_every_process_below_is_profiled_under_its_number(workloads: Workloads) -> None:
    command = one_after_the_other(7, workloads.path("brief"))
    options = ("--format", "json", "-F", "997")
    found = json.loads(started_below("profile", *options, command=command).stdout)
    pids = pids_of(found["stacks"], "brief")
    assert len(pids) == 7
    assert are_ours(pids)
    assert found["total"] == found["about"]["counted"]
    assert found["about"]["outside_namespace"] == 0


@pytest.mark.needs("perf_event", "x86_64")
def test_every_process_below_is_counted_under_its_number(workloads: Workloads) -> None:
    command = one_after_the_other(7, workloads.path("brief"))
    done = started_below("sampleip", "--count", "-F", "997", command=command)
    rows = re.findall(r"^0x\w+ +(\d+) +\d+ burn_briefly\+", done.stdout, re.MULTILINE)
    pids = sorted(set(map(int, rows)))
    assert len(pids) == 7
    assert are_ours(pids)
    assert "outside_namespace=0" in done.stderr


def test_every_process_below_waits_under_its_number(workloads: Workloads) -> None:
    command = [workloads.path("wait"), "forks", "23", "50"]
    done = started_below("offcpu", "--format", "json", "-K", command=command)
    pids = pids_of(json.loads(done.stdout)["stacks"], "wait")
    assert len(pids) == 1 + 23
    assert are_ours(pids)
    assert "outside_namespace=0" in done.stderr


@pytest.mark.needs("exact_raw_tracepoints", "tracefs")
@pytest.mark.parametrize("hook", HOOKS)
def test_calls_below_are_counted_exactly(workloads: Workloads, hook: str) -> None:
    options = ("--format", "json", "--mode", "process", "--hook", hook)
    command = [workloads.path("syscalls"), "calls", "10007"]
    groups = json.loads(started_below("summary", *options, command=command).stdout)["groups"]
    pids = {group["group"]["comm"]: group["group"]["pid"] for group in groups}
    assert are_ours(sorted(pids.values()))
    (calls,) = (
        {row["syscall"]: row["calls"] for row in group["rows"]}
        for group in groups
        if group["group"]["comm"] == "syscalls"
    )
    assert calls["getppid"] == 10007


@pytest.mark.needs("perf_event")
def test_a_process_below_is_profiled_by_its_number(workloads: Workloads) -> None:
    with running_below(workloads, "split") as nested:
        found = of(nested, "profile", nested.pid, "-F", "999")
    assert {stack["pid"] for stack in found["stacks"]} == {nested.pid}
    assert {frame.get("name") for frame in found["frames"]} >= {"spend_seventy", "spend_thirty"}


@pytest.mark.any_kernel
@pytest.mark.needs("perf_event")
def test_processes_outside_are_process_0(workloads: Workloads) -> None:
    with running_below(workloads, "calls") as nested, workloads.running("split"):
        done = run(nested.prefix, "profile", "--format", "json", "-F", "999", SECONDS)
    found = {(stack["comm"], stack["pid"]) for stack in json.loads(done.stdout)["stacks"]}
    assert {pid for comm, pid in found if comm == "calls"} == {nested.pid}
    assert {pid for comm, pid in found if comm == "split"} == {0}
    assert re.search(r"outside_namespace=[1-9]", done.stderr)


@pytest.mark.needs("perf_event", "x86_64")
def test_a_process_below_is_sampled_by_its_number(workloads: Workloads) -> None:
    with running_below(workloads, "split") as nested:
        options = ("--count", "-p", str(nested.pid), "-F", "999")
        by_function = run(nested.prefix, "sampleip", "--symbol", "spend_seventy", *options, SECONDS)
        everywhere = run(nested.prefix, "sampleip", *options, SECONDS)
    assert re.search(
        rf"^0x\w+ +{nested.pid} +\d+ spend_seventy\+", by_function.stdout, re.MULTILINE
    )
    pids = set(re.findall(r"^0x0\w+ +(\S+)", everywhere.stdout, re.MULTILINE))
    assert pids == {str(nested.pid)}
    assert "outside_namespace=0" in everywhere.stderr


def test_calls_of_a_process_below_are_found_by_its_number(workloads: Workloads) -> None:
    with running_below(workloads, "calls") as nested:
        found = of(nested, "summary", nested.pid, "--mode", "process")
    (group,) = found["groups"]
    assert group["group"] == {"pid": nested.pid, "comm": "calls"}
    assert [row["syscall"] for row in group["rows"]] == ["read"]


@pytest.mark.needs("task_pt_regs")
def test_calls_that_were_open_before_have_the_number_above(workloads: Workloads) -> None:
    with running_below(workloads, "wait", "three") as nested:
        found = of(nested, "summary", nested.pid, "--inflight")["inflight"]
        above = of(nested, "summary", 1, "--inflight")["inflight"]
    assert {(call["pid"], call["syscall"]) for call in found} == {
        (nested.pid, "futex"),
        (nested.pid, "read"),
    }
    assert [(call["pid"], call["comm"]) for call in above] == [(1, "sh")]


@pytest.mark.needs("perf_event")
def test_waits_that_began_before_have_the_number_above(workloads: Workloads) -> None:
    with running_below(workloads, "wait", "three") as nested:
        found = of(nested, "offcpu", nested.pid)["stacks"]
        above = of(nested, "offcpu", 1)["stacks"]
    assert {(stack["pid"], stack["comm"]) for stack in found} >= {
        (nested.pid, "reader"),
        (nested.pid, "wait"),
    }
    assert {stack["pid"] for stack in found} == {nested.pid}
    assert {(stack["pid"], stack["comm"]) for stack in above} == {(1, "sh")}


EXECUTES = """
import os, subprocess, sys, threading
program = '''
import os, sys, threading
def execute():
    print(threading.get_native_id(), flush=True)
    sys.stdin.readline()
    os.execv("/bin/sleep", ["sleep", "0.011"])
threading.Thread(target=execute).start()
'''
words = [sys.executable, "-c", program]
with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
    tid = process.stdout.readline().decode().strip()
    trace = ["-m", "purebpf", "trace", "-t", tid, "-e", "execve,clock_nanosleep", "9"]
    with subprocess.Popen([sys.executable, *trace], stdout=subprocess.PIPE, text=True) as traced:
        print(traced.stdout.readline())
        process.stdin.write(b"\\n")
        process.stdin.flush()
        print(process.pid, tid)
        print(traced.stdout.read())
"""


def test_a_thread_that_executes_a_program_is_followed_in_a_namespace() -> None:
    """Its number there before is told by the one in the initial namespace."""
    words = [*ABOVE, sys.executable, "-c", EXECUTES]
    done = subprocess.run(words, capture_output=True, text=True, check=True, cwd=ROOT)
    numbers = re.search(r"^(\d+) (\d+)$", done.stdout, re.MULTILINE)
    assert numbers, done.stdout
    assert numbers[1] != numbers[2]
    slept = rf"^ *{numbers[1]} sleep +.*clock_nanosleep\(.*tv_nsec=11000000"
    assert re.search(slept, done.stdout, re.MULTILINE), done.stdout + done.stderr
