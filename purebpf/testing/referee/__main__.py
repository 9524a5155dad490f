"""Run every profiler that is installed on every program, and print a table."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from purebpf.files.atomic_file import PartFile
from purebpf.testing.referee.profilers import PROFILERS, Profiler, installed, observe
from purebpf.testing.referee.programs import Program, build, read_truth, run_alone
from purebpf.testing.referee.scores import score

__all__ = ["judge", "main"]


def judge(
    programs: Iterable[Program], folder: Path, *, frequency: int, tenths: int, rounds: int
) -> Iterator[dict[str, Any]]:
    """Run each profiler on each program, in turns with the program alone.

    Args:
        programs: the ones to run.
        folder: for outputs.
        frequency: samples a second of CPU time.
        tenths: how long a program works, in tenths of a second of CPU time.
        rounds: runs of each pair.

    Yields:
        A row a run: program, profiler, and either the fields of
        [`Score`][purebpf.testing.referee.scores.Score] with tool_cpu_s and slow_down, or failed.
    """
    for program in programs:
        usable = [
            profiler
            for profiler in PROFILERS
            if (program.python or not profiler.python_only)
            and installed(profiler, program.command[0])
        ]
        for turn in range(rounds):
            for profiler in usable:
                work = folder / f"{program.name}-{PROFILERS.index(profiler)}-{turn}"
                work.mkdir()
                row = {"program": program.name, "profiler": profiler.name}
                yield row | _run(program, profiler, work, frequency, tenths)


def _run(
    program: Program, profiler: Profiler, work: Path, frequency: int, tenths: int
) -> dict[str, Any]:
    alone, watched = work / "alone.json", work / "truth.json"
    run_alone(program, alone, tenths)
    try:
        seen = observe(
            profiler,
            program.line(watched, tenths),
            frequency,
            work,
            lambda: read_truth(watched).cpu_s,
        )
        truth = read_truth(watched)
        result = score(truth, seen, frequency)
    except (OSError, RuntimeError, ValueError) as error:
        return {"failed": str(error)}
    slow_down = truth.cpu_s / read_truth(alone).cpu_s - 1
    return result._asdict() | {"tool_cpu_s": seen.tool_cpu_s, "slow_down": slow_down}


_COLUMNS = {
    "impossible": "impossible",
    "cut": "cut",
    "error": "share error",
    "floor": "(chance)",
    "missed": "missed",
    "unnamed": "unnamed",
    "slow_down": "slow-down",
}


def _table(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    pairs = dict.fromkeys((row["program"], row["profiler"]) for row in rows)
    yield f"{'program':9} {'profiler':21} " + " ".join(
        f"{title:>11}" for title in _COLUMNS.values()
    )
    yield "  tool CPU s\n"
    for program, profiler in pairs:
        runs = [row for row in rows if (row["program"], row["profiler"]) == (program, profiler)]
        good = [run for run in runs if "failed" not in run]
        yield f"{program:9} {profiler:21} "
        if good:
            for column in _COLUMNS:
                yield f"{100 * statistics.median(run[column] for run in good):9.1f} % "
            yield f"{statistics.median(run['tool_cpu_s'] for run in good):11.2f}"
        for run in runs:
            if "failed" in run:
                yield f" {run['failed']}"
        yield "\n"


def _keep(path: str, rows: Sequence[dict[str, Any]]) -> None:
    part = PartFile(path)
    with os.fdopen(part.fd, "w") as out:
        json.dump(rows, out, indent=1)
        out.write("\n")
    part.commit()


def main(argv: Sequence[str] | None = None) -> int:
    """Run the referee."""
    parser = argparse.ArgumentParser("python -P -m purebpf.testing.referee", description=__doc__)
    parser.add_argument("-F", "--frequency", type=int, default=199, help="Hertz (default 199)")
    parser.add_argument("--seconds", type=float, default=4, help="CPU time of a run (default 4)")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each pair (default 3)")
    parser.add_argument("--programs", nargs="*", metavar="NAME", help="these alone, as threads")
    parser.add_argument("--python", default=sys.executable, help="the CPython that runs threads")
    parser.add_argument(
        "--frame-pointers", action="store_true", help="compile programs with frame pointers"
    )
    parser.add_argument("--json", metavar="FILE", help="write all runs there, too")
    options = parser.parse_args(argv)
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        programs = build(folder, options.python, frame_pointers=options.frame_pointers)
        for row in judge(
            (item for item in programs if not options.programs or item.name in options.programs),
            folder,
            frequency=options.frequency,
            tenths=max(1, round(options.seconds * 10)),
            rounds=options.rounds,
        ):
            rows.append(row)
            sys.stderr.write(f"{row['program']}, {row['profiler']}\n")
    if options.json:
        _keep(options.json, rows)
    sys.stdout.writelines(_table(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
