"""What tracing time off the CPU costs each switch, beside what else could be run, in one run.

    python bench/offcpu.py [--rounds 7] [--trips 50000]

Each tool watches the whole machine while two processes on each CPU pass a byte as fast as they
can: two switches a round trip, with their CPU time, that of the programs on the
switches included. The runs are interleaved; medians and minima are compared. What ours lost is
printed, zeros included. Needs root and gcc; a peer that is not installed is left out, and said so.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import results
from peers import Watch, here, watching, workload
from results import Figure

from purebpf.tools.offcpu import OffCpu, OffCpuOptions
from purebpf.tools.wall import Wall, WallOptions

OURS = "purebpf offcpu"
PEER = "offcputime"


def ours(losses: dict[str, int], **options: object) -> Watch:
    """Our tool, in this process, with all that its end costs but not while it is timed."""

    @contextmanager
    def watch() -> Iterator[None]:
        with OffCpu(OffCpuOptions(**options)) as waiting:  # type: ignore[arg-type]
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


def trips(options: argparse.Namespace, tools: dict[str, Watch]) -> dict[str, list[float]]:
    """Nanoseconds of one round trip in each round, under each tool in turn."""
    times_by_tool: dict[str, list[float]] = {name: [] for name in tools}
    with tempfile.TemporaryDirectory() as folder:
        command = [workload("pingpong", folder), str(options.trips)]
        for _ in range(options.rounds):
            for name, watch in tools.items():
                with watch():
                    done = subprocess.run(command, check=True, capture_output=True, text=True)
                times_by_tool[name].append(float(done.stdout))
    return times_by_tool


def measure(options: argparse.Namespace) -> Iterator[Figure]:
    """What each tool adds to a round trip, and what ours lost in that time."""
    losses: dict[str, int] = {}
    tools: dict[str, Watch] = {"nothing": nullcontext, OURS: ours(losses)}
    if here(PEER):
        tools[PEER] = watching(PEER)
    tools[f"{OURS} --waker"] = ours({}, waker=True)
    tools[f"{OURS} --preempt"] = ours({}, preempt=True)
    tools["purebpf wall"] = wall
    median = {name: statistics.median(times) for name, times in trips(options, tools).items()}
    base, theirs = median.pop("nothing"), median.pop(PEER, None)
    yield Figure("a round trip without a tool", base, "ns")
    for name, time in median.items():
        added = None if theirs is None else theirs - base
        limit = 1.0 if name == OURS and theirs is not None else None
        yield Figure(f"{name} adds", time - base, "ns", PEER, added, limit)
    yield Figure("lost of any kind", sum(losses.values()), "events")


if __name__ == "__main__":
    options = results.parser(__doc__, rounds=7)
    options.add_argument("--trips", type=int, default=50_000)
    sys.exit(results.run(measure, options.parse_args()))
