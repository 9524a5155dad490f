"""Waits for locks and their sums as text or JSON. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from purebpf.cli.event_lines import clock, event_document
from purebpf.cli.event_sums import SumJson, SumText
from purebpf.lock.event import Row, Wait
from purebpf.results.model.spelling import printable
from purebpf.results.model.units import in_unit

__all__ = ["Json", "Text"]

_EVENTS = f"{'TIME':12} {'PID':>7} {'COMM':15} {'TYPE':11} {'TOOK':>7} LOCK"
_UNKNOWN_OWNER = "[unknown: spinlocks, readers and RT do not say]"


class Text(SumText[Wait, Row]):
    """A line for each slow wait, and a table at the end. `by`: one of GROUPINGS."""

    events_header = _EVENTS
    empty = "no waits"

    def event_lines(self, event: Wait) -> Iterator[str]:
        """A wait and its stack."""
        yield _line(event)
        yield from _stack(event.stack)

    def header(self) -> str:
        """The names of the table's columns."""
        typed = f"{'TYPE':11} " if self._is_typed else ""
        return f"   WAITS  OPEN   TOTAL     AVG{self.scale.header()} {typed}{self.by.upper()}"

    def row_lines(self, row: Row) -> Iterator[str]:
        """A sum and its stack."""
        average = in_unit(row.total_ns // (row.waits + row.open))
        typed = f"{row.type:11} " if self._is_typed else ""
        yield (
            f"{row.waits:>8} {row.open or '':>5} {in_unit(row.total_ns):>7} "
            f"{average:>7}{self.scale.columns(row.buckets)} {typed}{printable(self._name(row))}"
        )
        yield from _stack(row.stack)

    @property
    def _is_typed(self) -> bool:
        return self.by in ("caller", "lock")

    def _name(self, row: Row) -> str:
        if self.by == "owner":
            return f"{row.name} ({row.tid})" if row.tid else _UNKNOWN_OWNER
        if self.by == "process":
            return f"{row.name} ({row.pid})"
        if self.by == "thread":
            return f"{row.name} ({row.pid}/{row.tid})"
        return row.name or "/"


class Json(SumJson[Wait, Row]):
    """An object for each slow wait, then the sums."""

    def document(self, event: Wait) -> dict[str, object]:
        """Every field."""
        fields = event._asdict()
        return event_document("wait", fields.pop("time_ns"), fields)


def _line(event: Wait) -> str:
    what = event.name
    if event.caller:
        what += f" in {event.caller}"
    if event.owner:
        what += f", held by {event.owner} ({event.owner_tid})"
    return (
        f"{clock(event.time_ns)} {event.pid:>7} {printable(event.comm):15} {event.type:11} "
        f"{in_unit(event.took_ns):>7} {printable(what)}"
    )


def _stack(names: Sequence[str]) -> Iterator[str]:
    for name in names:
        yield f"{'':10}{printable(name)}"
