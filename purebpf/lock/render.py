"""Waits for locks and their sums as text or JSON. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from purebpf.cli.event_lines import JsonLines, clock, event_document, fit, json_lines
from purebpf.cli.units import duration_text
from purebpf.lock.event import Row, Wait
from purebpf.results import Loss
from purebpf.results.model.spelling import printable
from purebpf.results.shape.histogram import bucket_bounds, lines, percentile

__all__ = ["Json", "Text"]

Rows = Callable[[], Sequence[Row]]

_PERCENTS = (50, 99)
_EVENTS = f"{'TIME':12} {'PID':>7} {'COMM':15} {'TYPE':11} {'TOOK':>6} LOCK"
_UNKNOWN_OWNER = "[unknown: spinlocks, readers and RT do not say]"


class Text:
    """A line for each slow wait, and a table at the end.

    Args:
        rows: the sums, once the run is over.
        by: one of GROUPINGS.
        slow: whether there are waits one by one.
        histogram: whether one follows each row.
        most: rows that are shown.
    """

    def __init__(
        self,
        rows: Rows,
        by: str = "caller",
        *,
        slow: bool = False,
        histogram: bool = False,
        most: int = 20,
    ) -> None:
        self._rows = rows
        self._by = by
        self._slow = slow
        self._histogram = histogram
        self._most = most
        self._width: int | None = None

    def begin(self, width: int | None) -> Iterable[str]:
        """The header of waits, where there are any."""
        self._width = width
        if self._slow:
            yield _EVENTS + "\n"

    def show(self, events: Iterable[Wait]) -> Iterator[str]:
        """A line for each."""
        for event in events:
            yield fit(_line(event), self._width) + "\n"
            yield from _stack(event.stack)

    def end(self, loss: Loss) -> Iterator[str]:
        """The table."""
        del loss
        rows = self._rows()
        if self._slow:
            yield "\n"
        if not rows:
            yield "no waits\n"
            return
        typed = f"{'TYPE':11} " if self._is_typed else ""
        yield f"   WAITS  OPEN   TOTAL     AVG    p50    p99 {typed}{self._by.upper()}\n"
        for row in rows[: self._most]:
            yield fit(self._row(row), self._width) + "\n"
            yield from _stack(row.stack)
            if self._histogram and row.waits:
                yield from lines(row.buckets, "nsecs")
        if (rest := len(rows) - len(rows[: self._most])) > 0:
            yield f"... and {rest} more\n"

    @property
    def _is_typed(self) -> bool:
        return self._by in ("caller", "lock")

    def _row(self, row: Row) -> str:
        average = duration_text(row.total_ns // (row.waits + row.open))
        marks = "".join(f" {text:>6}" for text in _percentiles(row))
        typed = f"{row.type:11} " if self._is_typed else ""
        return (
            f"{row.waits:>8} {row.open or '':>5} {duration_text(row.total_ns):>7} "
            f"{average:>7}{marks} {typed}{printable(self._name(row))}"
        )

    def _name(self, row: Row) -> str:
        if self._by == "owner":
            return f"{row.name} ({row.tid})" if row.tid else _UNKNOWN_OWNER
        if self._by == "process":
            return f"{row.name} ({row.pid})"
        if self._by == "thread":
            return f"{row.name} ({row.pid}/{row.tid})"
        return row.name or "/"


class Json(JsonLines[Wait]):
    """An object for each slow wait, then the sums."""

    def __init__(self, rows: Rows, by: str = "caller") -> None:
        self._rows = rows
        self._by = by

    def document(self, event: Wait) -> dict[str, object]:
        """Every field."""
        fields = event._asdict()
        return event_document("wait", fields.pop("time_ns"), fields)

    def end(self, loss: Loss) -> Iterator[str]:
        """The sums, and what was lost."""
        rows = [_row_object(row) for row in self._rows()]
        yield from json_lines([{"event": "summary", "by": self._by, "rows": rows}])
        yield from super().end(loss)


def _line(event: Wait) -> str:
    what = event.name
    if event.caller:
        what += f" in {event.caller}"
    if event.owner:
        what += f", held by {event.owner} ({event.owner_tid})"
    return (
        f"{clock(event.time_ns)} {event.pid:>7} {printable(event.comm):15} {event.type:11} "
        f"{duration_text(event.took_ns):>6} {printable(what)}"
    )


def _stack(names: Sequence[str]) -> Iterator[str]:
    for name in names:
        yield f"{'':10}{printable(name)}\n"


def _percentiles(row: Row) -> Iterator[str]:
    for percent in _PERCENTS:
        value = percentile(row.buckets, percent)
        yield "-" if value is None else duration_text(value)


def _row_object(row: Row) -> dict[str, object]:
    marks = {f"p{percent}_ns": percentile(row.buckets, percent) for percent in _PERCENTS}
    buckets = [[*bucket_bounds(bucket), count] for bucket, count in enumerate(row.buckets) if count]
    return {**row._asdict(), **marks, "buckets": buckets}
