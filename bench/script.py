"""What a script costs the program that it watches, beside bpftrace and C by clang -O2.

    python bench/script.py [--rounds 5] [--calls 53] [--bpftrace COMMAND] [NAME ...]

Twelve scripts watch a loop of getppid(2), one of them openat(2). The cost of an event is what an
empty program at the same attach point adds to a call (the least CPU of short rounds), and the
time that the code takes, which the kernel counts. All sides are attached at the same time for the
latter: whatever else runs meets all of them, and the medians of many runs are compared. Strings
have the same length on all sides. bench/workloads/scripts.bpf.c has the same scripts as a C
programmer writes them, for the same attach points as ours. Needs root, gcc, clang-19, bpftool and
bpftrace; without the last, ours is compared with C only.
"""

from __future__ import annotations

import argparse
import json
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Self

import results
from peers import attached, compiled, workload
from results import Figure

from purebpf import load, read_object
from purebpf.loader.programs.statistics import run_time

OURS, CLANG = "purebpf script", "clang -O2"
ROUNDS_OF_LOOP = 3_000
PHASES, PHASE_CALLS = 5, 30_000
"""Runs of the loop in a round, and its calls, for the time of the code."""
OF_BPFTRACE, OF_CLANG = 0.85, 1.1
"""How much of what the peers add, ours may add."""
_FIRST_CPU = ("taskset", "-c", "0")
_ENTER = "tracepoint:raw_syscalls:sys_enter /pid == $1/"
SCRIPTS = {
    "count": f"{_ENTER} {{ @[args.id] = count(); }}",
    "scalar": f"{_ENTER} {{ @ = count(); }}",
    "comm": f"{_ENTER} {{ @[comm, args.id] = count(); }}",
    "latency": f"{_ENTER} {{ @start[tid] = nsecs; }} tracepoint:raw_syscalls:sys_exit "
    "/@start[tid]/ { @us = hist((nsecs - @start[tid]) / 1000); delete(@start, tid); }",
    "hist": f"{_ENTER} {{ @ = hist(args.id); }}",
    "plus": f"{_ENTER} {{ @[args.id]++; }}",
    "comparison": 'tracepoint:raw_syscalls:sys_enter /comm == "calls"/ { @ = count(); }',
    "missed": "tracepoint:raw_syscalls:sys_enter /pid == 1/ { @ = count(); }",
    "one_call": "tracepoint:syscalls:sys_enter_getppid /pid == $1/ { @ = count(); }",
    "branches": f"{_ENTER} {{ $x = args.id; if ($x > 100 && $x != 231) "
    "{ @a = sum($x * 3 + 1); } else { @b[$x % 7] = count(); } }",
    "linear": f"{_ENTER} {{ @[tid] = lhist(args.id, 0, 400, 10); }}",
    "names": "config = { max_strlen = 200 } tracepoint:syscalls:sys_enter_openat /pid == $1/ "
    "{ @[comm, str(args.filename)] = count(); }",
}
"""By the names of the programs in C; `pid == $1` is the loop."""


POINTS = {
    "one_call": ("nothing_getppid", "nothing_getppid"),
    "names": ("nothing_openat", "nothing_openat"),
}
"""Programs that do nothing at the attach points that ours, and bpftrace, use for a script."""
USUAL_POINTS = ("nothing_raw", "nothing_traced")


class Loop:
    """The process that makes system calls.

    Args:
        program: its path.
        calls: the calls of a round.
        rounds: the rounds of a run.
        opens: openat(2) instead of getppid(2).
    """

    def __init__(self, program: str, calls: int, rounds: int, *, opens: bool = False) -> None:
        words = ["taskset", "-c", "1", program, str(calls), str(rounds), *["open"] * opens]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self._process = subprocess.Popen(words, **pipes)  # type: ignore[call-overload]
        self.pid = self._process.pid

    def run(self) -> float:
        """Make the calls; return the least CPU nanoseconds of one."""
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return float(self._process.stdout.readline())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()


def measure_points(options: argparse.Namespace, program: str, path: str) -> dict[str, float]:
    """Return what an empty program adds to a call at each attach point.

    Runs with it and without it take turns, as the clock of a machine changes; the median of the
    differences counts.
    """
    names = sorted({*USUAL_POINTS, *(name for pair in POINTS.values() for name in pair)})
    added: dict[str, float] = {}
    for name in names:
        with Loop(program, options.calls, ROUNDS_OF_LOOP, opens="openat" in name) as loop:
            before, differences = loop.run(), list[float]()
            for _ in range(options.rounds * PHASES):
                with load(read_object(path).only(name)) as programs:
                    programs.attach()
                    cost = loop.run()
                after = loop.run()
                differences.append(cost - (before + after) / 2)
                before = after
        added[name] = statistics.median(differences)
    return added


