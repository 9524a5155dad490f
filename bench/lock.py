"""What measuring waits for locks costs a program that waits all the time, beside perf and strace.

    python bench/lock.py [--rounds 5] [--turns 10007]

Two threads wake each other by semaphores; each turn waits up to twice in futex(2). What is compared
is the time that a tool adds to a turn, the least of the rounds, which are interleaved. perf trace
and strace add up calls by thread; ours also knows the lock, and the stack of each wait. How much it
counts, and of how many waits the stack was lost, are figures of their own. Needs root and gcc; a
peer that is not installed is left out, and said so.
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

OURS, PERF, STRACE = "purebpf lock --userspace", "perf trace -s", "strace -c"
LIMIT = 1.0


def command(tool: str, program: str, turns: int, file: Path) -> list[str]:
    """How a tool runs the threads."""
    words = [program, str(turns)]
    if tool == PERF:
        return ["perf", "trace", "-s", "-e", "futex", "-o", str(file), *words]
    if tool == STRACE:
        return ["strace", "-f", "-c", "-e", "trace=futex", "-o", str(file), *words]
    if tool == OURS:
        options = ["--userspace", "--format", "json", "-o", str(file)]
        return [sys.executable, "-m", "purebpf", "lock", *options, "--", *words]
    return words


def turn_ns(words: list[str]) -> float | None:
    """What the threads say of a turn."""
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    numbers = [line for line in done.stdout.splitlines() if line.replace(".", "").isdigit()]
    return float(numbers[0]) if numbers else None


def waits(file: Path) -> tuple[int, int]:
    """The waits that ours counted, and those without a stack among them."""
    events = map(json.loads, file.read_text().splitlines())
    (summary,) = (event for event in events if event["event"] == "summary")
    rows = [(row["waits"], row["type"]) for row in summary["rows"]]
    return sum(count for count, _ in rows), sum(count for count, kind in rows if kind == "futex")


def measure(options: argparse.Namespace) -> Iterator[Figure]:
    """What each tool that is here adds to a turn, at the least."""
    peers = [tool for tool in (PERF, STRACE) if here(tool.split()[0])]
    times: dict[str, list[float]] = {tool: [] for tool in ("nothing", OURS, *peers)}
    counted = []
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "out"
        program = workload("semaphores", folder, "-O2", "-pthread")
        for _ in range(options.rounds):
            for tool, costs in times.items():
                if (cost := turn_ns(command(tool, program, options.turns, file))) is not None:
                    costs.append(cost)
                if tool == OURS:
                    counted.append(waits(file))
    base = min(times["nothing"])
    added = {tool: min(costs) - base for tool, costs in times.items() if costs}
    for peer in peers:
        yield Figure(f"{OURS} adds to two waits", added[OURS], "ns", peer, added.get(peer), LIMIT)
    count = min(number for number, _ in counted)
    yield Figure("waits counted of a turn, at the least", count / options.turns, "waits")
    lost = max(without / (number or 1) for number, without in counted)
    yield Figure("of those, without a stack, at the most", 100 * lost, "%")


if __name__ == "__main__":
    options = results.parser(__doc__, rounds=5)
    options.add_argument("--turns", type=int, default=10_007)
    sys.exit(results.run(measure, options.parse_args()))
