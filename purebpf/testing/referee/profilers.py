"""The profilers that the referee compares, each with its best options for the question."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from purebpf.testing.referee.scores import Observation
from purebpf.tuples import NamedTuple

__all__ = ["PROFILERS", "Profiler", "installed", "observe"]

_OFFSET = re.compile(r"\+0x[0-9a-f]+$")
_COUNTED = re.compile(r"^(.*) (\d+)$")
_LOST = re.compile(r"lost: ([\d,]+) of")

Stacks = Mapping[tuple[str, ...], int]


class Profiler(NamedTuple):
    """A profiler, and how to ask it.

    Attributes:
        name: as the table shows it.
        needs: the program that must be installed, or as `PYTHON -m MODULE` a module of the
            programs' CPython; "" for none.
        python_only: whether it shows programs of CPython alone.
        steps: the commands to run one after another; the first one starts the program.
        read: from the folder in which they ran, the stacks by count, and the lost samples.
    """

    name: str
    needs: str
    python_only: bool
    steps: Callable[[Sequence[str], int], Sequence[Sequence[str]]]
    read: Callable[[Path], tuple[Stacks, int]]


def observe(
    profiler: Profiler,
    command: Sequence[str],
    frequency: int,
    folder: Path,
    program_cpu_s: Callable[[], float],
) -> Observation:
    """Run a program under a profiler.

    Args:
        profiler: the profiler.
        command: the program with its arguments.
        frequency: samples a second of CPU time.
        folder: an empty one, for output: `out-N` and `err-N` of each step.
        program_cpu_s: reads the CPU time of the program, after it ran.

    Raises:
        OSError: a step cannot be started.
        RuntimeError: a step failed; with its last line.
    """
    before = os.times()
    for number, step in enumerate(profiler.steps(command, frequency)):
        with (
            (folder / f"out-{number}").open("wb") as out,
            (folder / f"err-{number}").open("wb") as err,
        ):
            ended = subprocess.run(step, stdout=out, stderr=err, cwd=folder, check=False)
        if ended.returncode:
            lines = (folder / f"err-{number}").read_text(errors="replace").strip().splitlines()
            raise RuntimeError(f"{step[0]}: exit status {ended.returncode}: {(lines or [''])[-1]}")
    after = os.times()
    used = (
        after.children_user - before.children_user + after.children_system - before.children_system
    )
    stacks, lost = profiler.read(folder)
    return Observation(stacks, lost, max(0.0, used - program_cpu_s()))


def _purebpf(command: Sequence[str], frequency: int) -> Sequence[Sequence[str]]:
    program = [sys.executable, "-P", "-m", "purebpf", "profile"]
    return [[*program, "-f", "-U", "-F", str(frequency), "--", *command]]


def _read_purebpf(folder: Path) -> tuple[Stacks, int]:
    said = _LOST.search((folder / "err-0").read_text(errors="replace"))
    # the first frame is the name of the command
    return _folded(folder / "out-0", leave_out=1), _number(said)


def _perf(*call_graph: str) -> Callable[[Sequence[str], int], Sequence[Sequence[str]]]:
    def steps(command: Sequence[str], frequency: int) -> Sequence[Sequence[str]]:
        # CPythons from 3.12 on name their functions in a perf map; older ones ignore this
        named = ["env", "PYTHONPERFSUPPORT=1"]
        record = [
            *named,
            "perf",
            "record",
            "-q",
            "-e",
            "cpu-clock",
            "-F",
            str(frequency),
            *call_graph,
        ]
        script = ["perf", "script", "--no-inline", "-F", "comm,tid,ip,sym"]
        return [[*record, "-o", "perf.data", "--", *command], [*script, "-i", "perf.data"]]

    return steps


def _read_perf(folder: Path) -> tuple[Stacks, int]:
    stacks: Counter[tuple[str, ...]] = Counter()
    frames: list[str] = []
    for line in [*(folder / "out-1").read_text(errors="replace").splitlines(), ""]:
        if line.startswith(("\t", "  ")) and line.strip():
            address, _, symbol = line.strip().partition(" ")
            frames.append(_OFFSET.sub("", symbol) or address)
        elif frames:
            stacks[tuple(reversed(frames))] += 1
            frames = []
    lost = re.search(
        r"lost (\d+) (?:chunks|samples)", (folder / "err-0").read_text(errors="replace")
    )
    return stacks, _number(lost)


_WATCH_WITH_BPFTRACE = """
sh -c 'kill -STOP $$; exec "$@"' sh "$@" &
program=$!
bpftrace -B none -e "
    profile:hz:$FREQUENCY /pid == $program/ { @[ustack(perf, 127)] = count(); @last[0] = nsecs; }
    interval:ms:100 /!@ready[0]/ { @ready[0] = 1; printf(\\"ready\\\\n\\"); }
    interval:ms:100 /@last[0] && nsecs - @last[0] > 3000000000/ { exit(); }
