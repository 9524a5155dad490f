"""A table of system calls as text: ours, in 80 columns, or as `perf trace -s` lays it out. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from purebpf.results.model.spelling import printable
from purebpf.results.model.units import count_in_unit, in_unit
from purebpf.results.model.width import cut, display_width, pad
from purebpf.results.shape import histogram
from purebpf.tools.summary.calls import errno_name
from purebpf.tools.summary.options import View
from purebpf.tools.summary.statistics import Statistics
from purebpf.tools.summary.table import Faults, Label, OpenCall, SummaryRow, Table, sort_groups

__all__ = ["PERCENTILES", "longest_first", "pieces"]

PERCENTILES = (50, 95, 99)
_WIDTH = 80
_NAME = 22
_PLACES = 20
"""Functions and mappings that faulted, which are shown of a group."""
_PERFS_HEAD = """\
   syscall            calls  errors  total       min       avg       max       stddev{more}
                                     (msec)    (msec)    (msec)    (msec)        (%){units}
   --------------- --------  ------ -------- --------- --------- ---------     ------{dashes}
"""
_PERFS_ROW = (
    "   {name:<15} {calls:8d} {errors:6d} {total:9.3f} {min:9.3f} {avg:9.3f} {max:9.3f} {std:9.2f}%"
)


def pieces(table: Table, view: View) -> Iterator[str]:
    """A part for each group: its title, the names of the columns, a row for each call."""
    as_perf = view.layout == "perf"
    yield "\n Summary of events:\n"
    calls = sum(group.calls for group in table.groups)
    groups = sort_groups(table.groups, view.sort, view.top)
    if not groups:
        yield "\n total, 0 events\n"
    for group in groups:
        part = "" if table.mode == "total" else f", {100 * group.calls / calls:.1f}%"
        numbers = f", {group.calls} events{part}"
        title = _title(table.mode, group.label)
        room = _WIDTH - 1 - len(numbers)
        yield f"\n {title if as_perf else cut(title, room)}{numbers}\n\n"
        yield _perfs_head(view) if as_perf else _head(view)
        for row in group.rows[: view.top]:
            yield _perfs_row(row, view) if as_perf else _row(row, view)
            yield from _below(row.statistics, view)
        if group.faults:
            yield from _faults(group.faults, view)
    yield "\n"
    if view.inflight and table.open_calls:
        yield from _open_calls(table.open_calls)


def _title(mode: str, label: Label) -> str:
    if mode == "total":
        return "total"
    if mode == "cgroup":
        return f"cgroup {printable(label.name) or f'id:{label.number}'}"
    if mode == "command":
        return f"command {printable(label.name) or '?'}"
    return f"{printable(label.name) or '?'} ({label.number})"


def _head(view: View) -> str:
    start = f"  {'syscall':<{_NAME}} {'calls':>8} {'errors':>6}"
    if view.has_percentiles:
        names = ("total", *(f"p{percent}" for percent in PERCENTILES), "max")
        return start + "".join(f" {name:>7}" for name in names) + "\n"
    return f"{start} {'total':>7} {'min':>7} {'avg':>7} {'max':>7} std.err\n"


def _row(row: SummaryRow, view: View) -> str:
    """A name that is longer than its column has a line for itself."""
    counted = row.statistics
    name = pad(row.call.name, _NAME)
    if display_width(row.call.name) > _NAME:
        name = f"{row.call.name}\n  {'':<{_NAME}}"
    start = f"  {name} {count_in_unit(counted.calls):>8} {count_in_unit(counted.errors, 6):>6}"
    if not counted.timed:  # only returns were seen
        columns = len(PERCENTILES) + 2 if view.has_percentiles else 5
        return start + columns * f" {'-':>7}" + "\n"
    if view.has_percentiles:
        middle = (counted.percentile_ns(percent) or 0 for percent in PERCENTILES)
        times = (counted.total_ns, *middle, counted.max_ns)
        return start + "".join(f" {in_unit(time_ns):>7}" for time_ns in times) + "\n"
    times = (counted.total_ns, counted.min_ns, round(counted.avg_ns), counted.max_ns)
    numbers = "".join(f" {in_unit(time_ns):>7}" for time_ns in times)
    return f"{start}{numbers} {counted.stddev_pct:6.1f}%\n"


def _below(statistics: Statistics, view: View) -> Iterator[str]:
    """Yield the details of a row that the view asks for: its errors by name, its histogram."""
    if view.errno_summary:
        for number, count in statistics.errnos.most_common():
            yield f"\t\t\t\t{errno_name(number)}: {count}\n"
    if view.histogram:
        yield "\n"
        yield from histogram.lines(statistics.buckets, "nsecs")
        yield "\n"


def _faults(faults: Faults, view: View) -> Iterator[str]:
    counts = (("major", faults.major), ("minor", faults.minor))
    words = [f"{count:,} {kind}" for kind, count in counts if count is not None]
    yield f"\n  page faults: {', '.join(words)}\n"
    if not (view.verbose and faults.places):
        return
    yield f"  {'kind':5} {'faults':>8} {'mapping':<24} function\n"
    shown_places = faults.places[: view.top or _PLACES]
    for place in shown_places:
        mapping = cut(pad(printable(place.mapping), 24), 24)
        yield f"  {place.kind:5} {count_in_unit(place.times):>8} {mapping} {place.function}\n"
    if left := sum(place.times for place in faults.places[len(shown_places) :]):
        yield f"  ... and {left:,} more faults\n"


def _perfs_head(view: View) -> str:
    if not view.has_percentiles:
        return _PERFS_HEAD.format(more="", units="", dashes="")
    return _PERFS_HEAD.format(
        more="".join(f"{f'p{percent}':>10}" for percent in PERCENTILES),
        units=3 * "    (msec)",
        dashes=3 * " ---------",
    )


def _perfs_row(row: SummaryRow, view: View) -> str:
    statistics = row.statistics
    line = _PERFS_ROW.format(
        name=row.call.name,
        calls=statistics.calls,
        errors=statistics.errors,
        total=statistics.total_ns / 1e6,
        min=statistics.min_ns / 1e6,
        avg=statistics.avg_ns / 1e6,
        max=statistics.max_ns / 1e6,
        std=statistics.stddev_pct,
    )
    percentiles = PERCENTILES if view.has_percentiles else ()
    more = (f" {(statistics.percentile_ns(percent) or 0) / 1e6:9.3f}" for percent in percentiles)
    return line + "".join(more) + "\n"


def _open_calls(calls: Iterable[OpenCall]) -> Iterator[str]:
    yield " Calls in flight:\n\n"
    yield "   comm               pid      tid  syscall               elapsed (msec)\n"
    yield "   --------------- ------- ------- --------------------- ----------------\n"
    for call in sorted(calls, key=longest_first):
        elapsed = "before the run" if call.elapsed_ns is None else f"{call.elapsed_ns / 1e6:.3f}"
        yield f"   {pad(printable(call.comm) or '?', 15)} {call.pid:7d} {call.tid:7d} "
        yield f"{call.call.name:<21} {elapsed:>16}\n"
    yield "\n"


def longest_first(call: OpenCall) -> tuple[bool, int, int]:
    """Return a sort key: calls that were open at the start come first."""
    return call.elapsed_ns is not None, -(call.elapsed_ns or 0), call.tid
