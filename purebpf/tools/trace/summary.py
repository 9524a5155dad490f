"""Calls as they happen, and a table of them at the end: one measurement, shown twice. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from purebpf.cli.event_lines import fit, json_lines
from purebpf.results import Loss
from purebpf.results.model.units import count_in_unit, in_unit
from purebpf.results.model.width import pad
from purebpf.tools.trace.events import Call, Event, Lost

if TYPE_CHECKING:
    from purebpf.cli.event_lines import Printer

__all__ = ["SummingPrinter", "TraceRow"]

_NAME = 22


class TraceRow:
    """The calls of a name. Times are nanoseconds, of the calls with a duration."""

    __slots__ = ("calls", "errors", "lost", "max_ns", "min_ns", "timed", "total_ns")

    def __init__(self) -> None:
        self.calls = 0
        self.errors = 0
        self.lost = 0
        self.timed = 0
        self.total_ns = 0
        self.min_ns = 0
        self.max_ns = 0

    def add(self, call: Call) -> None:
        """Count a call."""
        self.calls += 1
        self.errors += bool(call.errno)
        if call.duration_ns is None:
            return
        self.min_ns = min(self.min_ns, call.duration_ns) if self.timed else call.duration_ns
        self.max_ns = max(self.max_ns, call.duration_ns)
        self.total_ns += call.duration_ns
        self.timed += 1


class SummingPrinter:
    """Another printer, whose calls are counted, and which the table follows.

    Calls that did not return are printed, and not counted. Calls that were lost on the way are
    counted by name, without a result or a duration.

    Args:
        printer: shows the events.
        is_json: the table is an object for each row.
    """

    def __init__(self, printer: Printer[Event], *, is_json: bool = False) -> None:
        self._printer = printer
        self._is_json = is_json
        self._width: int | None = None
        self._rows: dict[str, TraceRow] = {}

    def begin(self, width: int | None) -> Iterable[str]:
        """The beginning of the other printer."""
        self._width = width
        return self._printer.begin(width)

    def show(self, events: Iterable[Event]) -> Iterable[str]:
        """The lines of the other printer."""
        return self._printer.show(self._count(events))

    def _count(self, events: Iterable[Event]) -> Iterator[Event]:
        for event in events:
            if isinstance(event, Call) and event.ending == "returned":
                self._row(_name(event)).add(event)
            elif isinstance(event, Lost):
                for name, lost in event.by_name.items():
                    if ":" not in name:  # a tracepoint
                        self._row(name).lost += lost
            yield event

    def _row(self, name: str) -> TraceRow:
        return self._rows.setdefault(name, TraceRow())

    def end(self, loss: Loss) -> Iterator[str]:
        """The table: the calls with the longest total time first."""
        ranked = sorted(self._rows.items(), key=lambda item: (-item[1].total_ns, item[0]))
        if self._is_json:
            yield from json_lines(_document(name, row) for name, row in ranked)
        else:
            calls = sum(row.calls + row.lost for row in self._rows.values())
            yield f"\n Summary of {calls:,} calls:\n\n"
            yield (
                f"  {'syscall':<{_NAME}} {'calls':>8} {'errors':>6} {'total':>7} {'min':>7} "
                f"{'avg':>7} {'max':>7}\n"
            )
            for name, row in ranked:
                yield fit(_line(name, row), self._width) + "\n"
        yield from self._printer.end(loss)


def _name(call: Call) -> str:
    return call.name if call.abi in ("x86_64", "aarch64") else f"{call.name}({call.abi})"


def _line(name: str, row: TraceRow) -> str:
    counts = f"{count_in_unit(row.calls + row.lost):>8} {count_in_unit(row.errors, 6):>6}"
    start = f"  {pad(name, _NAME)} {counts}"
    if not row.timed:
        return start + 4 * f" {'-':>7}"
    times = (row.total_ns, row.min_ns, round(row.total_ns / row.timed), row.max_ns)
    return start + "".join(f" {in_unit(time_ns):>7}" for time_ns in times)


def _document(name: str, row: TraceRow) -> dict[str, object]:
    return {
        "event": "summary",
        "syscall": name,
        "calls": row.calls + row.lost,
        "errors": row.errors,
        "lost": row.lost,
        "timed": row.timed,
        "total_ns": row.total_ns,
        "min_ns": row.min_ns if row.timed else None,
        "max_ns": row.max_ns if row.timed else None,
    }
