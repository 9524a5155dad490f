"""Processes counted by program: a table at the end, or its rows as JSON. Pure."""

from __future__ import annotations

from collections import Counter, OrderedDict

from purebpf.cli.event_lines import fit_path
from purebpf.cli.event_table import EventTable, spell_reasons
from purebpf.errors import errno_name
from purebpf.results.model.spelling import printable
from purebpf.results.model.units import in_unit
from purebpf.tools.exec.events import Ended, Event, Executed, Refused, Used
from purebpf.tools.exec.signals import name_signal

__all__ = ["ExecRow", "ProgramTable"]


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


class ProgramTable(EventTable[Event, str, ExecRow]):
    """A table by program: the most CPU time first."""

    header = f" STARTS    ENDS FAILED     CPU   LIVED {'WHY':14} PROGRAM"

    def __init__(self, *, top: int | None = None, format: str = "text") -> None:  # noqa: A002 - as the option is called
        super().__init__(top=top, format=format)
        self._programs: OrderedDict[int, str] = OrderedDict()

    def _add(self, event: Event) -> bool:
        pid = event.task.pid
        if isinstance(event, Executed):
            self._programs[pid] = event.executable
            self._programs.move_to_end(pid)
            if len(self._programs) > self.room:
                self._programs.popitem(last=False)
            program = event.executable
        elif isinstance(event, Refused):
            program = event.path
        else:  # one that has not executed a program during the run goes by its name
            program = self._programs.get(pid) or f"({event.task.comm})"
        row = self._rows.get(program)
        if row is None:
            if len(self._rows) >= self.room:
                return False
            row = self._rows[program] = ExecRow()
        _count(row, event)
        return True

    def _rank(self) -> list[tuple[str, ExecRow]]:
        return sorted(
            self._rows.items(),
            key=lambda item: (-item[1].cpu_ns, -item[1].failed, -item[1].starts, item[0]),
        )

    def _line(self, key: str, row: ExecRow) -> str:
        return fit_path(_line(row), printable(key), self._width)

    def _document(self, key: str, row: ExecRow) -> dict[str, object]:
        return _document(key, row)


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
        f"{spell_reasons(row.failures):14} "
    )


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
