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
from purebpf.testing.referee.scores import Score, score, share_error

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
        A row a run: program with its variant, profiler, and either the fields of
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
                work = folder / f"run-{program.title}-{PROFILERS.index(profiler)}-{turn}"
                work.mkdir()
                row = {"program": program.title, "profiler": profiler.name}
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


_WIDTH = 11


def _table(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    pairs = dict.fromkeys((row["program"], row["profiler"]) for row in rows)
    titles = [
        *("impossible", "cut", "share error", "(chance)", "beyond", "missed", "unnamed"),
        *("slow-down", "tool CPU s"),
    ]
    yield f"{'program':12} {'profiler':21}" + "".join(f" {title:>{_WIDTH}}" for title in titles)
    yield "\n"
    for program, profiler in pairs:
        runs = [row for row in rows if (row["program"], row["profiler"]) == (program, profiler)]
        yield f"{program:12} {profiler:21}"
        if good := [run for run in runs if "failed" not in run]:
            yield from (f" {100 * share:{_WIDTH - 2}.1f} %" for share in _shares(good))
            yield f" {_median(good, 'tool_cpu_s'):{_WIDTH}.2f}"
        for run in runs:
            if "failed" in run:
                yield f" {run['failed']}"
        yield "\n"


def _shares(runs: Sequence[dict[str, Any]]) -> Iterator[float]:
    """Yield medians of the runs, and the error of the shares in all of them."""
    yield _median(runs, "impossible")
    yield _median(runs, "cut")
    yield from share_error(Score(**{name: run[name] for name in Score._fields}) for run in runs)
    for name in ("missed", "unnamed", "slow_down"):
        yield _median(runs, name)


def _median(runs: Sequence[dict[str, Any]], name: str) -> float:
    return float(statistics.median(run[name] for run in runs))


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
    parser.add_argument("--programs", nargs="*", metavar="NAME", help="these alone, as callers-fp")
    parser.add_argument(
        "--python", action="append", default=[sys.executable], metavar="PROGRAM",
        help="another CPython that runs threads, too",
    )  # fmt: skip
    parser.add_argument("--json", metavar="FILE", help="write all runs there, too")
    options = parser.parse_args(argv)
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        programs = build(folder, options.python)
        wanted = options.programs
        for row in judge(
            (each for each in programs if not wanted or each.title in wanted),
            folder,
            frequency=options.frequency,
            tenths=max(1, round(options.seconds * 10)),
            rounds=options.rounds,
        ):
            rows.append(row)
            if options.json:  # whoever ends it has what ran until then
                _keep(options.json, rows)
            sys.stderr.write(f"{row['program']}, {row['profiler']}\n")
    sys.stdout.writelines(_table(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
