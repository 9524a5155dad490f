"""What measuring the kernel's own work costs, beside perf kwork.

    python bench/kwork.py [--rounds 5] [--turns 50021]

A process sends datagrams to itself, each of which is received in a softirq, alone and under each
tool in turn. What is compared is the CPU of all, the tool and its report among it, that a datagram
costs more: by runs of many and of one, without start and end. Medians of the
rounds. `perf kwork report -b` is not in Debian's perf: it records events, and reports afterwards.
Needs root, perf and gcc.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import results
from peers import cpu_s, here, workload
from results import Figure

OURS, PERF = "purebpf kwork", "perf kwork record, report"


def commands(tool: str, file: Path, words: list[str]) -> list[list[str]]:
    """What a tool runs, one after the other."""
    if tool == OURS:
        options = ["-k", "irq,softirq,work", "--format", "json", "-o", str(file), "--"]
        return [[sys.executable, "-m", "purebpf", "kwork", *options, *words]]
    if tool == PERF:
        perf = ["perf", "kwork", "-k", "irq,softirq,workqueue"]
        record = [*perf, "record", "-o", str(file), "--", *words]
        return [record, [*perf, "report", "-i", str(file)]]
    return [words]


def tool_cpu_s(tool: str, file: Path, words: list[str]) -> float:
    """Seconds of CPU of a tool and of what it runs."""
    total = 0.0
    for command in commands(tool, file, words):
        nowhere = subprocess.DEVNULL
        total += cpu_s(subprocess.Popen(command, stdout=nowhere, stderr=nowhere))
    return total


def measure(options: argparse.Namespace) -> Iterator[Figure]:
    """Each tool in turn; the medians."""
    tools = ("nothing", OURS, *([PERF] if here("perf") else []))
    costs: dict[str, list[float]] = {tool: [] for tool in tools}
    with tempfile.TemporaryDirectory() as folder:
        program, file = workload("datagrams", folder), Path(folder) / "out"
        for _ in range(options.rounds):
            for tool in tools:
                many, one = (
                    tool_cpu_s(tool, file, [program, str(turns)]) for turns in (options.turns, 1)
                )
                costs[tool].append((many - one) / options.turns)
    base = 1e9 * median(costs["nothing"])
    yield Figure("a datagram that is not measured: CPU", base, "ns")
    ours = 1e9 * median(costs[OURS]) - base
    theirs = 1e9 * median(costs[PERF]) - base if PERF in costs else None
    yield Figure(f"{OURS} adds: CPU", ours, "ns", PERF if PERF in costs else "", theirs)


if __name__ == "__main__":
    options = results.parser(__doc__, rounds=5)
    options.add_argument("--turns", type=int, default=50_021)
    sys.exit(results.run(measure, options.parse_args()))
