"""What counting system calls costs each of them, beside what else could be run, in one run.

    python bench/summary.py [--rounds 7] [--calls 300007]

Each tool watches a loop of getppid(2); what is printed is nanoseconds added to one call. The runs
are interleaved and the least of each is compared: the noise of a shared machine only ever adds.
Needs root, gcc and clang-19; a peer that is not installed is left out, and said so.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import results
from peers import Watch, compiled, here, watching, workload
from results import Figure

from purebpf import load
from purebpf.tools.summary import Summary, SummaryOptions

OURS = "purebpf summary"
EMPTY = "empty tp_btf pair"
SYSCOUNT = "syscount -L"
BPFTRACE = (
    "tracepoint:raw_syscalls:sys_enter { @s[tid] = nsecs } "
    "tracepoint:raw_syscalls:sys_exit /@s[tid]/ "
    "{ @n = count(); @t = sum(nsecs - @s[tid]); delete(@s[tid]) }"
)
PEERS = {SYSCOUNT: ("syscount", "-L"), "bpftrace": ("bpftrace", "-e", BPFTRACE)}
TRACERS = {"perf trace -s": ["perf", "trace", "-s"], "strace -c": ["strace", "-c"]}
LIMITS = {SYSCOUNT: 0.6, EMPTY: 1.6}
"""How much of what the peer adds, ours may add."""


def empty_pair(folder: str) -> Watch:
    """A pair of programs that do nothing: the floor of every tool that attaches there."""
    target = compiled("empty", folder)

    @contextmanager
    def watch() -> Iterator[None]:
        with load(target) as programs:
            programs.attach()
            yield

    return watch


def ours(**options: object) -> Watch:
    """The summary, in this process."""
    return lambda: Summary(SummaryOptions(**options))  # type: ignore[arg-type]


def under(
    command: list[str], calls: int, rounds: int, tools: dict[str, Watch]
) -> dict[str, list[float]]:
    """Nanoseconds of one call, `rounds` times under each tool."""
    times_by_tool: dict[str, list[float]] = {name: [] for name in tools}
    for _ in range(rounds):
        for name, watch in tools.items():
            with watch():
                done = subprocess.run(
                    [*command, str(calls)], check=True, capture_output=True, text=True
                )
            times_by_tool[name].append(float(done.stdout))
    return times_by_tool


def traced(command: list[str], calls: int, tracer: list[str], rounds: int) -> list[float]:
    """The same under a tracer that starts the loop itself."""
    costs_ns = []
    for _ in range(rounds):
        done = subprocess.run(
            [*tracer, *command, str(calls)], capture_output=True, text=True, check=False
        )
        numbers = [line for line in done.stdout.splitlines() if line.replace(".", "").isdigit()]
        if numbers:
            costs_ns.append(float(numbers[0]))
    return costs_ns


def measure(options: argparse.Namespace) -> Iterator[Figure]:
    """What each tool that is here adds to a call, at the least."""
    with tempfile.TemporaryDirectory() as folder:
        loop = [workload("getppid", folder)]
        tools: dict[str, Watch] = {"nothing": nullcontext, EMPTY: empty_pair(folder)}
        tools |= {OURS: ours(), f"{OURS} --hist": ours(histogram=True)}
        tools[f"{OURS} --mode thread"] = ours(mode="thread")
        tools |= {f"{OURS} --hook {hook}": ours(hook=hook) for hook in ("raw_tp", "tracepoint")}
        for name, command in PEERS.items():
            if here(command[0]):
                tools[name] = watching(*command)
        times_by_tool = under(loop, options.calls, options.rounds, tools)
        for name, tracer in TRACERS.items():
            if here(tracer[0]):
                times_by_tool[name] = traced(loop, max(options.calls // 50, 1), tracer, 3)
    base = min(times_by_tool.pop("nothing"))
    yield Figure("a getppid(2) without a tool", base, "ns")
    added = {name: min(times) - base for name, times in times_by_tool.items() if times}
    for name, cost_ns in added.items():
        if name.startswith(OURS):
            yield Figure(f"{name} adds", cost_ns, "ns")
        else:
            yield Figure(f"{OURS} adds", added[OURS], "ns", name, cost_ns, LIMITS.get(name))


if __name__ == "__main__":
    options = results.parser(__doc__, rounds=7)
    options.add_argument("--calls", type=int, default=300_007)
    sys.exit(results.run(measure, options.parse_args()))
