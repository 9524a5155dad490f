"""What recording a million samples costs, beside perf record, in one run.

    python bench/record.py [--rounds 3] [--samples 1000000]

A program faults in that many pages, and each fault is a sample. What is printed is the CPU time of
the recorder itself, which the two take turns to be, the samples in the file and those lost. The
least of the rounds is compared: the noise of a shared machine only ever adds.
Needs root, gcc and perf.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import results
from peers import cpu_s, workload
from results import Figure

PER_ROUND = 10_000
OURS, PERF = "purebpf record", "perf record"
SETTLED_S = 0.5
LIMIT = 1.2
"""How much of perf's CPU time ours may take."""

EVENT = ("-e", "page-faults:u", "-c", "1", "-m", "512")


class Run(NamedTuple):
    """Seconds of CPU, samples in the file, and samples that were lost."""

    cpu_s: float
    samples: int
    lost: int


def commands(path: str, pid: int, *, chains: bool) -> dict[str, list[str]]:
    """How each tool records the process."""
    options = [*EVENT, *(["-g"] if chains else []), "-p", str(pid), "-o", path]
    return {
        OURS: [sys.executable, "-m", "purebpf", "record", *options],
        PERF: ["perf", "record", "-q", *options],
    }


def recorded(tool: str, program: str, folder: str, samples: int, *, chains: bool) -> Run:
    """One run of one tool."""
    path = f"{folder}/perf.data"
    process = subprocess.Popen(
        [program, str(samples // PER_ROUND)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdout.readline()
    command = commands(path, process.pid, chains=chains)[tool]
    recorder = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    settle(recorder.pid)
    process.stdin.write(b"\n")
    process.stdin.close()
    process.wait()
    process.stdout.close()
    return Run(cpu_s(recorder), *counted(path))


def settle(pid: int) -> None:
    """Wait until a recorder has opened its events and come to rest; perf does not say so."""
    previous, since = b"", time.monotonic()
    while time.monotonic() - since < SETTLED_S:
        time.sleep(0.05)
        fds = [f"/proc/{pid}/fd/{name}" for name in os.listdir(f"/proc/{pid}/fd")]
        busy = Path(f"/proc/{pid}/schedstat").read_bytes()
        if busy != previous or not any("perf_event" in os.readlink(fd) for fd in fds):
            previous, since = busy, time.monotonic()


def counted(path: str) -> tuple[int, int]:
    """The samples of a file and those lost, as perf counts them."""
    stats = subprocess.run(
        ["perf", "report", "--stats", "-i", path], capture_output=True, text=True, check=True
    ).stdout
    counts = [
        int(number) for number in re.findall(r"^ +SAMPLE events: +(\d+)", stats, re.MULTILINE)
    ]
    lost = re.findall(r"LOST_SAMPLES events: +(\d+)$", stats, re.MULTILINE)
    return counts[0] if counts else 0, int(lost[-1]) if lost else 0


def measure(options: argparse.Namespace) -> Iterator[Figure]:
    """The least of the rounds, with and without call chains."""
    with tempfile.TemporaryDirectory() as folder:
        program = workload("faults", folder)
        for chains in (False, True):
            runs: dict[str, list[Run]] = {OURS: [], PERF: []}
            for _ in range(options.rounds):
                for tool, tool_runs in runs.items():
                    tool_runs.append(
                        recorded(tool, program, folder, options.samples, chains=chains)
                    )
            what = f"{options.samples:,} samples {'with' if chains else 'without'} call chains"
            ours, perf = (min(run.cpu_s for run in runs_of_tool) for runs_of_tool in runs.values())
            yield Figure(what, ours, "s of CPU", PERF, perf, LIMIT)
            missing = max(options.samples - run.samples + run.lost for run in runs[OURS])
            yield Figure(f"{what}: lost", max(missing, 0), "samples", limit=0)


if __name__ == "__main__":
    options = results.parser(__doc__, rounds=3)
    options.add_argument("--samples", type=int, default=1_000_000)
    sys.exit(results.run(measure, options.parse_args()))
