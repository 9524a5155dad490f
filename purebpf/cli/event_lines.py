"""Events as lines of text or of JSON. Pure."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from purebpf.results.model.spelling import printable
from purebpf.results.model.width import cut, cut_start, display_width, pad

if TYPE_CHECKING:
    from purebpf.results import Loss

__all__ = [
    "EVENTS_SCHEMA",
    "JsonLines",
    "Printer",
    "TaskLines",
    "TextLines",
    "clock",
    "event_document",
    "fit",
    "fit_line",
    "fit_path",
    "json_lines",
    "json_loss",
    "timestamp",
]

EVENTS_SCHEMA = "purebpf.events/1"
"""In the last line of JSON by lines; the number grows when a key changes its meaning."""
_ALONE = 20
_BESIDE_TIMES = 12
"""Columns of a container's name: 80 have room for a path then."""

Event = TypeVar("Event")
Event_contra = TypeVar("Event_contra", contravariant=True)


class Printer(Protocol[Event_contra]):
    """Turns events into text; pure.

    `width`: the columns of the terminal that shows the lines; None: they may have any length.
    """

    def begin(self, width: int | None) -> Iterable[str]:
        """Print the lines before all events."""

    def show(self, events: Iterable[Event_contra]) -> Iterable[str]:
        """Their lines."""

    def end(self, loss: Loss) -> Iterable[str]:
        """Print the lines after all events."""


class TextLines(ABC, Generic[Event]):
    """A `Printer` of a header, and of a line for each event."""

    _width: int | None = None

    @abstractmethod
    def header(self) -> str:
        """The names of the columns."""

    @abstractmethod
    def line(self, event: Event, width: int | None) -> str:
        """An event, in so many columns if that is not None."""

    def begin(self, width: int | None) -> Iterable[str]:
        """The header."""
        self._width = width
        return (self.header() + "\n",)

    def show(self, events: Iterable[Event]) -> Iterator[str]:
        """The lines."""
        for event in events:
            yield self.line(event, self._width) + "\n"

    def end(self, loss: Loss) -> Iterable[str]:
        """Print nothing: the losses go to standard error."""
        del loss
        return ()


class TaskLines(TextLines[Event]):
    """Lines about tasks, with two optional columns.

    Args:
        times: with the time of day.
        cgroups: with the container or unit.
    """

    def __init__(self, *, times: bool = False, cgroups: bool = False) -> None:
        self._has_times = times
        self._cgroup_width = (_BESIDE_TIMES if times else _ALONE) if cgroups else 0

    def header(self) -> str:
        """The names of the columns."""
        time = f"{'TIME':12} " if self._has_times else ""
        return time + self.columns(self.cgroup("CONTAINER"))

    @abstractmethod
    def columns(self, cgroup: str) -> str:
        """Return the names of the columns behind the time; `cgroup` is the container's."""

    def time(self, time_ns: int) -> str:
        """The column of the time, which is the first; or nothing."""
        return f"{clock(time_ns)} " if self._has_times else ""

    def cgroup(self, name: str) -> str:
        """Return the column of the container, which follows the comm; or nothing."""
        width = self._cgroup_width
        return f" {pad(cut(printable(name), width), width)}" if width else ""


class JsonLines(ABC, Generic[Event]):
    """A `Printer` of an object for each event; the last one has the losses."""

    @abstractmethod
    def document(self, event: Event) -> Mapping[str, object]:
        """The object of an event."""

    def begin(self, width: int | None) -> Iterable[str]:
        """Nothing."""
        del width
        return ()

    def show(self, events: Iterable[Event]) -> Iterable[str]:
        """The objects."""
        return json_lines(map(self.document, events))

    def end(self, loss: Loss) -> Iterable[str]:
        """Print every counter of losses."""
        return json_loss(loss)


def fit(line: str, width: int | None) -> str:
    """A line, cut to the width with `...` at its end."""
    return line if width is None else cut(line, width)


def fit_line(line: str, width: int | None) -> str:
    """The same for a line with its end of line."""
    text = line.rstrip("\n")
    return fit(text, width) + line[len(text) :]


def fit_path(columns: str, path: str, width: int | None) -> str:
    """Return a line that ends with a path; if it is too long, the end of the path remains."""
    if width is None:
        return columns + path
    return columns + cut_start(path, width - display_width(columns))


def clock(time_ns: int) -> str:
    """The local time of day in milliseconds, of nanoseconds since 1970."""
    seconds, rest_ns = divmod(time_ns, 1_000_000_000)
    return f"{time.strftime('%H:%M:%S', time.localtime(seconds))}.{rest_ns // 1_000_000:03}"


def timestamp(time_ns: int) -> str:
    """The same moment for JSON: `2026-11-22T23:45:01.123456789Z`."""
    seconds, rest_ns = divmod(time_ns, 1_000_000_000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(seconds))}.{rest_ns:09}Z"


def json_lines(documents: Iterable[Mapping[str, object]]) -> Iterator[str]:
    """A line for each."""
    import json  # which text and --help need not pay

    for document in documents:
        yield json.dumps(document) + "\n"


def event_document(name: str, time_ns: int, fields: Mapping[str, object]) -> dict[str, object]:
    """Return an event for JSON: its name, its time, and its fields."""
    return {"event": name, "time": timestamp(time_ns), **fields}


def json_loss(loss: Loss) -> Iterator[str]:
    """Return the last line of a stream of JSON: every counter of losses, and `EVENTS_SCHEMA`."""
    counts = {cause.name: cause.lost for cause in loss.causes}
    return json_lines([{"event": "loss", "schema": EVENTS_SCHEMA, "loss": counts}])
