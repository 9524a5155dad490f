"""What tracing time off the CPU costs each switch, beside what else could be run, in one run.

    python bench/offcpu.py [--rounds 7] [--trips 50000] [--json FILE]

Each tool watches the whole machine while two processes on each CPU pass a byte as fast as they
can: two switches a round trip, whose CPU time is measured, that of the programs on the switches
included. The runs are interleaved; medians and minima are compared. What ours lost meanwhile is
printed, zeros included. Needs root and gcc; a peer that is not installed is left out, and said so.
"""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import NamedTuple

from purebpf.offcpu import OffCpu, Options
from purebpf.wall import Options as WallOptions
from purebpf.wall import Wall

HERE = Path(__file__).parent
OURS = "purebpf.offcpu"
PEER = "offcputime"

Watch = Callable[[], AbstractContextManager[object]]


class Figure(NamedTuple):
    """CPU time of one round trip in ns under a tool: the least and the median of the rounds."""

    tool: str
    least: float
    median: float


def workload(folder: str) -> str:
    """The compiled ping-pong."""
    target = f"{folder}/pingpong"
    source = HERE / "workloads" / "pingpong.c"
    subprocess.run(["gcc", "-O2", "-o", target, str(source)], check=True)
    return target


def ours(losses: dict[str, int], **options: object) -> Watch:
    """Our tool, in this process, with all that its end costs but not while it is timed."""

    @contextmanager
    def watch() -> Iterator[None]:
        with OffCpu(Options(**options)) as waiting:  # type: ignore[arg-type]
            yield
            for cause in waiting.stop().loss.causes:
                losses[cause.name] = losses.get(cause.name, 0) + cause.lost

    return watch


@contextmanager
def wall() -> Iterator[None]:
    """The wall clock, in this process."""
    with Wall(WallOptions()) as clock:
        yield
        clock.stop()


def tool(*command: str) -> Watch:
    """A program that watches the machine until Ctrl-C."""

    @contextmanager
    def watch() -> Iterator[None]:
        nowhere = subprocess.DEVNULL
        with subprocess.Popen(command, stdout=nowhere, stderr=nowhere) as process:
            time.sleep(2)  # nothing tells when it has attached
            try:
                yield
            finally:
                process.send_signal(signal.SIGINT)

    return watch


def measure(pingpong: str, trips: int, rounds: int, tools: dict[str, Watch]) -> list[Figure]:
    """Nanoseconds of one round trip, under each tool in turn."""
    found: dict[str, list[float]] = {name: [] for name in tools}
    for _ in range(rounds):
        for name, watch in tools.items():
            with watch():
                done = subprocess.run(
                    [pingpong, str(trips)], check=True, capture_output=True, text=True
                )
            found[name].append(float(done.stdout))
    return [Figure(name, min(all_), statistics.median(all_)) for name, all_ in found.items()]


def table(found: list[Figure]) -> str:
    """Markdown: how much slower each makes it, and ours as a part of that."""
    base, *others = found
    mine = next(figure for figure in found if figure.tool == OURS)
    lines = [f"One round trip without any: {base.median:.0f} ns (least {base.least:.0f}).", ""]
    lines += ["| tool | slow-down, median | least | ours adds of it |", "|---|---|---|---|"]
    for each in others:
        part = (mine.median - base.median) / (each.median - base.median)
        lines.append(
            f"| {each.tool} | {each.median / base.median:.2f} | {each.least / base.least:.2f} "
            f"| {part:.2f} |"
        )
    return "\n".join(lines)


def main() -> int:
    """Measure and print; 1 when ours slows down more than offcputime."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--trips", type=int, default=50_000)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    losses: dict[str, int] = {}
    tools: dict[str, Watch] = {"nothing": nullcontext, OURS: ours(losses)}
    if shutil.which(PEER):
        tools[PEER] = tool(PEER)
    else:
        print(f"{PEER}: left out, not installed", file=sys.stderr)
    tools[f"{OURS} --waker"] = ours({}, waker=True)
    tools[f"{OURS} --preempt"] = ours({}, preempt=True)
    tools["purebpf.wall"] = wall
    with tempfile.TemporaryDirectory() as folder:
        found = measure(workload(folder), options.trips, options.rounds, tools)
    print(table(found))
    print("\nlost:", " ".join(f"{name}={count}" for name, count in losses.items()))
    if options.json:
        options.json.write_text(json.dumps([figure._asdict() for figure in found], indent=1))
    medians = {figure.tool: figure.median for figure in found}
    return int(PEER in medians and medians[OURS] > medians[PEER])


if __name__ == "__main__":
    sys.exit(main())
