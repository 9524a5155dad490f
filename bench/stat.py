"""What counting costs: the CPU of the tool and the time of what is counted, beside perf stat.

    python bench/stat.py [--rounds 5] [--seconds 4]

In turn: a command that does nothing, which is the tool's start and end; the whole machine, each
CPU alone, every 20 ms, which is a reading and its lines; two processes on each CPU that pass a
byte, which are switched all the time. CPU is that of the tool. Needs root, perf and gcc.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import results
from peers import cpu_s, here, workload
from results import Figure

OURS, PERF = "purebpf stat", "perf stat"
EVENTS = "task-clock,context-switches,cpu-migrations,page-faults"
INTERVAL_MS = 20
TRIPS = 50_003


def command(tool: str, file: Path, *words: str) -> list[str]:
    """How a tool is run: what is used here has one name in both."""
    if tool == OURS:
        return [sys.executable, "-m", "purebpf", "stat", "--format", "csv", "-o", str(file), *words]
    return ["perf", "stat", "-x,", "-o", str(file), *words]


def command_cpu_s(words: list[str]) -> float:
    """Seconds of CPU of a program and of the children that it waited for."""
    nowhere = subprocess.DEVNULL
    return cpu_s(subprocess.Popen(words, stdout=nowhere, stderr=nowhere))


def reading_s(tool: str, file: Path, seconds: int) -> float:
    """CPU of an interval: what a long run costs more than one of a second."""
    options = ("-a", "-A", "-I", str(INTERVAL_MS), "-e", EVENTS.replace("task", "cpu"))
    long, short = (
        command_cpu_s(command(tool, file, *options, "--", "sleep", str(duration)))
        for duration in (seconds, 1)
    )
    return (long - short) * INTERVAL_MS / (1000 * (seconds - 1))


def trip_ns(words: list[str]) -> float:
    """What the processes say of a round trip."""
    return float(subprocess.run(words, check=True, capture_output=True, text=True).stdout)


def measure(options: argparse.Namespace) -> Iterator[Figure]:
    """Each tool in turn; the medians."""
    tools = (OURS, PERF) if here("perf") else (OURS,)
    starts: dict[str, list[float]] = {tool: [] for tool in tools}
    readings: dict[str, list[float]] = {tool: [] for tool in tools}
    trips: dict[str, list[float]] = {tool: [] for tool in ("nothing", *tools)}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "out"
        program = [workload("pingpong", folder), str(TRIPS)]
        for _ in range(options.rounds):
            trips["nothing"].append(trip_ns(program))
            for tool in tools:
                starts[tool].append(command_cpu_s(command(tool, file, "-e", EVENTS, "--", "true")))
                readings[tool].append(reading_s(tool, file, options.seconds))
                trips[tool].append(trip_ns(command(tool, file, "-e", EVENTS, "--", *program)))
    base = median(trips["nothing"])
    yield Figure("a round trip that is not counted", base, "ns")
    for what, unit, scale, costs, less in (
        ("start and end: CPU", "ms", 1e3, starts, 0.0),
        (f"a reading of {len(os.sched_getaffinity(0))} CPUs: CPU", "us", 1e6, readings, 0.0),
        ("a round trip costs more", "ns", 1.0, trips, base),
    ):
        ours = scale * (median(costs[OURS]) - less)
        theirs = scale * (median(costs[PERF]) - less) if PERF in costs else None
        yield Figure(what, ours, unit, PERF if PERF in costs else "", theirs)


if __name__ == "__main__":
    options = results.parser(__doc__, rounds=5)
    options.add_argument("--seconds", type=int, default=4)
    sys.exit(results.run(measure, options.parse_args()))
