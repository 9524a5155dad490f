"""Requests and their sums as text or JSON. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from purebpf.cli.event_lines import clock, event_document
from purebpf.cli.event_sums import Scale, SumJson, SumText
from purebpf.cli.units import size_text
from purebpf.results.model.spelling import printable
from purebpf.results.model.units import count_in_unit, in_unit
from purebpf.results.model.width import cut_start, pad
from purebpf.tools.io.event import IoRow, Request

__all__ = ["IoText", "Json"]

_SCALE = Scale("usecs", 1000, (50, 90, 99))
_EVENTS = (
    f"{'TIME':12} {'PID':>7} {'COMM':9} {'DEVICE':7} {'OP':7} {'SIZE':>4} {'QUEUE':>7} "
    f"{'TOOK':>7} FILE"
)
_KEYS = {"device": "DEVICE", "process": "PROCESS", "file": "FILE"}


class IoText(SumText[Request, IoRow]):
    """A line for each slow request, and a table at the end. `by`: one of GROUPINGS."""

    scale = _SCALE
    events_header = _EVENTS
    empty = "no requests"

    def event_lines(self, event: Request) -> Iterator[str]:
        """One."""
        yield _line(event)

    def header(self) -> str:
        """The names of the table's columns."""
        return (
            f"{_KEYS[self.by]:20} {'OP':7} {'COUNT':>6} {'ERRORS':>6} {'BYTES':>5} {'QUEUE':>7}"
            f"{self.scale.header()}"
        )

    def row_lines(self, row: IoRow) -> Iterator[str]:
        """One."""
        yield (
            f"{self._key(row)} {row.op:7} {count_in_unit(row.requests, 6):>6} {row.errors:>6} "
            f"{size_text(row.bytes):>5} {in_unit(row.queued_ns // row.requests):>7}"
            f"{self.scale.columns(row.buckets)}"
        )

    def _key(self, row: IoRow) -> str:
        """Return the subject of the row in 20 columns; for a file, its end."""
        if self.by == "device":
            return f"{printable(row.disk)[:20]:20}"
        if self.by == "process":
            return f"{row.pid:>7} {printable(row.comm)[:12]:12}"
        return pad(cut_start(printable(row.file) or "[direct]", 20), 20)


class Json(SumJson[Request, IoRow]):
    """An object for each slow request, then the sums."""

    scale = _SCALE

    def event_document(self, event: Request) -> dict[str, object]:
        """Every field."""
        fields = event._asdict()
        return event_document("request", fields.pop("time_ns"), fields)


def _line(event: Request) -> str:
    subject = f"{printable(event.file) or '-'} {event.error}".rstrip()
    return (
        f"{clock(event.time_ns)} {event.pid:>7} {printable(event.comm)[:9]:9} "
        f"{printable(event.disk)[:7]:7} {event.op:7} {size_text(event.bytes):>4} "
        f"{in_unit(event.queued_ns):>7} {in_unit(event.took_ns):>7} {subject}"
    )
