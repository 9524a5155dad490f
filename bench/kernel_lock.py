"""What the programs that measure waits for locks of the kernel cost, beside those of bpftrace.

    python bench/kernel_lock.py [--rounds 5] [--waits 2003]

Real-time threads wait for the rw_semaphore of an inode that others hold. Both tools add up waits by
kernel stack, with a histogram; theirs is a script of three statements. What is compared is the
kernel's own account of the programs (run_time_ns) for each wait that began, the median of the
rounds, which are interleaved: load beside it does not change it. `perf lock contention -b` and
bcc's klockstat do not run everywhere: one has to be built with BPF, the other needs kprobes. Needs
root, gcc and bpftrace.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from statistics import median

import results
from peers import here, watching, workload
from results import Figure

import purebpf
from purebpf.loader.programs.statistics import run_time

OURS, THEIRS = "purebpf lock", "bpftrace"
SCRIPT = """
tracepoint:lock:contention_begin { @since[tid] = nsecs; @where[tid] = kstack; }
tracepoint:lock:contention_end /@since[tid]/ {
    @waits[@where[tid]] = hist(nsecs - @since[tid]); delete(@since[tid]); delete(@where[tid]);
}
"""
COMMANDS = {
    OURS: (sys.executable, "-m", "purebpf", "lock", "--by", "stack", "--hist"),
    THEIRS: ("bpftrace", "-e", SCRIPT),
}
BEGINS, ENDS = ("on_begin", "contention_begi"), ("on_end", "contention_end")
"""The names of the programs, as the kernel keeps them: ours, and theirs."""


def costs(known: set[int]) -> tuple[int, int]:
    """Of programs that are not known: nanoseconds in all, and how many waits began."""
    spent = begun = 0
    for program in purebpf.Program.all():
        with program:
            info = program.info
            if info.id in known or not info.name.startswith((*BEGINS, *ENDS)):
                continue
            spent += info.run_time_ns
            begun += info.run_cnt if info.name.startswith(BEGINS) else 0
    return spent, begun


def ns_of_a_wait(tool: str, loop: list[str]) -> float:
    """What the programs of a tool take for a wait, while the loop runs."""
    known = set()
    for program in purebpf.Program.all():
        with program:
            known.add(program.info.id)
    with watching(*COMMANDS[tool])():
        before = costs(known)
        subprocess.run(loop, check=True, stdout=subprocess.DEVNULL)
        time.sleep(0.1)
        after = costs(known)
    spent, begun = (now - then for now, then in zip(after, before, strict=True))
    return spent / begun


def measure(options: argparse.Namespace) -> Iterator[Figure]:
    """Both, in turn."""
    if not here(THEIRS):
        return
    times: dict[str, list[float]] = {tool: [] for tool in COMMANDS}
    with tempfile.TemporaryDirectory() as folder, run_time():
        loop = [workload("inode_lock", folder, "-O2", "-pthread"), str(options.waits)]
        for _ in range(options.rounds):
            for tool, found in times.items():
                found.append(ns_of_a_wait(tool, loop))
    ours, theirs = (median(times[tool]) for tool in COMMANDS)
    yield Figure(f"programs of {OURS}, a wait", ours, "ns", THEIRS, theirs, 1.0)


if __name__ == "__main__":
    options = results.parser(__doc__, rounds=5)
    options.add_argument("--waits", type=int, default=2003)
    sys.exit(results.run(measure, options.parse_args()))
