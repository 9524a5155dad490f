"""A table as text in perf's layout, as JSON, as CSV. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from purebpf.results.model.json_values import json_object
from purebpf.tools.summary.calls import errno_name
from purebpf.tools.summary.options import View
from purebpf.tools.summary.table import Faults, Group, Label, SummaryRow, Table, sort_groups
from purebpf.tools.summary.text import PERCENTILES, longest_first, pieces

__all__ = ["csv_header", "render"]

_CSV = (
    *("interval", "mode", "id", "name", "syscall", "nr", "abi", "calls", "errors", "total_ns"),
    *("min_ns", "avg_ns", "max_ns", "stddev_pct", "p50_ns", "p95_ns", "p99_ns", "errno"),
    "untimed",
)


def render(table: Table, view: View) -> Iterable[str]:
    """The pieces of the output. One JSON object is one line; CSV comes without its header."""
    if view.format == "json":
        return [_json(table, view)]
    if view.format == "csv":
        return _csv(table, view)
    return pieces(table, view)


def csv_header() -> str:
    """The line above all rows of CSV."""
    return ",".join(_CSV) + "\n"


def _json(table: Table, view: View) -> str:
    import json  # 10 ms that text need not pay

    document = {
        "duration_ns": table.duration_ns,
        "mode": table.mode,
        "groups": [
            {
                "group": _json_label(table.mode, group.label),
                "rows": [_json_row(row) for row in group.rows[: view.top]],
                **_json_faults(group.faults),
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
            for call in sorted(table.open_calls, key=longest_first)
        ],
        "loss": {cause.name: cause.lost for cause in table.loss.causes},
        "cost": table.cost._asdict(),
    }
    if view.interval_s:
        document = {"interval": table.interval, "started_ns": table.started_ns, **document}
    return json.dumps(json_object("summary", document)) + "\n"


def _json_label(mode: str, label: Label) -> dict[str, Any]:
    if mode == "total":
        return {}
    if mode == "cgroup":
        return {"id": label.number, "path": label.name or None}
    if mode == "command":
        return {"comm": label.name or None}
    return {"tid" if mode == "thread" else "pid": label.number, "comm": label.name or None}


def _json_faults(faults: Faults | None) -> dict[str, Any]:
    if faults is None:
        return {}
    places = [place._asdict() for place in faults.places]
    return {"faults": {"major": faults.major, "minor": faults.minor, "places": places}}


def _json_row(row: SummaryRow) -> dict[str, Any]:
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
        **{f"p{percent}_ns": statistics.percentile_ns(percent) for percent in PERCENTILES},
        "errno": {errno_name(number): count for number, count in statistics.errnos.most_common()},
        "untimed": statistics.untimed,
    }


def _csv(table: Table, view: View) -> Iterator[str]:
    from purebpf.results.model.csv_line import csv_line

    for group in sort_groups(table.groups, view.sort, view.top):
        for row in group.rows[: view.top]:
            yield csv_line(_csv_row(table, group, row))
        for kind, count in _fault_counts(group.faults):
            label = (group.label.number, group.label.name)
            cells = [table.interval, table.mode, *label, f"{kind} faults", "", "", count]
            yield csv_line([*cells, *[""] * (len(_CSV) - len(cells))])


def _fault_counts(faults: Faults | None) -> tuple[tuple[str, int], ...]:
    """Return the kinds that are counted."""
    counts = () if faults is None else (("major", faults.major), ("minor", faults.minor))
    return tuple((kind, count) for kind, count in counts if count is not None)


def _csv_row(table: Table, group: Group, row: SummaryRow) -> list[object]:
    fields = _json_row(row)
    errnos, untimed = fields.pop("errno"), fields.pop("untimed")
    fields["avg_ns"] = f"{fields['avg_ns']:.3f}"
    fields["stddev_pct"] = f"{fields['stddev_pct']:.4f}"
    return [
        table.interval,
        table.mode,
        group.label.number,
        group.label.name,
        *fields.values(),
        ";".join(f"{name}={count}" for name, count in errnos.items()),
        untimed,
    ]
