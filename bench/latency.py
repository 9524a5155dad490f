"""What timing each call of a function costs the program that makes it, beside bpftrace.

    python bench/latency.py [--rounds 5] [--calls 20003]

Each tool times every call of a function that does nothing, into a histogram: bpftrace by a uprobe
and a uretprobe, purebpf by uprobes at the entry and at `ret`. What is compared is the time that it
adds to a call, the least of the rounds, which are interleaved. Calls that a tool misses cost the
program less: how many ours misses is a figure
of its own. Needs root and gcc; a peer that is not installed is left out, and said so.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import results
from peers import here, workload
from results import Figure

OURS, COUNT, PEER = "purebpf latency", "purebpf latency --count", "bpftrace"
ROUNDS_OF_LOOP = 5
LIMIT = 2.0
"""How much of what the peer adds, ours may add: the kernel's exceptions are three, not two, as it
single-steps a `ret`."""
_SCRIPT = (
    "uprobe:{0}:traced {{ @start[tid] = nsecs; }} uretprobe:{0}:traced /@start[tid]/ "
    "{{ @times = hist(nsecs - @start[tid]); delete(@start[tid]); }}"
)


def command(tool: str, program: str, calls: int, file: Path) -> list[str]:
    """How a tool runs the loop."""
    if tool == "nothing":
        return [program, str(calls)]
    if tool == PEER:
        return [
            "bpftrace",
            "-o",
            str(file),
            "-c",
            f"{program} {calls}",
            "-e",
            _SCRIPT.format(program),
        ]
    options = ["--format", "json", "-o", str(file), *(["--count"] if tool == COUNT else [])]
    module = [sys.executable, "-m", "purebpf", "latency", f"{program}:traced", *options]
    return [*module, "--", program, str(calls)]


def loop_ns(words: list[str]) -> float | None:
    """What the loop says of a call."""
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    numbers = [line for line in done.stdout.splitlines() if line.replace(".", "").isdigit()]
    return float(numbers[0]) if numbers else None


def counted(file: Path) -> int:
    """The calls that ours counted."""
    events = map(json.loads, file.read_text().splitlines())
    (summary,) = (event for event in events if event["event"] == "summary")
    return sum(row["calls"] for row in summary["rows"])


def measure(options: argparse.Namespace) -> Iterator[Figure]:
    """What each tool that is here adds to a call, at the least."""
    tools = ["nothing", OURS, COUNT, *([PEER] if here(PEER) else [])]
    times: dict[str, list[float]] = {tool: [] for tool in tools}
    missing = 0
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "out"
        program = workload("function", folder)
        for _ in range(options.rounds):
            for tool, costs in times.items():
                if (cost := loop_ns(command(tool, program, options.calls, file))) is not None:
                    costs.append(cost)
                if tool == OURS:
                    missing += options.calls * ROUNDS_OF_LOOP - counted(file)
    base = min(times["nothing"])
    added = {tool: min(costs) - base for tool, costs in times.items() if costs}
    theirs = added.get(PEER)
    peer = PEER if theirs is not None else ""
    yield Figure(
        f"{OURS} adds to a call of a user function", added[OURS], "ns", peer, theirs, LIMIT
    )
    yield Figure(f"{COUNT} adds", added[COUNT], "ns")
    yield Figure("calls that are not counted", missing, "calls", limit=0)


if __name__ == "__main__":
    options = results.parser(__doc__, rounds=5)
    options.add_argument("--calls", type=int, default=20_003)
    sys.exit(results.run(measure, options.parse_args()))
