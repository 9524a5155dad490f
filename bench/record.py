"""What recording a million samples costs, beside perf record, in one run.

    python bench/record.py [--rounds 3] [--samples 1000000] [--json FILE]

A program faults in that many pages, and each fault is a sample. What is printed is the CPU time of
the recorder itself, which the two take turns to be, the samples in the file and those lost. The
least of the rounds is compared: the noise of a shared machine only ever adds.
Needs root, gcc and perf.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
PER_ROUND = 10_000
OURS, PERF = "purebpf.record", "perf record"
SETTLED_S = 0.5
LIMIT = 2.0
"""How much of perf's CPU time ours may take."""

EVENT = ("-e", "page-faults:u", "-c", "1", "-m", "512")


class Figure(NamedTuple):
    """A run: seconds of CPU, samples in the file, and samples that were lost."""

    tool: str
    cpu_s: float
    samples: int
    lost: int


def commands(path: str, pid: int, *, chains: bool) -> dict[str, list[str]]:
    """How each tool records the process."""
    options = [*EVENT, *(["-g"] if chains else []), "-p", str(pid), "-o", path]
    return {
        OURS: [sys.executable, "-m", "purebpf.record", *options],
        PERF: ["perf", "record", "-q", *options],
    }


def measure(tool: str, workload: str, folder: str, samples: int, *, chains: bool) -> Figure:
    """One run of one tool."""
    path = f"{folder}/perf.data"
    process = subprocess.Popen(
        [workload, str(samples // PER_ROUND)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
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
    _, status, usage = os.wait4(recorder.pid, 0)
    recorder.returncode = os.waitstatus_to_exitcode(status)
    return Figure(tool, usage.ru_utime + usage.ru_stime, *counted(path))


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
    found = [int(number) for number in re.findall(r"^ +SAMPLE events: +(\d+)", stats, re.MULTILINE)]
    lost = re.findall(r"LOST_SAMPLES events: +(\d+)$", stats, re.MULTILINE)
    return found[0] if found else 0, int(lost[-1]) if lost else 0


def main() -> int:
    """Measure and print; 1 when something was lost or the limit is passed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--samples", type=int, default=1_000_000)
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    wrong = False
    results = []
    with tempfile.TemporaryDirectory() as folder:
        workload = f"{folder}/faults"
        source = HERE / "workloads" / "faults.c"
        subprocess.run(["gcc", "-O2", "-o", workload, str(source)], check=True)
        for chains in (False, True):
            rounds = [
                measure(tool, workload, folder, options.samples, chains=chains)
                for _ in range(options.rounds)
                for tool in (OURS, PERF)
            ]
            results += [{**figure._asdict(), "chains": chains} for figure in rounds]
            wrong |= _print(rounds, options.samples, chains=chains)
    if options.json:
        Path(options.json).write_text(json.dumps(results))
    return int(wrong)


def _print(rounds: list[Figure], samples: int, *, chains: bool) -> bool:
    best = {}
    for tool in (OURS, PERF):
        runs = [figure for figure in rounds if figure.tool == tool]
        least = best[tool] = min(figure.cpu_s for figure in runs)
        fewest, lost = min(figure.samples for figure in runs), sum(figure.lost for figure in runs)
        what = "with call chains" if chains else "without call chains"
        print(f"{tool:15s} {what:19s} {least:6.2f} s CPU, {fewest} samples, {lost} lost")
    ratio = best[OURS] / best[PERF]
    ours = [figure for figure in rounds if figure.tool == OURS]
    complete = all(figure.samples >= samples and not figure.lost for figure in ours)
    print(f"{'':15s} {'':19s} ratio {ratio:.2f} (limit {LIMIT}), complete: {complete}")
    return ratio > LIMIT or not complete


if __name__ == "__main__":
    sys.exit(main())
