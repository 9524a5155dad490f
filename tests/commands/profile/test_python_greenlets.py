"""Greenlets copy pieces of one C stack over one another: each has its own Python functions only."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from purebpf.results.model.stack_end import WHOLE
from purebpf.tools.profile import ProfileOptions, Profiler

pytestmark = pytest.mark.needs("bpf", "perf_event", "task_pt_regs", "vmlinux_btf", "x86_64")

_PROGRAM = """
import greenlet, sys
def spin():
    total = 0
    for number in range(20000): total += number % 7
    return total
def leaf_a(): return spin()
def work_a():
    while True:
        leaf_a()
        b.switch()
def leaf_b(): return max([1, 2, 3], key=lambda number: spin())
def deeper_b():
    leaf_b()
    c.switch()
def work_b():
    while True: deeper_b()
def work_c():
    while True:
        sorted([1], key=lambda number: spin())
        a.switch()
a, b, c = map(greenlet.greenlet, (work_a, work_b, work_c))
def main(): a.switch()
print("begun", flush=True)
main()
"""
_CHAINS = {
    ("work_a", "leaf_a", "spin"),
    ("work_b", "deeper_b", "leaf_b", "<lambda>", "spin"),
    ("work_c", "<lambda>", "spin"),
}


def test_each_greenlet_has_its_own_functions(tmp_path: Path) -> None:
    source = tmp_path / "program.py"
    source.write_text(_PROGRAM)
    with subprocess.Popen([sys.executable, source], stdout=subprocess.PIPE) as program:
        try:
            assert program.stdout
            assert program.stdout.readline() == b"begun\n"
            time.sleep(0.2)
            options = ProfileOptions(
                pids=(program.pid,), frequency=499, kernel_stacks=False, duration_s=2
            )
            with Profiler(options) as profiler:
                profiler.wait()
                profile = profiler.stop()
        finally:
            program.kill()
    ran, whole, in_spin = 0, 0, set()
    for row in profile.rows():
        frames = [frame for frame in row.user if frame.kind == "python"][::-1]
        names = tuple(getattr(frame, "name", "").rpartition(".")[2] for frame in frames)
        assert any(names == chain[: len(names)] for chain in _CHAINS), names
        ran += row.weight
        whole += row.weight * (row.marks.end == WHOLE)
        in_spin.add(names)
    assert in_spin >= _CHAINS
    assert whole > 0.98 * ran > 0
