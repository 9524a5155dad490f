"""What a sample filter costs each sample it rejects: compiled, and interpreted as perf does it.

    python bench/filter.py [--rounds 5] [--seconds 1]

A busy loop on one CPU is sampled with cpu-clock at 20,000 Hz under a filter that rejects every
sample with its last term. Printed are nanoseconds of the program for a sample, by the kernel's own
statistics (run_time_ns / run_cnt). They include what the statistics cost themselves, two looks at
the clock, which is most of it: so a program that only returns is measured too, and what a filter
takes beyond that is compared as well. The interpreter is purebpf's pinned one, which does for each
term what perf 6.12's sample_filter.bpf.c does. The runs are interleaved and the least of each is
compared: noise only ever adds. Needs root.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager

import results
from results import Figure

from purebpf import PerfEvent
from purebpf.abi.assembler import R0, Assembler
from purebpf.abi.bpf import bpf_prog_type
from purebpf.abi.instruction import pack
from purebpf.abi.perf import perf_event_sample_format as bit
from purebpf.filter import parse
from purebpf.filter.lowering import NoNames, resolve
from purebpf.loader.programs.program import Program
from purebpf.loader.programs.statistics import run_time
from purebpf.observe.filters import pinned_filter
from purebpf.observe.filters.compiled_filter import CompiledFilter
from purebpf.observe.filters.pinned_filter import PinnedFilter
from purebpf.observe.filters.sample_filter import kernel_access
from purebpf.syscall import bpf

FREQUENCY = 20_000
WHERE = bit.PERF_SAMPLE_IP | bit.PERF_SAMPLE_TID | bit.PERF_SAMPLE_CPU | bit.PERF_SAMPLE_PERIOD
TERMS = (
    *("pid > 0", "tid > 0", "ip > 0", "period > 0", "cpu < 4096", "pid != 1", "tid != 1"),
    *("ip != 1", "period != 1"),
)
LAST = "pid == 1"
FILTERS = {
    "1 term": LAST,
    "3 terms": ", ".join((*TERMS[:2], LAST)),
    "10 terms": ", ".join((*TERMS, LAST)),
    "1 of 10 pids": " || ".join(f"pid == {number}" for number in range(1, 11)),
}
LIMITS = {"1 term": 1.0, "10 terms": 0.5, "1 of 10 pids": 0.5}
"""How much of the interpreter's time the compiled filter may take."""

Costs = dict[str, list[float]]
Filter = CompiledFilter | PinnedFilter


class Returning:
    """A program that does nothing: what remains is the cost of measuring."""

    def __init__(self) -> None:
        code = Assembler()
        code.move(R0, 0)
        code.exit()
        packed = pack(code.finish())
        kind = bpf_prog_type.BPF_PROG_TYPE_PERF_EVENT
        self.program = Program(bpf.prog_load(kind, packed, "GPL"), "nothing", kind)

    def attach(self, event: PerfEvent) -> None:
        event.set_bpf(self.program)


@contextmanager
def private_bpffs() -> Iterator[str]:
    """A bpf file system of which no other process sees the pins."""
    libc = ctypes.CDLL(None, use_errno=True)
    with tempfile.TemporaryDirectory() as folder:
        if libc.mount(b"bpf", folder.encode(), b"bpf", 0, None):
            raise OSError(ctypes.get_errno(), "mount(bpf)")
        try:
            yield folder
        finally:
            libc.umount2(folder.encode(), 2)


def cost_ns(chosen: Filter | Returning, seconds: float) -> float:
    """Nanoseconds of the program for a sample."""
    with PerfEvent.sampling(
        frequency=FREQUENCY, event="cpu-clock", pid=0, sample_type=WHERE, disabled=1
    ) as event:
        event.map_ring(8)
        chosen.attach(event)
        before = chosen.program.info
        event.enable()
        deadline = time.perf_counter() + seconds
        while time.perf_counter() < deadline:
            pass
        event.disable()
        after = chosen.program.info
        kept = len(list(event.records()))
    count = after.run_cnt - before.run_cnt
    if kept or not count:
        raise SystemExit(f"{kept} of {count} samples were kept: not what is to be measured")
    return (after.run_time_ns - before.run_time_ns) / count


def measure(rounds: int, seconds: float) -> dict[str, Costs]:
    """The costs of each round, by the filter and the kind of program."""
    costs = {name: {"compiled": [], "pinned": []} for name in FILTERS} | {"nothing": {"": []}}
    nothing = Returning()
    with nothing.program, private_bpffs() as bpffs, run_time():
        pinned_filter.pin(os.getuid(), 1, bpffs)
        for _ in range(rounds):
            costs["nothing"][""].append(cost_ns(nothing, seconds))
            for name, text in FILTERS.items():
                terms = resolve(parse(text), WHERE, NoNames())
                with CompiledFilter(terms, kernel_access()) as compiled:
                    costs[name]["compiled"].append(cost_ns(compiled, seconds))
                with PinnedFilter(terms, os.getuid(), bpffs) as pinned:
                    costs[name]["pinned"].append(cost_ns(pinned, seconds))
    return costs


def figures(options: argparse.Namespace) -> Iterator[Figure]:
    """The least of each, with what the measuring costs, and without it."""
    costs = measure(options.rounds, options.seconds)
    floor = min(costs["nothing"][""])
    yield Figure("a program that only returns", floor, "ns")
    peer = "interpreter"
    for name in FILTERS:
        ours, theirs = min(costs[name]["compiled"]), min(costs[name]["pinned"])
        yield Figure(name, ours, "ns", peer, theirs, LIMITS.get(name))
        net = max(ours - floor, 0.1), max(theirs - floor, 0.1)
        yield Figure(f"{name}, beyond returning", net[0], "ns", peer, net[1], LIMITS.get(name))


if __name__ == "__main__":
    options = results.parser(__doc__, rounds=5)
    options.add_argument("--seconds", type=float, default=1.0)
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    sys.exit(results.run(figures, options.parse_args()))
