"""What tracing each system call costs the program that makes it, beside strace and perf trace.

    python bench/trace.py [--rounds 5] [--calls 20003]

Each tool traces a loop of getppid(2) and writes its lines to a file; what is compared is the time
that it adds to a call, the least of the rounds, which are interleaved. Calls that a tool drops cost
the program less: how many of ours are shown is a figure of its own. Needs root and gcc; a peer that
is not installed is left out, and said so.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import results
from peers import here, workload
from results import Figure

OURS = "purebpf trace"
STACKS = f"{OURS} --call-graph auto"
ROUNDS_OF_LOOP = 5
PEERS = {"strace": 1 / 20, "perf trace": 1 / 5}
"""How much of what the peer adds, ours may add."""


def command(tool: str, file: Path) -> list[str]:
    """How a tool is run."""
    if tool in (OURS, STACKS):
        module = ["-m", "purebpf", "trace", "-e", "getppid", "--format", "strace", "-o", str(file)]
        return [sys.executable, *module, *(tool.split()[2:]), "--"]
    if tool == "strace":
        return ["strace", "-o", str(file), "-e", "trace=getppid"]
    return ["perf", "trace", "-e", "getppid", "-o", str(file), "--"]


def loop_ns(words: list[str]) -> float | None:
    """What the loop says of a call."""
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    numbers = [line for line in done.stdout.splitlines() if line.replace(".", "").isdigit()]
    return float(numbers[0]) if numbers else None


def measure(options: argparse.Namespace) -> Iterator[Figure]:
    """What each tool that is here adds to a call, at the least."""
    tools = [OURS, STACKS, *(peer for peer in PEERS if here(peer.split()[0]))]
    times: dict[str, list[float]] = {tool: [] for tool in ("nothing", *tools)}
    shown = []
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "out"
        loop = [workload("getppid", folder), str(options.calls)]
        for _ in range(options.rounds):
            for tool, costs in times.items():
                words = loop if tool == "nothing" else [*command(tool, file), *loop]
                if (cost := loop_ns(words)) is not None:
                    costs.append(cost)
                if tool == OURS:
                    shown.append(file.read_text().count("getppid()"))
    base = min(times.pop("nothing"))
    yield Figure("a getppid(2) without a tool", base, "ns")
    added = {tool: min(costs) - base for tool, costs in times.items() if costs}
    for peer, limit in PEERS.items():
        if peer in added:
            yield Figure(f"{OURS} adds", added[OURS], "ns", peer, added[peer], limit)
    yield Figure(f"{STACKS} adds", added[STACKS], "ns")
    lost = 100 * (1 - min(shown) / (options.calls * ROUNDS_OF_LOOP))
    yield Figure("calls that are said to be lost instead of shown", lost, "%")


if __name__ == "__main__":
    options = results.parser(__doc__, rounds=5)
    options.add_argument("--calls", type=int, default=20_003)
    sys.exit(results.run(measure, options.parse_args()))
