"""Calls and their sums as text, JSON or CSV. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from textwrap import wrap

from purebpf.cli.event_lines import JsonLines, clock, event_document, fit, json_lines, timestamp
from purebpf.results import Loss
from purebpf.results.model.csv_line import csv_line
from purebpf.results.model.spelling import printable
from purebpf.results.model.units import in_unit
from purebpf.tools.latency.calls import Branch, Call, Interval, LatencyRow
from purebpf.tools.latency.scale import Scale
from purebpf.tuples import NamedTuple

__all__ = ["Csv", "Folded", "Json", "LatencyText", "Result", "Shape", "percentiles"]

PERCENTS = (50, 90, 99)
NO_TIME = "-"
_WIDTH = 80
_CALLS = f"{'TIME':12} {'PID':>7} {'COMM':15} {'TOOK':>7} FUNCTION"
_SUMS = f"{'CALLS':>8} {'TOTAL':>7} {'AVG':>7} {'MIN':>7} {'p50':>7} {'p99':>7} {'MAX':>7} FUNCTION"
_COUNTS = f"{'CALLS':>10} {'CALLS/s':>10} FUNCTION"
_TREE = f"{'CALLS':>8} {'TOTAL':>7} {'SELF':>7} FUNCTION"


class Result(NamedTuple):
    """The result of a finished run.

    `walking` is how stacks were walked; `notes` are sentences about functions that are not timed,
    or not to their ends.
    """

    rows: Sequence[LatencyRow]
    branches: Sequence[Branch]
    elapsed_s: float
    walking: Mapping[str, object] = {}
    notes: Sequence[str] = ()


class Shape(NamedTuple):
    """The layout of tables.

    Attributes:
        by: how rows are grouped, as the user has put it.
        only_count: calls are counted, not timed.
        tree: there is one.
        slow: there are calls one by one.
        every: there are intervals.
        histogram: below each row; False: where there is one row.
        most: rows to print.
        scale: of histograms.
    """

    by: str = ""
    only_count: bool = False
    tree: bool = False
    slow: bool = False
    every: bool = False
    histogram: bool = False
    most: int = 20
    scale: Scale = Scale()


class LatencyText:
    """A line for each slow call, a table for each interval, and one at the end."""

    def __init__(self, result: Callable[[], Result], shape: Shape) -> None:
        self._result = result
        self._shape = shape
        self._width: int | None = None

    def begin(self, width: int | None) -> Iterable[str]:
        """The header of calls, where there are any."""
        self._width = width
        if self._shape.slow:
            yield _CALLS + "\n"

    def show(self, events: Iterable[Call | Interval]) -> Iterator[str]:
        """A line for each call, a table for each interval."""
        for event in events:
            if isinstance(event, Interval):
                yield f"\n{clock(event.time_ns)}\n"
                yield from self._table(event.rows, event.elapsed_s)
            else:
                yield fit(_line(event), self._width) + "\n"
                for name in (*event.kernel_stack, *event.user_stack):
                    yield f"{'':10}{printable(name)}\n"

    def end(self, loss: Loss) -> Iterator[str]:
        """The table, and the tree."""
        del loss
        result, shape = self._result(), self._shape
        if shape.slow:
            yield "\n"
        if why := result.walking.get("call_graph_why"):
            yield f"stacks by frame pointers, as tables are not possible: {why}\n\n"
        if not shape.every:  # the last interval has been shown
            yield from self._table(result.rows, result.elapsed_s)
        if shape.tree and result.branches:
            yield f"\n{_TREE}\n"
            for branch in result.branches:
                yield fit(_branch_line(branch), self._width) + "\n"
        for note in result.notes:
            yield from (line + "\n" for line in wrap(note, _WIDTH))

    def _table(self, rows: Sequence[LatencyRow], elapsed_s: float) -> Iterator[str]:
        if not rows:
            yield "no calls\n"
            return
        shape = self._shape
        header = _COUNTS if shape.only_count else _SUMS
        yield f"{header}{f' [{shape.by}]' if shape.by else ''}\n"
        for row in rows[: shape.most]:
            line = _count_line(row, elapsed_s) if shape.only_count else _sum_line(row, shape.scale)
            yield fit(f"{line} {printable(_name(row, shape.by))}", self._width) + "\n"
            if row.is_timed and not shape.only_count and (shape.histogram or len(rows) == 1):
                yield from shape.scale.picture(row.buckets)
        if (rest := len(rows) - shape.most) > 0:
            yield f"... and {rest} more (-E)\n"


class Json(JsonLines[Call | Interval]):
    """An object for each slow call and interval, then one for all."""

    def __init__(self, result: Callable[[], Result], shape: Shape) -> None:
        self._result = result
        self._shape = shape

    def document(self, event: Call | Interval) -> dict[str, object]:
        """Every field."""
        fields: dict[str, object] = event._asdict()
        time_ns = event.time_ns
        del fields["time_ns"]
        if isinstance(event, Interval):
            fields["rows"] = [self._row(row) for row in event.rows]
            return event_document("interval", time_ns, fields)
        return event_document("call", time_ns, fields)

    def end(self, loss: Loss) -> Iterator[str]:
        """Yield the sums and the losses."""
        result, shape = self._result(), self._shape
        summary: dict[str, object] = {
            "event": "summary",
            "by": shape.by,
            "elapsed_s": round(result.elapsed_s, 6),
            "rows": [self._row(row) for row in result.rows],
            **result.walking,
        }
        if result.notes:
            summary["notes"] = list(result.notes)
        if shape.tree:
            summary["branches"] = [branch._asdict() for branch in result.branches]
        yield from json_lines([summary])
        yield from super().end(loss)

    def _row(self, row: LatencyRow) -> dict[str, object]:
        fields: dict[str, object] = row._asdict()
        if self._shape.only_count or not row.is_timed:
            return {
                name: value
                for name, value in fields.items()
                if name != "buckets" and not name.endswith("_ns")
            }
        scale = self._shape.scale
        for percent, value in zip(PERCENTS, percentiles(row, scale), strict=True):
            fields[f"p{percent}_ns"] = value
        fields["buckets"] = [
            [*scale.bounds_ns(bucket), count] for bucket, count in enumerate(row.buckets) if count
        ]
        return fields


class Csv:
    """A line for each row, of each interval or of all."""

    def __init__(self, result: Callable[[], Result], shape: Shape) -> None:
        self._result = result
        self._shape = shape

    def begin(self, width: int | None) -> Iterable[str]:
        """The names of the columns; times are in nanoseconds."""
        del width
        marks = [f"p{percent}_ns" for percent in PERCENTS]
        columns = ["function", "group", "pid", "tid", "calls"]
        if not self._shape.only_count:
            columns += ["total_ns", "least_ns", *marks, "most_ns"]
        yield csv_line((["time"] if self._shape.every else []) + columns)

    def show(self, events: Iterable[Call | Interval]) -> Iterator[str]:
        """The rows of intervals."""
        for event in events:
            if isinstance(event, Interval):
                for row in event.rows:
                    yield csv_line([timestamp(event.time_ns), *self._cells(row)])

    def end(self, loss: Loss) -> Iterator[str]:
        """The rows of all."""
        del loss
        if not self._shape.every:
            for row in self._result().rows:
                yield csv_line(self._cells(row))

    def _cells(self, row: LatencyRow) -> list[object]:
        cells: list[object] = [row.function, row.group, row.pid, row.tid, row.calls]
        if not self._shape.only_count:
            if not row.is_timed:
                return [*cells, *[""] * (len(PERCENTS) + 3)]
            marks = percentiles(row, self._shape.scale)
            cells += [row.total_ns, row.least_ns, *marks, row.most_ns]
        return cells


class Folded:
    """The tree, a line for each path with its own time in microseconds."""

    def __init__(self, result: Callable[[], Result], shape: Shape) -> None:
        del shape
        self._result = result

    def begin(self, width: int | None) -> Iterable[str]:
        """Nothing."""
        del width
        return ()

    def show(self, events: Iterable[Call | Interval]) -> Iterable[str]:
        """Nothing."""
        del events
        return ()

    def end(self, loss: Loss) -> Iterator[str]:
        """The lines."""
        del loss
        for branch in self._result().branches:
            names = (printable(name).replace(";", ":") for name in branch.path)
            yield f"{';'.join(names)} {round(branch.self_ns / 1000)}\n"


def percentiles(row: LatencyRow, scale: Scale) -> list[int]:
    """In nanoseconds, of `PERCENTS`."""
    return [
        scale.percentile_ns(row.buckets, percent, row.least_ns, row.most_ns) or 0
        for percent in PERCENTS
    ]


def _line(call: Call) -> str:
    return (
        f"{clock(call.time_ns)} {call.pid:>7} {printable(call.comm):15} "
        f"{in_unit(call.took_ns):>7} {printable(call.function)}"
    )


def _sum_line(row: LatencyRow, scale: Scale) -> str:
    if not row.is_timed:
        return f"{row.calls:>8}{f' {NO_TIME:>7}' * 6}"
    middle, _, high = percentiles(row, scale)
    times = (row.total_ns // max(row.calls, 1), row.least_ns, middle, high, row.most_ns)
    marks = " ".join(f"{in_unit(time_ns):>7}" for time_ns in times)
    return f"{row.calls:>8} {in_unit(row.total_ns):>7} {marks}"


def _count_line(row: LatencyRow, elapsed_s: float) -> str:
    return f"{row.calls:>10} {row.calls / elapsed_s if elapsed_s else 0:>10.1f}"


def _branch_line(branch: Branch) -> str:
    *callers, name = branch.path
    return (
        f"{branch.calls:>8} {in_unit(branch.total_ns):>7} "
        f"{in_unit(branch.self_ns):>7} {'  ' * len(callers)}{printable(name)}"
    )


def _name(row: LatencyRow, by: str) -> str:
    if not by:
        return row.function
    group = row.group
    if row.pid:
        group += f" ({row.pid}/{row.tid})" if row.tid else f" ({row.pid})"
    return f"{row.function} [{group}]"
