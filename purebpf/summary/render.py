"""A table as text in perf's layout, as JSON, as CSV. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from purebpf.results.model.spelling import printable
from purebpf.results.shape import histogram
from purebpf.summary.calls import errno_name
from purebpf.summary.options import View
from purebpf.summary.table import Group, Label, OpenCall, Row, Table, sort_groups

__all__ = ["csv_header", "render"]

_HEAD = """\
   syscall            calls  errors  total       min       avg       max       stddev{more}
                                     (msec)    (msec)    (msec)    (msec)        (%){units}
   --------------- --------  ------ -------- --------- --------- ---------     ------{dashes}
"""
_PERCENTILES = (50, 95, 99)
_ROW = (
    "   {name:<15} {calls:8d} {errors:6d} {total:9.3f} {min:9.3f} {avg:9.3f} {max:9.3f} {std:9.2f}%"
)
_CSV = (
    *("interval", "mode", "id", "name", "syscall", "nr", "abi", "calls", "errors", "total_ns"),
    *("min_ns", "avg_ns", "max_ns", "stddev_pct", "p50_ns", "p95_ns", "p99_ns", "errno"),
)


def render(table: Table, view: View) -> Iterable[str]:
    """The pieces of the output. One JSON object is one line; CSV comes without its header."""
    if view.format == "json":
        return [_json(table, view)]
    if view.format == "csv":
        return _csv(table, view)
    return _text(table, view)


def csv_header() -> str:
    """The line above all rows of CSV."""
    return ",".join(_CSV) + "\n"


def _text(table: Table, view: View) -> Iterator[str]:
    yield "\n Summary of events:\n"
    calls = sum(group.calls for group in table.groups)
    groups = sort_groups(table.groups, view.sort, view.top)
    if not groups:
        yield "\n total, 0 events\n"
    for group in groups:
        yield f"\n {_title(table.mode, group.label)}, {group.calls} events"
        yield "" if table.mode == "total" else f", {100 * group.calls / calls:.1f}%"
        yield "\n\n"
        yield _head(percentiles=view.has_percentiles)
        for row in group.rows:
            yield from _row(row, view)
    yield "\n"
    if view.inflight and table.open_calls:
        yield from _open_calls(table.open_calls)


def _title(mode: str, label: Label) -> str:
    if mode == "total":
        return "total"
    if mode == "cgroup":
        return f"cgroup {printable(label.name) or f'id:{label.number}'}"
    return f"{printable(label.name) or '?'} ({label.number})"


def _head(*, percentiles: bool) -> str:
    if not percentiles:
        return _HEAD.format(more="", units="", dashes="")
    return _HEAD.format(
        more="".join(f"{f'p{percent}':>10}" for percent in _PERCENTILES),
        units=3 * "    (msec)",
        dashes=3 * " ---------",
    )


def _row(row: Row, view: View) -> Iterator[str]:
    statistics = row.statistics
    yield _ROW.format(
        name=row.call.name,
        calls=statistics.calls,
        errors=statistics.errors,
        total=statistics.total_ns / 1e6,
        min=statistics.min_ns / 1e6,
        avg=statistics.avg_ns / 1e6,
        max=statistics.max_ns / 1e6,
        std=statistics.stddev_pct,
    )
    if view.has_percentiles:
        for percent in _PERCENTILES:
            yield f" {(statistics.percentile_ns(percent) or 0) / 1e6:9.3f}"
    yield "\n"
    if view.errno_summary:
        for number, count in statistics.errnos.most_common():
            yield f"\t\t\t\t{errno_name(number)}: {count}\n"
    if view.histogram:
        yield "\n"
        yield from histogram.lines(statistics.buckets, "nsecs")
        yield "\n"


def _open_calls(calls: Iterable[OpenCall]) -> Iterator[str]:
    yield " Calls in flight:\n\n"
    yield "   comm               pid      tid  syscall               elapsed (msec)\n"
    yield "   --------------- ------- ------- --------------------- ----------------\n"
    for call in sorted(calls, key=_longest_first):
        elapsed = "before the run" if call.elapsed_ns is None else f"{call.elapsed_ns / 1e6:.3f}"
        yield f"   {printable(call.comm) or '?':<15} {call.pid:7d} {call.tid:7d} "
        yield f"{call.call.name:<21} {elapsed:>16}\n"
    yield "\n"


def _longest_first(call: OpenCall) -> tuple[bool, int, int]:
    """Those that were open at the start come first."""
    return call.elapsed_ns is not None, -(call.elapsed_ns or 0), call.tid


def _json(table: Table, view: View) -> str:
    import json  # 10 ms that text need not pay

    document = {
        "duration_ns": table.duration_ns,
        "mode": table.mode,
        "groups": [
            {
                "group": _json_label(table.mode, group.label),
                "rows": [_json_row(row) for row in group.rows],
            }
            for group in sort_groups(table.groups, view.sort, view.top)
        ],
        "inflight": [
            {
                "pid": call.pid,
                "tid": call.tid,
                "comm": call.comm,
                "syscall": call.call.name,
                "nr": call.call.nr,
                "abi": call.call.abi,
                "elapsed_ns": call.elapsed_ns,
            }
            for call in sorted(table.open_calls, key=_longest_first)
        ],
        "loss": {cause.name: cause.lost for cause in table.loss.causes},
        "cost": table.cost._asdict(),
    }
    if view.interval_s:
        document = {"interval": table.interval, "started_ns": table.started_ns, **document}
    return json.dumps(document) + "\n"


def _json_label(mode: str, label: Label) -> dict[str, Any]:
    if mode == "total":
        return {}
    if mode == "cgroup":
        return {"id": label.number, "path": label.name or None}
    return {"tid" if mode == "thread" else "pid": label.number, "comm": label.name or None}


def _json_row(row: Row) -> dict[str, Any]:
    statistics = row.statistics
    return {
        "syscall": row.call.name,
        "nr": row.call.nr,
        "abi": row.call.abi,
        "calls": statistics.calls,
        "errors": statistics.errors,
        "total_ns": statistics.total_ns,
        "min_ns": statistics.min_ns,
        "avg_ns": statistics.avg_ns,
        "max_ns": statistics.max_ns,
        "stddev_pct": statistics.stddev_pct,
        **{f"p{percent}_ns": statistics.percentile_ns(percent) for percent in _PERCENTILES},
        "errno": {errno_name(number): count for number, count in statistics.errnos.most_common()},
    }


def _csv(table: Table, view: View) -> Iterator[str]:
    import csv
    import io

    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    for group in sort_groups(table.groups, view.sort, view.top):
        writer.writerows(_csv_row(table, group, row) for row in group.rows)
    yield stream.getvalue()


def _csv_row(table: Table, group: Group, row: Row) -> list[object]:
    fields = _json_row(row)
    errnos = fields.pop("errno")
    fields["avg_ns"] = f"{fields['avg_ns']:.3f}"
    fields["stddev_pct"] = f"{fields['stddev_pct']:.4f}"
    return [
        table.interval,
        table.mode,
        group.label.number,
        group.label.name,
        *fields.values(),
        ";".join(f"{name}={count}" for name, count in errnos.items()),
    ]
