"""Calls over time as a page: a heat map for each function, without scripts. Pure."""

from __future__ import annotations

import heapq
import html
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from purebpf.cli.event_lines import clock
from purebpf.results import Loss
from purebpf.results.model.spelling import printable
from purebpf.results.model.units import in_unit
from purebpf.tools.latency.calls import Call, Interval, LatencyRow
from purebpf.tools.latency.render import Result, Shape, percentiles
from purebpf.tools.latency.scale import Scale
from purebpf.tuples import NamedTuple

__all__ = ["Columns", "Page"]

_MOST_COLUMNS = 240
_MOST_CALLS = 100
_WIDTH, _CELL_HEIGHT, _MARGIN = 960, 9, 84
_HEAD = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>Latency of calls</title>
<style>
body { font: 14px system-ui, sans-serif; margin: 1.5em; max-width: 1080px; }
table { border-collapse: collapse; margin: 1em 0; }
th, td { text-align: right; padding: 2px 10px; font-variant-numeric: tabular-nums; }
th:last-child, td:last-child { text-align: left; }
tr:nth-child(even) { background: #f3f3f3; }
h2 { font-size: 16px; margin: 1.5em 0 0.3em; overflow-wrap: anywhere; }
svg { background: #fafafa; border: 1px solid #ccc; max-width: 100%; height: auto; }
svg text { font-size: 10px; fill: #444; }
rect { fill: #b30000; }
</style>
</head>
<body>
<h1>Latency of calls</h1>
"""

_Key = tuple[str, str, int, int]


class _Column(NamedTuple):
    """Some intervals: when they began and ended, and the buckets of each row."""

    begin_ns: int
    end_ns: int
    buckets: Mapping[_Key, Sequence[int]]


class Columns:
    """Intervals as they come; neighbours are put together when there are too many."""

    def __init__(self) -> None:
        self._columns: list[_Column] = []
        self._each = 1
        self._in_last = 0

    def __iter__(self) -> Iterator[_Column]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def add(self, interval: Interval) -> None:
        """One more."""
        begin_ns = interval.time_ns - round(interval.elapsed_s * 1e9)
        column = _Column(
            begin_ns, interval.time_ns, {_key(row): row.buckets for row in interval.rows}
        )
        if self._columns and self._in_last < self._each:
            self._columns[-1] = _join(self._columns[-1], column)
            self._in_last += 1
        else:
            self._columns.append(column)
            self._in_last = 1
        if len(self._columns) > _MOST_COLUMNS:
            self._halve()

    def _halve(self) -> None:
        if len(self._columns) % 2 == 0:
            self._in_last += self._each
        self._each *= 2
        pairs = [self._columns[at : at + 2] for at in range(0, len(self._columns), 2)]
        self._columns = [_join(*pair) if len(pair) > 1 else pair[0] for pair in pairs]


class Page:
    """A table of all, how long calls took over time, and the slowest ones, with their stacks."""

    def __init__(self, result: Callable[[], Result], shape: Shape) -> None:
        self._result = result
        self._shape = shape
        self._columns = Columns()
        self._slowest: list[tuple[int, int, Call]] = []
        self._shown = 0

    def begin(self, width: int | None) -> Iterable[str]:
        """Nothing: a page is written when it is complete."""
        del width
        return ()

    def show(self, events: Iterable[Call | Interval]) -> Iterable[str]:
        """Nothing; keeps the intervals and the slowest calls."""
        for event in events:
            if isinstance(event, Interval):
                self._columns.add(event)
                continue
            self._shown += 1
            heapq.heappush(self._slowest, (event.took_ns, -self._shown, event))
            if len(self._slowest) > _MOST_CALLS:
                heapq.heappop(self._slowest)
        return ()

    def end(self, loss: Loss) -> Iterator[str]:
        """The page."""
        result, shape = self._result(), self._shape
        rows = result.rows[: shape.most]
        yield _HEAD
        yield from _table(rows, shape)
        if (rest := len(result.rows) - len(rows)) > 0:
            yield f"<p>... and {rest} more (-E)</p>\n"
        for row in rows:
            yield f"<h2>{html.escape(_label(row))}</h2>\n"
            yield from _heat_map(list(self._columns), _key(row), shape.scale)
        if shape.slow:
            yield from self._slow_calls()
        lost = [cause.what for cause in loss.causes if cause.lost and not cause.is_note]
        yield f"<p>lost: {html.escape('; '.join(lost) or 'nothing')}</p>\n</body>\n</html>\n"

    def _slow_calls(self) -> Iterator[str]:
        yield f"<h2>The slowest of {self._shown} calls</h2>\n"
        for _, _, call in sorted(self._slowest, reverse=True):
            task = f"{call.comm} ({call.tid}) {clock(call.time_ns)}"
            line = html.escape(printable(f"{in_unit(call.took_ns)} {call.function}, {task}"))
            if frames := (*call.kernel_stack, *call.user_stack):
                names = "\n".join(html.escape(printable(name)) for name in frames)
                yield f"<details><summary>{line}</summary><pre>{names}</pre></details>\n"
            else:
                yield f"<p>{line}</p>\n"


def _key(row: LatencyRow) -> _Key:
    return row.function, row.group, row.pid, row.tid


def _label(row: LatencyRow) -> str:
    group = row.group + (f" ({row.tid or row.pid})" if row.pid else "")
    return printable(f"{row.function} [{group}]" if group else row.function)


def _join(one: _Column, other: _Column) -> _Column:
    buckets: dict[_Key, Sequence[int]] = dict(one.buckets)
    for key, counts in other.buckets.items():
        if key in buckets:
            counts = [sum(pair) for pair in zip(buckets[key], counts, strict=True)]
        buckets[key] = counts
    return _Column(one.begin_ns, other.end_ns, buckets)


def _table(rows: Iterable[LatencyRow], shape: Shape) -> Iterator[str]:
    yield "<table>\n<tr>"
    for name in ("calls", "total", "avg", "min", "p50", "p90", "p99", "max", "function"):
        yield f"<th>{name}</th>"
    yield "</tr>\n"
    for row in rows:
        average = row.total_ns // max(row.calls, 1)
        times = (row.total_ns, average, row.least_ns, *percentiles(row, shape.scale), row.most_ns)
        cells = [str(row.calls), *map(in_unit, times), html.escape(_label(row))]
        yield "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>\n"
    yield "</table>\n"


def _heat_map(columns: Sequence[_Column], key: _Key, scale: Scale) -> Iterator[str]:
    """Time to the right, duration upwards, a cell the redder the more calls it has."""
    counts = [column.buckets.get(key, ()) for column in columns]
    used = [at for buckets in counts for at, count in enumerate(buckets) if count]
    if not used:
        return
    low, high = min(used), max(used)
    most = max(max(buckets, default=0) for buckets in counts)
    width = _WIDTH / len(columns)
    height = (high - low + 1) * _CELL_HEIGHT
    yield f'<svg viewBox="0 0 {_WIDTH + _MARGIN} {height + 20}" role="img">\n'
    for at in range(low, high + 1):
        if at in (low, high) or ((at - low) % 4 == 0 and high - at > 1):
            y = (high - at + 1) * _CELL_HEIGHT - 1
            yield f'<text x="{_MARGIN - 6}" y="{y}" text-anchor="end">'
            yield f"{in_unit(scale.bounds_ns(at)[0])}</text>\n"
    for number, (column, buckets) in enumerate(zip(columns, counts, strict=True)):
        begin, end = clock(column.begin_ns), clock(column.end_ns)
        for at, count in enumerate(buckets):
            if count:
                shortest, longest = map(in_unit, scale.bounds_ns(at))
                said = f"{begin} to {end}, {shortest} to {longest}: {count} calls"
                shade = 0.15 + 0.85 * math.log1p(count) / math.log1p(most)
                yield (
                    f'<rect x="{_MARGIN + number * width:.1f}" width="{width:.1f}" '
                    f'y="{(high - at) * _CELL_HEIGHT}" height="{_CELL_HEIGHT}" '
                    f'opacity="{shade:.2f}"><title>{said}</title></rect>\n'
                )
    first, last = clock(columns[0].begin_ns), clock(columns[-1].end_ns)
    yield f'<text x="{_MARGIN}" y="{height + 14}">{first}</text>\n'
    yield f'<text x="{_WIDTH + _MARGIN}" y="{height + 14}" text-anchor="end">{last}</text>\n'
    yield "</svg>\n"
