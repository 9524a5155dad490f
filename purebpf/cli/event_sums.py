"""Slow events one by one, then their sums, as text, JSON or CSV. Pure."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from purebpf.cli.event_lines import JsonLines, clock, event_document, fit, json_lines, timestamp
from purebpf.results.model.csv_line import csv_line
from purebpf.results.model.intervals import Interval
from purebpf.results.model.units import in_unit
from purebpf.results.model.width import display_width
from purebpf.results.shape.histogram import bucket_bounds, lines, percentile
from purebpf.tuples import NamedTuple

if TYPE_CHECKING:
    from purebpf.results import Loss

__all__ = ["Scale", "Sum", "SumCsv", "SumJson", "SumText", "longest_ns"]


_WIDE = 100
"""Columns of a terminal with room for percentiles beside sums and a name."""
_INDENT = 8


class Scale(NamedTuple):
    """The unit of a sum's buckets, and the displayed percentiles."""

    unit: str = "nsecs"
    unit_ns: int = 1
    percents: Sequence[int] = (50, 99)

    def header(self) -> str:
        """The names of the columns of the percentiles."""
        return "".join(f" {f'p{percent}':>7}" for percent in self.percents)

    def columns(self, buckets: Sequence[int], most_ns: int | None = None) -> str:
        """The percentiles, each in eight columns; none is above the longest time, `most_ns`."""
        values = (self._percentile(buckets, percent, most_ns) for percent in self.percents)
        return "".join(f" {self._text(value):>7}" for value in values)

    def _percentile(self, buckets: Sequence[int], percent: int, most_ns: int | None) -> int | None:
        """A percentile in units of the buckets."""
        if most_ns is None:
            return percentile(buckets, percent)
        return percentile(buckets, percent, most=most_ns // self.unit_ns)

    def _text(self, value: int | None) -> str:
        return "-" if value is None else in_unit(value * self.unit_ns)

    def document(self, buckets: Sequence[int], most_ns: int | None = None) -> dict[str, object]:
        """Percentiles and buckets for JSON, in nanoseconds; `most_ns` is the longest time."""
        marks: dict[str, object] = {}
        for percent in self.percents:
            value = self._percentile(buckets, percent, most_ns)
            marks[f"p{percent}_ns"] = None if value is None else value * self.unit_ns
        counts = [
            [*(self.unit_ns * bound for bound in bucket_bounds(bucket)), count]
            for bucket, count in enumerate(buckets)
            if count
        ]
        return {**marks, "buckets": counts}


class Sum(Protocol):
    """A row of a table: a named tuple with a histogram."""

    @property
    def buckets(self) -> Sequence[int]:
        """Counts; `results.shape.histogram` has their bounds."""

    def _asdict(self) -> Mapping[str, object]: ...


def longest_ns(row: Sum) -> int | None:
    """Return the longest time of a row; None if the row does not have it."""
    longest = getattr(row, "max_ns", None)
    return longest if isinstance(longest, int) else None


Event = TypeVar("Event")
Row = TypeVar("Row", bound=Sum)


class SumText(ABC, Generic[Event, Row]):
    """A line for each slow event, and a table for each interval, or at the end.

    Args:
        rows: the sums, once the run is over.
        by: the key of the groups.
        slow: whether there are events one by one.
        every: whether there are intervals; the last one ends with the run.
        histogram: whether one follows each row.
        most: the number of rows to print; None: all.
    """

    scale = Scale()
    events_header: str
    empty: str
    """The table without rows."""

    def __init__(
        self,
        rows: Callable[[], Sequence[Row]],
        by: str,
        *,
        slow: bool = False,
        every: bool = False,
        histogram: bool = False,
        most: int | None = None,
    ) -> None:
        self._rows = rows
        self.by = by
        self._slow = slow
        self._every = every
        self._histogram = histogram
        self._most = most
        self._width: int | None = None

    def marks_header(self) -> str:
        """The names of the columns of the percentiles, where the terminal has room for them."""
        return self.scale.header() if self._has_room else ""

    def marks(self, row: Row) -> str:
        """The percentiles of a row, where the terminal has room for them."""
        return self.scale.columns(row.buckets, longest_ns(row)) if self._has_room else ""

    @property
    def _has_room(self) -> bool:
        return self._width is None or self._width >= _WIDE

    def named_row(self, numbers: str, name: str) -> Iterator[str]:
        """A row that ends with a name; one that is too long stands in a line of its own."""
        if self._width is None or display_width(numbers + name) <= self._width:
            yield numbers + name
            return
        yield numbers.rstrip()
        yield f"{'':{_INDENT}}{name}"

    @abstractmethod
    def event_lines(self, event: Event) -> Iterator[str]:
        """The lines of one event."""

    @abstractmethod
    def header(self) -> str:
        """The names of the table's columns."""

    @abstractmethod
    def row_lines(self, row: Row) -> Iterator[str]:
        """The lines of one row."""

    def begin(self, width: int | None) -> Iterable[str]:
        """The header of events, where there are any."""
        self._width = width
        if self._slow:
            yield self.events_header + "\n"

    def show(self, events: Iterable[Event | Interval[Row]]) -> Iterator[str]:
        """The lines of each."""
        for event in events:
            if isinstance(event, Interval):
                yield f"\n{clock(event.time_ns)}\n"
                yield from self._table(event.rows)
            else:
                yield from self._fit(self.event_lines(event))

    def end(self, loss: Loss) -> Iterator[str]:
        """The table."""
        del loss
        if self._slow:
            yield "\n"
        if not self._every:  # the last interval has been shown
            yield from self._table(self._rows())

    def _table(self, rows: Sequence[Row]) -> Iterator[str]:
        if not rows:
            yield self.empty + "\n"
            return
        yield self.header() + "\n"
        for row in rows[: self._most]:
            yield from self._fit(self.row_lines(row))
            if self._histogram and any(row.buckets):
                yield from lines(row.buckets, self.scale.unit)
        if (rest := len(rows) - len(rows[: self._most])) > 0:
            yield f"... and {rest} more\n"

    def _fit(self, texts: Iterable[str]) -> Iterator[str]:
        return (fit(text, self._width) + "\n" for text in texts)


class SumJson(JsonLines[Event | Interval[Row]], Generic[Event, Row]):
    """An object for each slow event and interval, then the sums.

    Args:
        rows: the sums, once the run is over.
        by: the key of the groups.
    """

    scale = Scale()

    def __init__(self, rows: Callable[[], Sequence[Row]], by: str) -> None:
        self._rows = rows
        self._by = by

    @abstractmethod
    def event_document(self, event: Event) -> Mapping[str, object]:
        """The object of an event."""

    def document(self, event: Event | Interval[Row]) -> Mapping[str, object]:
        """The object of an event or of an interval."""
        if not isinstance(event, Interval):
            return self.event_document(event)
        fields = {"elapsed_s": round(event.elapsed_s, 6), "rows": self._documents(event.rows)}
        return event_document("interval", event.time_ns, fields)

    def end(self, loss: Loss) -> Iterator[str]:
        """Print the sums, and the losses."""
        rows = self._documents(self._rows())
        yield from json_lines([{"event": "summary", "by": self._by, "rows": rows}])
        yield from super().end(loss)

    def _documents(self, rows: Iterable[Row]) -> list[dict[str, object]]:
        return [
            {**self.row_document(row), **self.scale.document(row.buckets, longest_ns(row))}
            for row in rows
        ]

    def row_document(self, row: Row) -> Mapping[str, object]:
        """The fields of a sum."""
        return row._asdict()


class SumCsv(Generic[Event, Row]):
    """A line for each row, of each interval or of all; slow events are omitted.

    Args:
        rows: the sums, once the run is over.
        every: whether there are intervals.
    """

    scale = Scale()
    columns: Sequence[str]
    """Fields of a row; percentiles follow."""

    def __init__(self, rows: Callable[[], Sequence[Row]], *, every: bool = False) -> None:
        self._rows = rows
        self._every = every

    def begin(self, width: int | None) -> Iterable[str]:
        """The names of the columns; times are in nanoseconds."""
        del width
        marks = [f"p{percent}_ns" for percent in self.scale.percents]
        yield csv_line([*(["time"] if self._every else []), *self.columns, *marks])

    def show(self, events: Iterable[Event | Interval[Row]]) -> Iterator[str]:
        """The rows of intervals."""
        for event in events:
            if isinstance(event, Interval):
                for row in event.rows:
                    yield csv_line([timestamp(event.time_ns), *self._cells(row)])

    def end(self, loss: Loss) -> Iterator[str]:
        """The rows of all."""
        del loss
        if not self._every:
            for row in self._rows():
                yield csv_line(self._cells(row))

    def _cells(self, row: Row) -> list[object]:
        fields, marks = row._asdict(), self.scale.document(row.buckets, longest_ns(row))
        cells = [fields[name] for name in self.columns]
        return [*cells, *(marks[f"p{percent}_ns"] for percent in self.scale.percents)]
