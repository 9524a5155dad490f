"""Processes counted by program: a table at the end, or its rows as JSON. Pure."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator

from purebpf.cli.event_lines import fit, fit_path, json_lines, json_loss
from purebpf.errors import errno_name
from purebpf.results import Cause, Loss
from purebpf.results.model.spelling import count_text, printable
from purebpf.results.model.units import in_unit
from purebpf.tools.exec.events import Ended, Event, Executed, Refused, Used
from purebpf.tools.exec.signals import name_signal

__all__ = ["ExecRow", "ProgramTable"]

ROOM = 1 << 16
"""Programs that there is room for, and processes that are followed at a time."""


class ExecRow:
    """The starts and ends of one program.

    Attributes:
        starts: calls of execve(2) that succeeded.
        ends: processes that ended.
        lifetime_ns: of these, from their fork on.
        cpu_ns: CPU time of threads that ended.
        failures: by reason: calls of execve(2) that failed, an exit status other than 0, a signal.
    """

    __slots__ = ("cpu_ns", "ends", "failures", "lifetime_ns", "starts")

    def __init__(self) -> None:
        self.starts = 0
        self.ends = 0
        self.lifetime_ns = 0
        self.cpu_ns = 0
        self.failures: Counter[str] = Counter()

    @property
    def failed(self) -> int:
        """The number of starts that were refused or ended in failure."""
        return self.failures.total()


class ProgramTable:
    """A `Printer` of a table by program: the most CPU time first.

    Args:
        top: rows to print; None: all.
        format: "text" or "json".
    """

    def __init__(self, *, top: int | None = None, format: str = "text") -> None:  # noqa: A002 - as the option is called
        self._top = top
        self._format = format
        self._width: int | None = None
        self._rows: dict[str, ExecRow] = {}
        self._programs: OrderedDict[int, str] = OrderedDict()
        self._dropped = 0

    def begin(self, width: int | None) -> Iterable[str]:
        """Nothing yet."""
        self._width = width
        return ()

    def show(self, events: Iterable[Event]) -> Iterable[str]:
        """Nothing: events are counted."""
        for event in events:
            self._add(event)
        return ()

    def _add(self, event: Event) -> None:
        pid = event.task.pid
        if isinstance(event, Executed):
            self._programs[pid] = event.executable
            self._programs.move_to_end(pid)
            if len(self._programs) > ROOM:
                self._programs.popitem(last=False)
            program = event.executable
        elif isinstance(event, Refused):
            program = event.path
        else:  # one that has not executed a program during the run goes by its name
            program = self._programs.get(pid) or f"({event.task.comm})"
        row = self._rows.get(program)
        if row is None:
            if len(self._rows) >= ROOM:
                self._dropped += 1
                return
            row = self._rows[program] = ExecRow()
        _count(row, event)

    def end(self, loss: Loss) -> Iterator[str]:
        """The table."""
        ranked = sorted(
            self._rows.items(),
            key=lambda item: (-item[1].cpu_ns, -item[1].failed, -item[1].starts, item[0]),
        )
        rows = ranked[: self._top]
        if self._format == "json":
            yield from json_lines(_document(program, row) for program, row in rows)
            yield from json_loss(loss)
            return
        yield f" STARTS    ENDS FAILED     CPU   LIVED {'WHY':14} PROGRAM\n"
        for program, row in rows:
            yield fit_path(_line(row), printable(program), self._width) + "\n"
        if left := len(ranked) - len(rows):
            yield fit(f"... and {left} more", self._width) + "\n"

    def losses(self) -> tuple[Cause, ...]:
        """Events that the table has no room for."""
        warning = count_text(
            self._dropped, f"events were dropped: the table was full, at {ROOM} rows"
        )
        return (Cause("rows_full", self._dropped, warning),)


def _count(row: ExecRow, event: Event) -> None:
    match event:
        case Executed():
            row.starts += 1
        case Refused(errno=number):
            row.failures[errno_name(number)] += 1
        case Used(cpu_ns=cpu_ns):
            row.cpu_ns += cpu_ns
        case Ended(status=status, signal=signal, lifetime_ns=lifetime_ns):
            row.ends += 1
            row.lifetime_ns += lifetime_ns
            if signal is not None:
                row.failures[name_signal(signal)] += 1
            elif status:
                row.failures[f"status {status}"] += 1


def _line(row: ExecRow) -> str:
    lived = in_unit(row.lifetime_ns / row.ends) if row.ends else "-"
    return (
        f"{row.starts:7} {row.ends:7} {row.failed:6} {in_unit(row.cpu_ns):>7} {lived:>7} "
        f"{_why(row):14} "
    )


def _why(row: ExecRow) -> str:
    ranked = row.failures.most_common()
    if not ranked:
        return "-"
    return ranked[0][0] + (f" +{len(ranked) - 1}" if len(ranked) > 1 else "")


def _document(program: str, row: ExecRow) -> dict[str, object]:
    return {
        "event": "program",
        "program": program,
        "starts": row.starts,
        "ends": row.ends,
        "failed": row.failed,
        "failures": dict(row.failures.most_common()),
        "cpu_ns": row.cpu_ns,
        "lifetime_ns": row.lifetime_ns,
    }
