"""Each run of the kernel's own work on a line, as `perf kwork timehist` has it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from purebpf.cli.event_lines import fit, json_lines
from purebpf.results.model.csv_line import csv_line
from purebpf.results.model.spelling import printable
from purebpf.results.model.width import cut, pad
from purebpf.tools.kwork.rows import Run

__all__ = ["header", "run_lines"]

_NAME = 30
_FIELDS = ("began_ns", "ended_ns", "cpu", "kind", "name", "wait_ns")
_MS = 1e6


def header(form: str) -> list[str]:
    """The first line, of "text", "json" or "csv"."""
    if form == "csv":
        return [",".join(_FIELDS) + "\n"]
    if form == "json":
        return []
    kind = f"{'KIND':7} {'NAME':{_NAME}}"
    return [f"{'START (s)':>17} {'END (s)':>17}  CPU {kind} {'RUN (ms)':>10} {'WAIT (ms)':>10}\n"]


def run_lines(runs: Iterable[Run], form: str, width: int | None) -> Iterator[str]:
    """A line for each run, in the order in which they ended."""
    if form == "json":
        yield from json_lines({"event": "run", **run._asdict()} for run in runs)
        return
    for run in runs:
        yield csv_line(list(run)) if form == "csv" else fit(_line(run), width) + "\n"


def _line(run: Run) -> str:
    name = pad(cut(printable(run.name), _NAME), _NAME)
    wait = "-" if run.wait_ns is None else f"{run.wait_ns / _MS:.3f}"
    took = (run.ended_ns - run.began_ns) / _MS
    began, ended = _seconds(run.began_ns), _seconds(run.ended_ns)
    return f"{began:>17} {ended:>17} {run.cpu:4d} {run.kind:7} {name} {took:10.3f} {wait:>10}"


def _seconds(time_ns: int) -> str:
    return f"{time_ns // 1_000_000_000}.{time_ns % 1_000_000_000 // 1000:06d}"
