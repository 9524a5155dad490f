"""Opened files as lines of text or of JSON, or as a table. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from purebpf.cli.event_lines import (
    JsonLines,
    TaskLines,
    event_document,
    fit,
    fit_path,
    json_lines,
    json_loss,
)
from purebpf.errors import errno_name
from purebpf.results import Cause, Loss
from purebpf.results.model.spelling import count_text, printable
from purebpf.results.model.units import in_unit
from purebpf.results.model.width import pad
from purebpf.tools.open.events import Opened
from purebpf.tools.open.flags import access, names
from purebpf.tools.open.summary import ROOM, OpenRow, Summary

__all__ = ["JsonPrinter", "TablePrinter", "TextPrinter"]


class TextPrinter(TaskLines[Opened]):
    """A line for each call."""

    def columns(self, cgroup: str) -> str:
        """The names of the columns."""
        return f"{'RESULT':8}    PID {'COMM':15}{cgroup}   TAKES HOW PATH"

    def line(self, event: Opened, width: int | None) -> str:
        """A call; the beginning of its path is cut."""
        return fit_path(self._columns(event), _path(event), width)

    def _columns(self, event: Opened) -> str:
        result = errno_name(event.errno) if event.errno else f"fd {event.fd}"
        takes = "?" if event.duration_ns is None else in_unit(event.duration_ns)
        return (
            f"{self.time(event.time_ns)}{result:8}{event.pid:7} {pad(printable(event.comm), 15)}"
            f"{self.cgroup(event.cgroup)} "
            f"{takes:>7} {access(event.flags):3} "
        )


def _path(event: Opened) -> str:
    return "[unreadable]" if event.given is None else _spell(event.path)


def _spell(path: str) -> str:
    return printable(path) or "''"


class JsonPrinter(JsonLines[Opened]):
    """An object for each call."""

    def document(self, event: Opened) -> dict[str, object]:
        """Its fields, flags and error by name."""
        fields = event._asdict()
        time_ns = fields.pop("time_ns")
        fields["flags"] = names(event.flags)
        fields["errno"] = errno_name(event.errno) if event.errno else None
        return event_document("open", time_ns, fields)


class TablePrinter:
    """A table at the end, or its rows as JSON.

    Args:
        summary: counts.
        top: rows to print; None: all.
        format: "text" or "json".
    """

    def __init__(self, summary: Summary, *, top: int | None = None, format: str = "text") -> None:  # noqa: A002 - as the option is called
        self._summary = summary
        self._top = top
        self._format = format
        self._width: int | None = None

    def begin(self, width: int | None) -> Iterable[str]:
        """Nothing yet."""
        self._width = width
        return ()

    def show(self, events: Iterable[Opened]) -> Iterable[str]:
        """Nothing: they are counted."""
        self._summary.add(events)
        return ()

    def end(self, loss: Loss) -> Iterator[str]:
        """The table."""
        rows = self._summary.rows()
        shown_rows = rows[: self._top]
        if self._format == "json":
            yield from json_lines(_row_document(self._summary.by, *item) for item in shown_rows)
            yield from json_loss(loss)
            return
        by_path = self._summary.by == "path"
        other, row_fields = ("PROCS", "PATH") if by_path else ("PATHS", "PROCESS")
        yield f" FAILED   CALLS {other:>6}   TOTAL     MAX {'ERRNO':13} {row_fields}\n"
        for pid, row in shown_rows:
            name = _spell(row.name) if by_path else f"{printable(row.name)} ({pid})"
            yield fit_path(_row(row), name, self._width) + "\n"
        if len(shown_rows) < len(rows):
            yield fit(f"... and {len(rows) - len(shown_rows)} more", self._width) + "\n"

    def losses(self) -> tuple[Cause, ...]:
        """Calls that the table has no room for."""
        dropped = self._summary.dropped
        row_fields = count_text(dropped, f"calls were dropped: the table was full, at {ROOM} rows")
        lumped = self._summary.lumped
        note = count_text(lumped, "calls are of paths or processes that were not counted apart")
        return (
            Cause("rows_full", dropped, row_fields),
            Cause("lumped", lumped, note, is_note=True),
        )


def _row(row: OpenRow) -> str:
    return (
        f"{row.failed:7} {row.calls:7} {len(row.others):6} {in_unit(row.total_ns):>7} "
        f"{in_unit(row.max_ns):>7} {_errors(row):13} "
    )


def _errors(row: OpenRow) -> str:
    ranked = row.errors.most_common()
    if not ranked:
        return "-"
    more = f" +{len(ranked) - 1}" if len(ranked) > 1 else ""
    return errno_name(ranked[0][0]) + more


def _row_document(by: str, pid: int, row: OpenRow) -> dict[str, object]:
    row_fields = {"path": row.name} if by == "path" else {"pid": pid, "comm": row.name}
    return {
        "event": by,
        **row_fields,
        "calls": row.calls,
        "failed": row.failed,
        "errno": {errno_name(number): count for number, count in row.errors.most_common()},
        "total_ns": row.total_ns,
        "max_ns": row.max_ns,
        "processes" if by == "path" else "paths": len(row.others),
    }
