"""Whole user stacks without frame pointers, beside `perf record --call-graph dwarf`, in one run.

    python bench/stacks.py [--rounds 1] [--seconds 20] [--frequency 499] [--minutes 1]

Once at that frequency, and once at eight times that, which tells what each further sample costs
from what a start does: Python takes 0.3 s for that. And once for minutes at 99 Hz, as a profiler
runs that is left on.

A C program without frame pointers spends its time on 81 paths through 6 functions, from some
percent of it each to a thousandth. Both tools watch it at the same time. What each takes is the
CPU time of all of it, from its start to named stacks (perf record, then perf script), and what it
writes. The shares of the 50 heaviest stacks are compared: two samplers differ by chance, which a
figure is given in (standard errors; of 50, the largest is about 2.5). Needs root, gcc and perf.
"""

from __future__ import annotations

import argparse
import compileall
import math
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import results
from peers import cpu_s
from results import Figure

_ROOT_FOLDER = Path(__file__).parents[1]
_TOP = 50
_CHANCE = 4.5
"""Standard errors that the largest of 50 differences may have: one in 150,000 by chance."""
_CPU = 0.1
"""How much of perf's CPU time ours may take."""
_BRANCHES, _DEPTH = 3, 4
_SAMPLE = re.compile(r"^\t *[0-9a-f]+ (\S+?)(?:\+0x[0-9a-f]+)?(?: \(.*\))?$")
_ROOT = "main"
_CUT = ("[no main]",)
_TIMES = 8
_LONG_HZ = 99
_PERCENT = 2
"""Of a CPU, that a profiler may take that is left on."""
_PEER = "perf record --call-graph dwarf, perf script"


class _Cost(NamedTuple):
    """Seconds of CPU, bytes written, and samples by stack, from `main` on."""

    cpu_s: float
    written: int
    stacks: Counter[tuple[str, ...]]


def _source() -> str:
    """A tree of functions, each of which calls its first child most often."""
    lines = [
        "volatile unsigned long sink;",
        "#define STEP __attribute__((noinline, noipa)) static void",
        "STEP leaf(unsigned n) { for (unsigned i = 0; i < n; i++) sink += i * i ^ sink >> 3; }",
    ]

    def write(name: str, depth: int) -> None:
        children = [f"{name}{letter}" for letter in "abc"[:_BRANCHES]]
        if depth == _DEPTH:
            weight = 3 ** sum("cba".index(letter) for letter in name[1:])
            lines.append(f"STEP {name}(void) {{ leaf({40 * weight}); sink++; }}")
            return
        for child in children:
            write(child, depth + 1)
        calls = " ".join(f"{child}(); sink++;" for child in children)
        lines.append(f"STEP {name}(void) {{ {calls} }}")

    write("f", 0)
    return "\n".join([*lines, "int main(void) { for (;;) { f(); sink++; } }"])


def _start(command: Sequence[object], output: Path) -> subprocess.Popen[bytes]:
    with output.open("wb") as file:
        return subprocess.Popen(
            list(map(str, command)),
            stdout=file,
            stderr=subprocess.DEVNULL,
            stdin=subprocess.DEVNULL,
        )


def _of_folded(text: str) -> Counter[tuple[str, ...]]:
    stacks: Counter[tuple[str, ...]] = Counter()
    for line in text.splitlines():
        path, _, weight = line.rpartition(" ")
        names = path.split(";")
        if _ROOT in names:
            stacks[tuple(names[names.index(_ROOT) :])] += int(weight)
        else:
            stacks[_CUT] += int(weight)
    return stacks


def _of_script(text: str) -> Counter[tuple[str, ...]]:
    stacks: Counter[tuple[str, ...]] = Counter()
    for sample in text.split("\n\n"):
        matches = [_SAMPLE.match(line) for line in sample.splitlines()]
        names = [match[1] for match in reversed(matches) if match]
        if _ROOT in names:
            stacks[tuple(names[names.index(_ROOT) :])] += 1
        elif names:
            stacks[_CUT] += 1
    return stacks


