"""Requests and their sums as text or JSON. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from purebpf.cli.event_lines import JsonLines, clock, event_document, fit, json_lines
from purebpf.cli.units import duration_text, size_text
from purebpf.io.event import Request, Row
from purebpf.results import Loss
from purebpf.results.model.spelling import printable
from purebpf.results.model.width import cut_start, pad
from purebpf.results.shape.histogram import bucket_bounds, lines, percentile

__all__ = ["Json", "Text"]

Rows = Callable[[], Sequence[Row]]

_PERCENTS = (50, 90, 99)
_US = 1000
_EVENTS = (
    f"{'TIME':12} {'PID':>7} {'COMM':9} {'DEVICE':7} {'OP':7} {'SIZE':>4} {'QUEUE':>6} "
    f"{'TOOK':>6} FILE"
)
_KEYS = {"device": "DEVICE", "process": "PROCESS", "file": "FILE"}


class Text:
    """A line for each slow request, and a table at the end.

    Args:
        rows: the sums, once the run is over.
        by: one of GROUPINGS.
        slow: whether there are requests one by one.
        histogram: whether one follows each row.
    """

    def __init__(
        self, rows: Rows, by: str = "device", *, slow: bool = False, histogram: bool = False
    ) -> None:
        self._rows = rows
        self._by = by
        self._slow = slow
        self._histogram = histogram
        self._width: int | None = None

    def begin(self, width: int | None) -> Iterable[str]:
        """The header of requests, where there are any."""
        self._width = width
        if self._slow:
            yield _EVENTS + "\n"

    def show(self, events: Iterable[Request]) -> Iterator[str]:
        """A line for each."""
        for event in events:
            yield fit(_line(event), self._width) + "\n"

    def end(self, loss: Loss) -> Iterator[str]:
        """The table."""
        del loss
        rows = self._rows()
        if self._slow:
            yield "\n"
        if not rows:
            yield "no requests\n"
            return
        head = "".join(f" {f'p{percent}':>6}" for percent in _PERCENTS)
        yield (
            f"{_KEYS[self._by]:22} {'OP':7} {'COUNT':>7} {'ERRORS':>6} {'BYTES':>5} {'QUEUE':>6}"
            f"{head}\n"
        )
        for row in rows:
            yield fit(self._row(row), self._width) + "\n"
            if self._histogram:
                yield from lines(row.buckets, "usecs")

    def _row(self, row: Row) -> str:
        marks = "".join(f" {text:>6}" for text in _percentiles(row))
        return (
            f"{self._key(row)} {row.op:7} {row.requests:>7} {row.errors:>6} "
            f"{size_text(row.bytes):>5} {duration_text(row.queued_ns // row.requests):>6}{marks}"
        )

    def _key(self, row: Row) -> str:
        """What the row is of, in 22 columns; of a file, its end."""
        if self._by == "device":
            return f"{printable(row.disk)[:22]:22}"
        if self._by == "process":
            return f"{row.pid:>7} {printable(row.comm)[:14]:14}"
        return pad(cut_start(printable(row.file) or "[direct]", 22), 22)


class Json(JsonLines[Request]):
    """An object for each slow request, then the sums."""

    def __init__(self, rows: Rows, by: str = "device") -> None:
        self._rows = rows
        self._by = by

    def document(self, event: Request) -> dict[str, object]:
        """Every field."""
        fields = event._asdict()
        return event_document("request", fields.pop("time_ns"), fields)

    def end(self, loss: Loss) -> Iterator[str]:
        """The sums, and what was lost."""
        rows = [_row_object(row) for row in self._rows()]
        yield from json_lines([{"event": "summary", "by": self._by, "rows": rows}])
        yield from super().end(loss)


def _line(event: Request) -> str:
    what = f"{printable(event.file) or '-'} {event.error}".rstrip()
    return (
        f"{clock(event.time_ns)} {event.pid:>7} {printable(event.comm)[:9]:9} "
        f"{printable(event.disk)[:7]:7} {event.op:7} {size_text(event.bytes):>4} "
        f"{duration_text(event.queued_ns):>6} {duration_text(event.took_ns):>6} {what}"
    )


def _percentiles(row: Row) -> Iterator[str]:
    for percent in _PERCENTS:
        value = percentile(row.buckets, percent)
        yield "-" if value is None else duration_text(value * _US)


def _row_object(row: Row) -> dict[str, object]:
    marks = {
        f"p{percent}_ns": _US * (percentile(row.buckets, percent) or 0) for percent in _PERCENTS
    }
    buckets = [
        [*(_US * bound for bound in bucket_bounds(bucket)), count]
        for bucket, count in enumerate(row.buckets)
        if count
    ]
    return {**row._asdict(), **marks, "buckets": buckets}
