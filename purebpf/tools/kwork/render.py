"""The measured work as text, JSON or CSV. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from purebpf.results.model.csv_line import csv_line
from purebpf.results.model.json_values import json_object
from purebpf.results.model.spelling import printable
from purebpf.results.model.units import in_unit
from purebpf.results.model.width import cut, pad
from purebpf.results.shape.histogram import bucket_bounds, lines, percentile
from purebpf.tools.kwork.rows import KworkRow, Result
from purebpf.tuples import NamedTuple

if TYPE_CHECKING:
    from purebpf.observe.instruments.cpu_shares import Shares

__all__ = ["Layout", "csv_header", "render"]

_COLUMNS = (
    *("time_s", "kind", "name", "cpu", "count", "total_ns", "max_ns", "p50_ns", "p99_ns"),
    *("delayed", "delay_ns", "max_delay_ns", "delay_p50_ns", "delay_p99_ns"),
)
_KEYS = {
    "runtime": lambda row: row.total_ns,
    "max": lambda row: row.max_ns,
    "count": lambda row: row.runs,
    "delay": lambda row: row.delay_ns / row.delayed if row.delayed else 0,
    "maxdelay": lambda row: row.max_delay_ns,
}
_NAME = 24
_MUCH, _PART, _HOSTS = 0.5, 0.05, 2
"""Percent of the CPUs from which the processes that a softirq interrupts are named; the part of the
time of the least of them, and how many."""


class Layout(NamedTuple):
    """The layout of the text: the columns of report, latency or top, and the choice of rows."""

    mode: str = "report"
    sort: str = "runtime"
    histogram: bool = False
    most: int = 25
    is_interval: bool = False


def render(result: Result, form: str, layout: Layout) -> Iterator[str]:
    """A result in "text", "json" or "csv"; the last two have every row."""
    rows = sorted(result.rows, key=_KEYS[layout.sort], reverse=True)
    if form == "json":
        return iter([json.dumps(json_object("kwork", _document(result, rows))) + "\n"])
    if form == "csv":
        return _csv(result, rows)
    return _text(result, rows, layout)


def csv_header() -> str:
    """The first line of CSV."""
    return ",".join(_COLUMNS) + "\n"


def _text(result: Result, rows: Sequence[KworkRow], layout: Layout) -> Iterator[str]:
    if layout.is_interval:
        yield f"\n{result.time_s:.3f} s\n"
    if result.shares is not None:
        yield from _cpus_and_tasks(result.shares, layout.most)
    if layout.mode == "latency":
        rows = [row for row in rows if row.delayed]
    if not rows:
        yield "nothing ran\n"
        return
    if layout.mode == "top":
        yield _shares(result)
    columns = ("DELAYED", "WAITED", "AVG", "P50", "P99", "MAX")
    if layout.mode != "latency":
        columns = ("COUNT", "TIME", "SHARE" if layout.mode == "top" else "AVG", *columns[3:])
    head = " ".join(f"{name:>7}" for name in columns)
    yield f"{'KIND':7} {'NAME':{_NAME}} {head}\n"
    for row in rows[: layout.most]:
        yield f"{row.kind:7} {_name(row)} {_numbers(row, result, layout)}\n"
        yield from _hosts(row, result)
        for function in row.stack:
            yield f"            {printable(function)}\n"
        if layout.histogram:
            buckets = row.delay_buckets if layout.mode == "latency" else row.buckets
            yield from lines(buckets, "nsecs")
    if len(rows) > layout.most:
        yield f"... {len(rows) - layout.most} more: -E {len(rows)}\n"


def _cpus_and_tasks(shares: Shares, most: int) -> Iterator[str]:
    """Yield the time of each CPU, then the tasks with the most time, in percent of a CPU."""
    yield f"{'CPU':>7} {'TASKS':>7} {'SOFTIRQ':>7} {'IRQ':>7} {'IDLE':>7}\n"
    whole_ns = 0
    for share in shares.cpus:
        whole_ns = max(whole_ns, sum(share[1:]))
        parts = " ".join(f"{_share(part, sum(share[1:])):>7}" for part in share[1:])
        yield f"{share.cpu:7d} {parts}\n"
    yield f"{'PID':>7} {'TID':>7} {'%CPU':>7} {'TIME':>7} COMM\n"
    for task in shares.tasks[:most]:
        numbers = f"{_share(task.time_ns, whole_ns):>7} {in_unit(task.time_ns):>7}"
        yield f"{task.pid:7d} {task.tid:7d} {numbers} {printable(task.comm)}\n"
    if len(shares.tasks) > most:
        yield f"... {len(shares.tasks) - most} more: -E {len(shares.tasks)}\n"


def _share(part_ns: int, whole_ns: int) -> str:
    return f"{100 * part_ns / whole_ns:.2f}%" if whole_ns else "-"


def _name(row: KworkRow) -> str:
    name = printable(row.name) if row.cpu < 0 else f"{row.cpu:>3} {printable(row.name)}"
    return pad(cut(name, _NAME), _NAME)


def _numbers(row: KworkRow, result: Result, layout: Layout) -> str:
    if layout.mode == "latency":
        count, total_ns, longest_ns, buckets = (
            row.delayed, row.delay_ns, row.max_delay_ns, row.delay_buckets,
        )  # fmt: skip
    else:
        count, total_ns, longest_ns, buckets = row.runs, row.total_ns, row.max_ns, row.buckets
    third = in_unit(total_ns // count if count else 0)
    if layout.mode == "top":
        third = f"{_percent(total_ns, result):.2f}%"
    marks = map(in_unit, _marks(buckets, longest_ns))
    texts = (str(count), in_unit(total_ns), third, *marks, in_unit(longest_ns))
    return " ".join(f"{text:>7}" for text in texts)


def _hosts(row: KworkRow, result: Result) -> Iterator[str]:
    """Yield a line about the processes in which a softirq took much time."""
    if row.kind != "softirq" or row.cpu >= 0 or _percent(row.total_ns, result) < _MUCH:
        return
    shares = [
        f"{printable(host.comm)} ({host.pid}) {100 * host.total_ns / row.total_ns:.0f} %"
        for host in result.hosts
        if host.softirq == row.name and host.total_ns > _PART * row.total_ns
    ]
    if shares:
        yield f"        in the time of {', '.join(shares[:_HOSTS])}\n"


def _percent(time_ns: int, result: Result) -> float:
    """Return the percentage of the time of all CPUs."""
    return 100 * time_ns / (1e9 * result.elapsed_s * result.cpus) if result.elapsed_s else 0.0


def _shares(result: Result) -> str:
    """Return the share of the CPUs' time of each kind."""
    sums: dict[str, int] = {}
    for row in result.rows:
        sums[row.kind] = sums.get(row.kind, 0) + row.total_ns
    parts = (f"{kind} {_percent(sums[kind], result):.2f}%" for kind in sums)
    return f"of {result.cpus} CPUs: {', '.join(parts)}\n"