def shown(*names: str) -> dict[int, dict[str, int]]:
    """Return the programs of the kernel by number: those whose names begin with one of `names`."""
    done = subprocess.run(["bpftool", "-j", "prog", "show"], check=True, capture_output=True)
    rows = json.loads(done.stdout)
    return {row["id"]: row for row in rows if row.get("name", "").startswith(names or "")}


def code_ns(options: argparse.Namespace, loop: Loop, name: str, path: str) -> dict[str, float]:
    """Return the time that the code of each side takes for a call, without the attach point.

    All sides are attached at the same time, so that each call is an event for all of them.
    """
    ours = [sys.executable, "-m", "purebpf", "script"]
    halves = [name, f"{name}_exit"] if name == "latency" else [name]
    objects = {CLANG: (halves, loop.pid), "nothing": ([POINTS.get(name, USUAL_POINTS)[0]], 0)}
    commands = {OURS: ours, **({"bpftrace": options.words} if options.words else {})}
    numbers: dict[str, set[int]] = {}
    with ExitStack() as stack:
        for side in (*objects, *commands):
            before, names = set(shown()), ["tracepoint"]  # others may load programs meanwhile
            if side in objects:
                names, pid = objects[side]
                spec = read_object(path).set(target=pid).only(*names)
                stack.enter_context(load(spec)).attach()
            else:
                words = [*_FIRST_CPU, *commands[side], "-e", SCRIPTS[name], str(loop.pid)]
                stack.enter_context(attached(words))
            numbers[side] = set(shown(*names)) - before
        stack.enter_context(run_time())
        phases, last = list[dict[str, float]](), shown()
        for _ in range(options.rounds * PHASES):
            loop.run()
            now = shown()
            phases.append({side: _mean_ns(mine, last, now) for side, mine in numbers.items()})
            last = now
    middle = {side: statistics.median(phase[side] for phase in phases) for side in numbers}
    empty = middle.pop("nothing")
    return {side: value - len(halves) * empty for side, value in middle.items()}


def _mean_ns(
    numbers: set[int], last: dict[int, dict[str, int]], now: dict[int, dict[str, int]]
) -> float:
    """Return the mean time of a run, added up over the programs of a side that ran."""
    total = 0.0
    for number in numbers & last.keys() & now.keys():
        runs, times = (
            now[number].get(key, 0) - last[number].get(key, 0) for key in ("run_cnt", "run_time_ns")
        )
        total += times / runs if runs >= PHASE_CALLS else 0
    return total


def measure(options: argparse.Namespace) -> Iterator[Figure]:
    """Each script under all tools at once."""
    options.words = shlex.split(options.bpftrace)
    version = ""
    if options.words and shutil.which(options.words[0]):
        asked = [*options.words, "--version"]
        done = subprocess.run(asked, check=True, capture_output=True, text=True)
        version = done.stdout.strip().replace(" v", " ")
    else:
        print(f"left out, not installed: {options.bpftrace}", file=sys.stderr)
        options.words = []
    with tempfile.TemporaryDirectory() as folder:
        program = workload("calls", folder)
        path = compiled("scripts", folder)
        points = measure_points(options, program, path)
        for name, cost in points.items():
            yield Figure(f"{name}: an attach point adds", cost, "ns")
        for name in options.names or SCRIPTS:
            with Loop(program, PHASE_CALLS, 1, opens=name == "names") as loop:
                code = code_ns(options, loop, name, path)
            ours, theirs = (points[point] for point in POINTS.get(name, USUAL_POINTS))
            events = 2 if name == "latency" else 1
            added = {side: cost + events * ours for side, cost in code.items()}
            if options.words:
                other = code["bpftrace"] + events * theirs
                yield Figure(f"{name}: adds", added[OURS], "ns", version, other, OF_BPFTRACE)
            yield Figure(f"{name}: adds", added[OURS], "ns", CLANG, added[CLANG], OF_CLANG)
            yield Figure(f"{name}: its code alone", code[OURS], "ns", CLANG, code[CLANG])


if __name__ == "__main__":
    options = results.parser(__doc__, rounds=5)
    options.add_argument("names", nargs="*", metavar="NAME", help="of a script, default: all")
    options.add_argument("--calls", type=int, default=53)
    options.add_argument("--bpftrace", default="bpftrace", help="its command")
    sys.exit(results.run(measure, options.parse_args()))
