"""The time of CPUs and tasks: it adds up, and is the time that the scheduler counts."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from purebpf.observe.instruments.cpu_shares import CpuShares
from purebpf.tools.kwork import Kwork, KworkOptions

pytestmark = pytest.mark.needs("bpf", "vmlinux_btf")

BURN = """
import os, sys, time
os.sched_setaffinity(0, {int(sys.argv[1])})
sys.stdout.write("."); sys.stdout.flush(); sys.stdin.read(1)
end = time.process_time() + 0.2
while time.process_time() < end: pass
sys.stdout.write("."); sys.stdout.flush(); sys.stdin.read(1)
"""


def run_time_ns(pid: int) -> int:
    """The time on a CPU that the scheduler counts."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0])


def test_parts_add_up_and_a_task_has_its_run_time() -> None:
    cpu = max(os.sched_getaffinity(0))
    with subprocess.Popen(
        [sys.executable, "-c", BURN, str(cpu)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0,
    ) as child:  # fmt: skip
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdout.read(1)
        with CpuShares() as measured:
            before_ns = run_time_ns(child.pid)
            child.stdin.write(b".")
            child.stdout.read(1)
            first = measured.take()
            spent_ns = run_time_ns(child.pid) - before_ns
            measured.detach()
            second = measured.take()
            full_ns = measured.count_full()
        child.stdin.write(b".")
    assert full_ns == 0
    for cpus, tasks in (first, second):
        assert {share.cpu for share in cpus} == set(range(os.cpu_count() or 0))
        assert all(part >= 0 for share in cpus for part in share[1:])
        assert [task.time_ns for task in tasks] == sorted(
            (task.time_ns for task in tasks), reverse=True
        )
    totals = [
        sum(one[1:]) + sum(other[1:]) for one, other in zip(first.cpus, second.cpus, strict=True)
    ]
    assert max(totals) - min(totals) <= max(totals) // 100  # all CPUs were measured as long
    in_tasks = sum(task.time_ns for shares in (first, second) for task in shares.tasks)
    on_cpus = sum(share.tasks_ns for shares in (first, second) for share in shares.cpus)
    assert abs(in_tasks - on_cpus) <= on_cpus // 100
    (mine,) = [task for task in first.tasks if task.tid == child.pid]
    assert mine.pid == child.pid
    assert mine.comm.startswith("python")
    assert 0.9 * spent_ns <= mine.time_ns <= 1.02 * spent_ns  # the scheduler counts interrupts, too


def test_only_the_chosen_cpu_is_measured() -> None:
    cpu = max(os.sched_getaffinity(0))
    with Kwork(KworkOptions(kinds=("softirq",), cpus=(cpu,), shares=True)) as kwork:
        result = kwork.stop()
    assert result.shares is not None
    assert [share.cpu for share in result.shares.cpus] == [cpu]
    assert sum(result.shares.cpus[0][1:]) > 0
    with Kwork(KworkOptions(kinds=("softirq",))) as kwork:
        assert kwork.stop().shares is None


def test_shares_and_work_are_of_one_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names of functions are found when both were read, since the first ones take long."""
    find = Kwork._name

    def find_slowly(self: Kwork, *of: Any) -> str:
        time.sleep(0.3)
        return find(self, *of)

    monkeypatch.setattr(Kwork, "_name", find_slowly)
    with Kwork(KworkOptions(kinds=("softirq",), names=("timer",), shares=True)) as kwork:
        time.sleep(0.3)
        result = kwork.interval()
    assert result.shares is not None
    for share in result.shares.cpus:
        assert sum(share[1:]) / 1e9 == pytest.approx(result.elapsed_s, abs=0.2)