def _marks(buckets: Sequence[int], most: int) -> Iterator[int]:
    """The median and the 99th percentile of times that are at most `most`; 0 of none."""
    for percent in (50, 99):
        yield percentile(buckets, percent, most=most) or 0


def _document(result: Result, rows: Sequence[KworkRow]) -> dict[str, object]:
    document: dict[str, object] = {
        "time_s": round(result.time_s, 6),
        "elapsed_s": round(result.elapsed_s, 6),
        "cpus": result.cpus,
        "rows": [_object(row) for row in rows],
        "loss": {cause.name: cause.lost for cause in result.loss.causes},
        "notes": list(result.notes),
    }
    if result.hosts:
        document["hosts"] = [host._asdict() for host in result.hosts]
    if result.shares is not None:
        document["cpu_times"] = [share._asdict() for share in result.shares.cpus]
        document["tasks"] = [task._asdict() for task in result.shares.tasks]
    return document


def _object(row: KworkRow) -> dict[str, object]:
    fields = row._asdict()
    for name in ("buckets", "delay_buckets"):
        fields[name] = [
            [*bucket_bounds(bucket), count] for bucket, count in enumerate(fields[name]) if count
        ]
    return fields


def _csv(result: Result, rows: Sequence[KworkRow]) -> Iterator[str]:
    for row in rows:
        yield csv_line(
            (
                f"{result.time_s:.6f}",
                row.kind,
                row.name,
                "" if row.cpu < 0 else row.cpu,
                row.runs,
                row.total_ns,
                row.max_ns,
                *_marks(row.buckets, row.max_ns),
                row.delayed,
                row.delay_ns,
                row.max_delay_ns,
                *_marks(row.delay_buckets, row.max_delay_ns),
            )
        )