def _both(pid: int, folder: Path, seconds: int, frequency: int) -> tuple[_Cost, _Cost]:
    """Both tools on one process, at the same time."""
    ours = [sys.executable, "-m", "purebpf", "profile", "-U", "-F", frequency, "-p", pid]
    data = folder / "perf.data"
    perf = ["perf", "record", "-q", "-e", "cpu-clock:u", "-F", frequency, "--call-graph", "dwarf"]
    children = [
        _start([*ours, "--format", "folded", seconds], folder / "folded"),
        _start([*perf, "-p", pid, "-o", data, "--", "sleep", seconds], folder / "none"),
    ]
    our_s, record_s = map(cpu_s, children)
    words = ["perf", "script", "-i", data, "--no-inline", "-F", "comm,pid,ip,sym"]
    script_s = cpu_s(_start(words, folder / "script"))
    folded = _of_folded((folder / "folded").read_text())
    scripted = _of_script((folder / "script").read_text())
    return (
        _Cost(our_s, 0, folded),
        _Cost(record_s + script_s, data.stat().st_size, scripted),
    )


def _differences(ours: Counter[tuple[str, ...]], theirs: Counter[tuple[str, ...]]) -> list[float]:
    """By how many standard errors the shares of the heaviest stacks differ."""
    sizes = ours.total(), theirs.total()
    both = ours + theirs
    found = []
    for stack, weight in both.most_common(_TOP):
        share = weight / sum(sizes)
        error = math.sqrt(share * (1 - share) * sum(1 / size for size in sizes))
        found.append(abs(ours[stack] / sizes[0] - theirs[stack] / sizes[1]) / error)
    return found


def measure(options: argparse.Namespace) -> Iterator[Figure]:
    """Every figure."""
    compileall.compile_dir(_ROOT_FOLDER / "purebpf", quiet=1)  # as pip does
    rounds: list[tuple[tuple[_Cost, _Cost], tuple[_Cost, _Cost]]] = []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        (folder / "paths.c").write_text(_source())
        command = ["gcc", "-O2", "-fomit-frame-pointer", "-w", "-o", "paths", "paths.c"]
        subprocess.run(command, cwd=folder, check=True)
        child = subprocess.Popen([folder / "paths"])
        stack.callback(child.wait)
        stack.callback(child.kill)
        for _ in range(options.rounds):
            seldom = _both(child.pid, folder, options.seconds, options.frequency)
            often = _both(child.pid, folder, options.seconds, _TIMES * options.frequency)
            rounds.append((seldom, often))
        long = _both(child.pid, folder, 60 * options.minutes, _LONG_HZ)
    seldom, often = min(rounds, key=lambda both: both[0][0].cpu_s / both[0][1].cpu_s)
    yield from _figures(f"{options.seconds} s at {options.frequency} Hz", *seldom)
    yield from _figures(f"{options.seconds} s at {_TIMES * options.frequency} Hz", *often)
    ours, theirs = (
        (often[tool].cpu_s - seldom[tool].cpu_s)
        / max(1, often[tool].stacks.total() - seldom[tool].stacks.total())
        for tool in (0, 1)
    )
    yield Figure("CPU of each further sample", 1e6 * ours, "us", _PEER, 1e6 * theirs)
    name = f"{options.minutes} min at {_LONG_HZ} Hz"
    yield from _figures(name, *long, most=None)
    percent = 100 * long[0].cpu_s / (60 * options.minutes)
    yield Figure(f"{name}: of a CPU, start and result included", percent, "%", limit=_PERCENT)


def _figures(name: str, ours: _Cost, theirs: _Cost, most: float | None = _CPU) -> Iterator[Figure]:
    counts = ours.stacks.total(), theirs.stacks.total()
    yield Figure(f"{name}: CPU of the whole tool", ours.cpu_s, "s", _PEER, theirs.cpu_s, most)
    yield Figure(f"{name}: written to disk", ours.written / 1e6, "MB", _PEER, theirs.written / 1e6)
    yield Figure(f"{name}: samples", counts[0], "", _PEER, counts[1])
    cuts = [100 * cost.stacks[_CUT] / cost.stacks.total() for cost in (ours, theirs)]
    yield Figure(f"{name}: stacks without main", cuts[0], "%", _PEER, cuts[1])
    largest = max(_differences(ours.stacks, theirs.stacks))
    what = f"{name}: largest difference of the {_TOP} heaviest stacks, in standard errors"
    yield Figure(what, largest, "", limit=_CHANCE)


if __name__ == "__main__":
    parser = results.parser(__doc__, rounds=1)
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--frequency", type=int, default=499)
    parser.add_argument("--minutes", type=int, default=1)
    sys.exit(results.run(measure, parser.parse_args()))