" >stacks &
tracer=$!
until grep -q ready stacks; do
    kill -0 $tracer || { kill -KILL $program; exit 1; }
    sleep 0.1
done
kill -CONT $program
wait $tracer
kill -KILL $program
wait $program || true # its CPU time is not bpftrace's
"""
"""bpftrace finds names only in a living process that it did not start itself."""


def _bpftrace(command: Sequence[str], frequency: int) -> Sequence[Sequence[str]]:
    settings = ["REFEREE_STAYS=1", f"FREQUENCY={frequency}"]
    return [["env", *settings, "sh", "-c", _WATCH_WITH_BPFTRACE, "sh", *command]]


def _read_bpftrace(folder: Path) -> tuple[Stacks, int]:
    stacks: Counter[tuple[str, ...]] = Counter()
    frames: list[str] = []
    for line in (folder / "stacks").read_text(errors="replace").splitlines():
        if line.startswith("\t"):
            address, _, symbol = line.strip().partition(" ")
            frames.append(_OFFSET.sub("", symbol.partition(" (")[0]) or address)
        elif ended := re.match(r"\]: (\d+)$", line):
            stacks[tuple(reversed(frames))] += int(ended[1])
            frames = []
        elif line.startswith("@["):
            frames = []
    return stacks, 0


def _pyspy(command: Sequence[str], frequency: int) -> Sequence[Sequence[str]]:
    record = ["py-spy", "record", "--format", "raw", "--gil", "--nolineno", "-r", str(frequency)]
    return [[*record, "-o", "raw", "--", *command]]


def _read_pyspy(folder: Path) -> tuple[Stacks, int]:
    return _folded(folder / "raw"), 0


def _austin(command: Sequence[str], frequency: int) -> Sequence[Sequence[str]]:
    interval_us = str(round(1e6 / frequency))
    return [["austin", "-s", "-t", "10s", "-i", interval_us, "-o", "raw", *command]]


def _read_austin(folder: Path) -> tuple[Stacks, int]:
    """Read `P1;T2;file:function:line;... microseconds`, where each line is a sample."""
    stacks: Counter[tuple[str, ...]] = Counter()
    for line in (folder / "raw").read_text(errors="replace").splitlines():
        if match := _COUNTED.match(line):
            stacks[tuple(match[1].split(";")[2:])] += 1
    return _named_by_file(stacks), 0


_RUN_WITH_MODULE = """
# it wants a locale that exists, and the interpreter may be in a root of its own
LC_ALL=C exec "$0" -m profiling.sampling run --mode cpu --all-threads --native --collapsed \\
    -r $FREQUENCY -o "$PWD/raw" "$@"
"""


def _sampling_module(command: Sequence[str], frequency: int) -> Sequence[Sequence[str]]:
    return [["env", f"FREQUENCY={frequency}", "sh", "-c", _RUN_WITH_MODULE, *command]]


def _read_module(folder: Path) -> tuple[Stacks, int]:
    return _named_by_file(_folded(folder / "raw", leave_out=1)), 0


def _named_by_file(stacks: Stacks) -> Stacks:
    """Shorten frames like `file:function:line` to the function."""
    named: Counter[tuple[str, ...]] = Counter()
    for stack, count in stacks.items():
        parts = (frame.rsplit(":", 2) for frame in stack)
        named[tuple(part[1] if len(part) > 2 else part[0] for part in parts)] += count  # noqa: PLR2004
    return named


def _folded(file: Path, leave_out: int = 0) -> Stacks:
    """Read folded stacks, without so many of their first frames."""
    stacks: Counter[tuple[str, ...]] = Counter()
    for match in filter(None, map(_COUNTED.match, file.read_text(errors="replace").splitlines())):
        stacks[tuple(match[1].split(";")[leave_out:])] += int(match[2])
    return stacks


def _number(match: re.Match[str] | None) -> int:
    return int(match[1].replace(",", "")) if match else 0


PROFILERS = (
    Profiler("purebpf", "", False, _purebpf, _read_purebpf),
    Profiler("perf, frame pointers", "perf", False, _perf("-g"), _read_perf),
    Profiler("perf, DWARF", "perf", False, _perf("--call-graph", "dwarf,65528"), _read_perf),
    Profiler("bpftrace", "bpftrace", False, _bpftrace, _read_bpftrace),
    Profiler("py-spy", "py-spy", True, _pyspy, _read_pyspy),
    Profiler("austin", "austin", True, _austin, _read_austin),
    Profiler(
        "profiling.sampling", "PYTHON -m profiling.sampling", True, _sampling_module, _read_module
    ),
)
"""All, ours first."""


def installed(profiler: Profiler, python: str) -> bool:
    """Tell if the profiler can be run here, on programs that `python` runs."""
    _, is_module, module = profiler.needs.partition("PYTHON -m ")
    if is_module:
        spec = f"import sys, {module.partition('.')[0]}; import {module}"
        return not subprocess.run([python, "-c", spec], capture_output=True, check=False).returncode
    return not profiler.needs or shutil.which(profiler.needs) is not None
