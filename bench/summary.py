"""What counting system calls costs each of them, beside what else could be run, in one run.

    python bench/summary.py [--rounds 7] [--calls 300007] [--json FILE]

Each tool watches a loop of getppid(2); what is printed is nanoseconds added to one call. The runs
are interleaved and the least of each is compared: the noise of a shared machine only ever adds.
Needs root, gcc and clang-19; a peer that is not installed is left out, and said so.
"""

from __future__ import annotations

import argparse
import json
import os
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

from purebpf import load
from purebpf.summary import Options, Summary

HERE = Path(__file__).parent
OURS = "purebpf.summary"
EMPTY = "empty tp_btf pair"
SYSCOUNT = "syscount -L"
BPFTRACE = (
    "tracepoint:raw_syscalls:sys_enter { @s[tid] = nsecs } "
    "tracepoint:raw_syscalls:sys_exit /@s[tid]/ "
    "{ @n = count(); @t = sum(nsecs - @s[tid]); delete(@s[tid]) }"
)
LIMITS = {SYSCOUNT: 0.6, EMPTY: 1.6}
"""How much of what the peer adds, ours may add."""

Watch = Callable[[], AbstractContextManager[object]]


class Figure(NamedTuple):
    """Nanoseconds of one call under a tool: the least and the median of the rounds."""

    tool: str
    least: float
    median: float


def workload(folder: str) -> list[str]:
    """The compiled loop."""
    target = f"{folder}/getppid"
    source = HERE / "workloads" / "getppid.c"
    subprocess.run(["gcc", "-O2", "-o", target, str(source)], check=True)
    return [target]


def empty_pair(folder: str) -> Watch:
    """A pair of programs that do nothing: the floor of every tool that attaches there."""
    target = f"{folder}/empty.bpf.o"
    source = HERE / "workloads" / "empty.bpf.c"
    flags = ["-g", "-O2", "-target", "bpf", "-mcpu=v3"]
    include = f"-I/usr/include/{os.uname().machine}-linux-gnu"
    command = ["clang-19", *flags, include, "-c", str(source), "-o", target]
    subprocess.run(command, check=True)

    @contextmanager
    def watch() -> Iterator[None]:
        with load(target) as programs:
            programs.attach()
            yield

    return watch


def ours(**options: object) -> Watch:
    """The summary, in this process."""
    return lambda: Summary(Options(**options))  # type: ignore[arg-type]


def tool(*command: str) -> Watch:
    """A program that watches the machine until Ctrl-C."""

    @contextmanager
    def watch() -> Iterator[None]:
        nowhere = subprocess.DEVNULL
        with subprocess.Popen(command, stdout=nowhere, stderr=nowhere) as process:
            time.sleep(1.5)  # nothing tells when it has attached
            try:
                yield
            finally:
                process.send_signal(signal.SIGINT)

    return watch


def measure(
    command: list[str], calls: int, rounds: int, tools: dict[str, Watch]
) -> dict[str, list[float]]:
    """Nanoseconds of one call, `rounds` times under each tool."""
    found: dict[str, list[float]] = {name: [] for name in tools}
    for _ in range(rounds):
        for name, watch in tools.items():
            with watch():
                done = subprocess.run(
                    [*command, str(calls)], check=True, capture_output=True, text=True
                )
            found[name].append(float(done.stdout))
    return found


def traced(command: list[str], calls: int, tracer: list[str], rounds: int) -> list[float]:
    """The same under a tracer that starts the loop itself."""
    found = []
    for _ in range(rounds):
        done = subprocess.run(
            [*tracer, *command, str(calls)], capture_output=True, text=True, check=False
        )
        numbers = [line for line in done.stdout.splitlines() if line.replace(".", "").isdigit()]
        if numbers:
            found.append(float(numbers[0]))
    return found


def figures(rounds: int, calls: int) -> list[Figure]:
    """Every tool that is here."""
    with tempfile.TemporaryDirectory() as folder:
        loop = workload(folder)
        tools: dict[str, Watch] = {"nothing": nullcontext, EMPTY: empty_pair(folder)}
        tools[OURS] = ours()
        tools[f"{OURS} --hist"] = ours(histogram=True)
        tools[f"{OURS} --mode thread"] = ours(mode="thread")
        tools[f"{OURS} --hook raw_tp"] = ours(hook="raw_tp")
        tools[f"{OURS} --hook tracepoint"] = ours(hook="tracepoint")
        for name, command in {
            SYSCOUNT: ("syscount", "-L"),
            "bpftrace": ("bpftrace", "-e", BPFTRACE),
        }.items():
            if shutil.which(command[0]):
                tools[name] = tool(*command)
            else:
                print(f"{name}: left out, not installed", file=sys.stderr)
        found = measure(loop, calls, rounds, tools)
        few = max(calls // 50, 1)
        for name, tracer in {
            "perf trace -s": ["perf", "trace", "-s"],
            "strace -c": ["strace", "-c"],
        }.items():
            if shutil.which(tracer[0]) and (numbers := traced(loop, few, tracer, 3)):
                found[name] = numbers
            else:
                print(f"{name}: left out", file=sys.stderr)
    return [Figure(name, min(all_), statistics.median(all_)) for name, all_ in found.items()]


def table(found: list[Figure]) -> str:
    """Markdown: what each adds, and ours as a part of it."""
    least = {figure.tool: figure.least for figure in found}
    base = least["nothing"]
    lines = [f"One getppid(2) without any: {base:.0f} ns.", ""]
    lines += ["| tool | adds (ns) | median (ns) | ours is | aim |", "|---|---|---|---|---|"]
    for figure in found[1:]:
        added = figure.least - base
        part = (least[OURS] - base) / added
        aim = f"<= {LIMITS[figure.tool]}" if figure.tool in LIMITS else ""
        row = f"| {figure.tool} | {added:.0f} | {figure.median - base:.0f} | {part:.2f} | {aim} |"
        lines.append(row)
    return "\n".join(lines)


def main() -> int:
    """Measure and print; 1 when ours costs more than it may."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--calls", type=int, default=300_007)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    found = figures(options.rounds, options.calls)
    print(table(found))
    if options.json:
        options.json.write_text(json.dumps([figure._asdict() for figure in found], indent=1))
    least = {figure.tool: figure.least for figure in found}
    ours_ns = least[OURS] - least["nothing"]
    return int(
        any(
            ours_ns > limit * (least[name] - least["nothing"])
            for name, limit in LIMITS.items()
            if name in least
        )
    )


if __name__ == "__main__":
    sys.exit(main())
