"""Waits for locks and their sums as text, JSON, CSV or folded stacks. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from purebpf.cli.event_lines import clock, event_document
from purebpf.cli.event_sums import SumCsv, SumJson, SumText
from purebpf.cli.places import wrapped_place
from purebpf.findings.places import TimePlace
from purebpf.results import Loss
from purebpf.results.model.spelling import count_text, printable
from purebpf.results.model.units import in_unit
from purebpf.results.model.width import fold
from purebpf.symbols.short_names import shorten
from purebpf.tools.lock.event import LockRow, Wait
from purebpf.tools.lock.old_waits import OldWait, count_old_waits, describe_held
from purebpf.tools.lock.user_event import UserRow, UserWait

__all__ = ["Csv", "Folded", "Json", "LockText", "UserCsv", "UserJson", "UserText"]

_EVENTS = f"{'TIME':12} {'PID':>7} {'COMM':15} {'TYPE':11} {'TOOK':>7} LOCK"
_SUMS = "   WAITS  OPEN   TOTAL     AVG     MAX"
Others = Callable[[], Mapping[str, tuple[int, int]]]
_NOTHING = 0.005
"""Of the CPU time of the machine: shorter waits explain nothing."""
_WIDTH = 80
_MOST_AT_WORK = 3
_UNKNOWN_OWNER = "[unknown: spinlocks, readers and RT do not say]"


class LockText(SumText[Wait, LockRow]):
    """A line for each slow wait, and a table at the end below their sum. `by`: one of GROUPINGS.

    Args:
        cpu_s: returns the seconds of the run times the number of CPUs; 0.0 where that is not known.
        has_decoder: locks were named by the types of the code that takes them, if possible.
    """

    events_header = _EVENTS
    empty = "no waits"

    def __init__(
        self,
        rows: Callable[[], Sequence[LockRow]],
        by: str,
        *,
        cpu_s: Callable[[], float] = float,
        has_decoder: bool = True,
        **details: Any,
    ) -> None:
        super().__init__(rows, by, **details)
        self._cpu_s = cpu_s
        self._has_decoder = has_decoder

    def end(self, loss: Loss) -> Iterator[str]:
        """The sum of all waits with a verdict, then the table."""
        rows, cpu_s = self._rows(), self._cpu_s()
        if rows and cpu_s:
            waits = sum(row.waits + row.open for row in rows)
            total_ns = sum(row.total_ns for row in rows)
            share = total_ns / 1e9 / cpu_s
            verdict = "; nothing here" if share < _NOTHING else ""
            yield (
                f"{count_text(waits, 'waits')}, {in_unit(total_ns)} in all: "
                f"{100 * share:.2g} % of CPU time{verdict}\n"
            )
        yield from super().end(loss)
        if self.by == "lock" and not self._has_decoder:
            yield from _without_decoder(rows)

    def event_lines(self, event: Wait) -> Iterator[str]:
        """A wait and its stack."""
        yield _line(event)
        yield from _stack(event.stack)
        yield from _owner_stack(event.owner_stack)

    def header(self) -> str:
        """The names of the table's columns."""
        typed = f"{'TYPE':11} " if self._is_typed else ""
        return f"{_SUMS}{self.marks_header()} {typed}{self.by.upper()}"

    def row_lines(self, row: LockRow) -> Iterator[str]:
        """A sum and its stack."""
        average = in_unit(row.total_ns // (row.waits + row.open))
        typed = f"{row.type:11} " if self._is_typed else ""
        yield from self.named_row(
            f"{row.waits:>8} {row.open or '':>5} {in_unit(row.total_ns):>7} "
            f"{average:>7} {in_unit(row.max_ns):>7}{self.marks(row)} {typed}",
            printable(self._name(row)),
        )
        yield from _stack(row.stack)
        yield from _owner_stack(row.owner_stack)

    @property
    def _is_typed(self) -> bool:
        return self.by in ("caller", "stack", "lock")

    def _name(self, row: LockRow) -> str:
        if self.by == "owner":
            return f"{row.name} ({row.tid})" if row.tid else _UNKNOWN_OWNER
        return _name_task(self.by, row)


def _without_decoder(rows: Iterable[LockRow]) -> Iterator[str]:
    """Count the locks without a name, and name the package that names more of them."""
    nameless = sum(row.name.startswith("0x") for row in rows)
    if nameless:
        counted = count_text(nameless, "locks")
        yield f"{counted} without a name: pip install 'purebpf[types]' names locks by their types\n"


class Json(SumJson[Wait, LockRow]):
    """An object for each slow wait, then the sums."""

    def event_document(self, event: Wait) -> dict[str, object]:
        """Every field; addresses are hexadecimal: JSON numbers are exact up to 2^53."""
        fields = event._asdict()
        fields["lock"] = hex(event.lock)
        return event_document("wait", fields.pop("time_ns"), fields)


class Csv(SumCsv[Wait, LockRow]):
    """A line for each row."""

    columns = ("name", "type", "pid", "tid", "waits", "open", "total_ns", "max_ns", "known_from")


class UserText(SumText[UserWait, UserRow]):
    """As `LockText`, for waits in user space, with a line about the waits it leaves out."""

    events_header = _EVENTS
    empty = "no waits"

    def __init__(
        self,
        rows: Callable[[], Sequence[UserRow]],
        by: str,
        *,
        others: Others,
        old_waits: Callable[[], Sequence[OldWait]] = tuple,
        at_work: Callable[[], Sequence[TimePlace]] = tuple,
        **details: Any,
    ) -> None:
        super().__init__(rows, by, **details)
        self._others = others
        self._old_waits = old_waits
        self._at_work = at_work
        self._named_gil = False

    def event_lines(self, event: UserWait) -> Iterator[str]:
        """A wait and its stacks."""
        held = f", held by {event.owner_tid}" if event.owner_tid else ""
        description = f"{event.name} in {event.caller or '[unknown]'}{held}"
        yield _columns(event, description)
        yield from _stack(event.stack)
        if event.waker:
            yield f"{'':8}woken {in_unit(event.wake_ns)} before, from:"
            yield from _stack(event.waker)

    def header(self) -> str:
        """The names of the table's columns."""
        return f"{_SUMS}{self.marks_header()} MOST {'TYPE':11} {self.by.upper()}"

    def row_lines(self, row: UserRow) -> Iterator[str]:
        """A sum; where threads waited, and where the last was woken from."""
        average = in_unit(row.total_ns // (row.waits + row.open))
        yield from self.named_row(
            f"{row.waits:>8} {row.open or '':>5} {in_unit(row.total_ns):>7} {average:>7} "
            f"{in_unit(row.max_ns):>7}{self.marks(row)} {row.most_waiting:>4} {row.type:11} ",
            printable(self._name(row)),
        )
        if row.is_convoy:
            share = f"{100 * row.handed_on // row.waits} % of the waits"
            yield f"{'':8}convoy: {share} ended while up to {row.most_waiting - 1} others waited on"
        yield from self._holders(row)
        yield from _stack(row.stack)
        if row.waker:
            yield f"{'':8}woken {in_unit(row.wake_ns // row.woken)} before, from:"
            yield from _stack(row.waker)

    def _holders(self, row: UserRow) -> Iterator[str]:
        """The functions of the thread that had the lock, in as many lines as they take."""
        if row.type == "GIL" and not self._named_gil:
            self._named_gil = True
            yield f"{'':8}functions that run with the GIL: purebpf profile --gil"
        if not row.released_in:
            return
        text = " < ".join(map(printable, row.released_in))
        yield from fold(f"{'':8}held in {text}", self._width or _WIDTH).split("\n")

    def _name(self, row: UserRow) -> str:
        if self.by == "lock":
            return f"{row.name} of {row.pid}"
        if self.by == "owner":
            return f"{row.name} ({row.tid})" if row.tid else "[unknown: not a mutex of glibc]"
        if self.by in ("caller", "stack"):
            return shorten(row.name)
        return _name_task(self.by, row)

    def end(self, loss: Loss) -> Iterator[str]:
        """Waits of before the run that did not end, then the table."""
        old_waits = self._old_waits()
        counted = [fold(f"{line}\n", self._width) for line in count_old_waits(old_waits)]
        for line in describe_held(old_waits):
            yield fold(f"{line}\n", self._width)
        if old_waits:
            self.empty = "no waits ended or began"
        if self._rows():  # most of these threads are idle: the waits of the run stand first
            yield from super().end(loss)
            yield from self._meanwhile()
            yield from counted
        else:
            yield from counted
            yield from super().end(loss)
        others = sorted(self._others().items(), key=lambda other: -other[1][1])
        if others:
            parts = (f"{kind} {in_unit(total_ns)}" for kind, (_, total_ns) in others)
            names = ",".join(kind for kind, _ in others)
            yield f"not shown: {', '.join(parts)} (--type {names})\n"

    def _meanwhile(self) -> Iterator[str]:
        """The places of threads that do not wait for locks: the holder of one is among them."""
        places = self._at_work()
        if places:
            yield "at the end of the run, not waiting for a lock:\n"
        for place in places[:_MOST_AT_WORK]:
            yield from wrapped_place(place)
        if len(places) > _MOST_AT_WORK:
            yield f"  and {len(places) - _MOST_AT_WORK} more threads\n"


class UserJson(SumJson[UserWait, UserRow]):
    """As `Json`, of waits in user space."""

    def event_document(self, event: UserWait) -> dict[str, object]:
        """Every field; addresses are hexadecimal: JSON numbers are exact up to 2^53."""
        fields = event._asdict()
        fields["lock"] = hex(event.lock)
        return event_document("wait", fields.pop("time_ns"), fields)

    def row_document(self, row: UserRow) -> dict[str, object]:
        """Every field; addresses are hexadecimal."""
        return row._asdict() | {"address": hex(row.address)}


class UserCsv(SumCsv[UserWait, UserRow]):
    """A line for each row of waits in user space."""

    columns = (
        *("name", "type", "pid", "tid", "address", "waits", "open", "total_ns", "max_ns"),
        *("timeouts", "woken", "wake_ns", "most_waiting", "handed_on"),
    )


class Folded:
    """A line for each stack that was waited in, with the microseconds.

    Args:
        rows: the sums, once the run is over; by stack.
    """

    def __init__(self, rows: Callable[[], Sequence[LockRow] | Sequence[UserRow]]) -> None:
        self._rows = rows

    def begin(self, width: int | None) -> Iterable[str]:
        """Nothing."""
        del width
        return ()

    def show(self, events: Iterable[object]) -> Iterable[str]:
        """Nothing."""
        del events
        return ()

    def end(self, loss: Loss) -> Iterator[str]:
        """The lines; the last frame is the type of the lock."""
        del loss
        sums: dict[str, int] = {}
        for row in self._rows():
            names = (*(reversed(row.stack) if row.stack else [row.name]), f"[{row.type}]")
            line = ";".join(printable(name).replace(";", ":") for name in names)
            sums[line] = sums.get(line, 0) + row.total_ns
        for line, total_ns in sums.items():
            yield f"{line} {round(total_ns / 1000)}\n"


def _name_task(by: str, row: LockRow | UserRow) -> str:
    if by == "process":
        return f"{row.name} ({row.pid})"
    if by == "thread":
        return f"{row.name} ({row.pid}/{row.tid})"
    return row.name or "/"


def _line(event: Wait) -> str:
    description = event.name
    if event.caller:
        description += f" in {event.caller}"
    if event.owner:
        description += f", held by {event.owner} ({event.owner_tid})"
    return _columns(event, description)


def _columns(event: Wait | UserWait, description: str) -> str:
    return (
        f"{clock(event.time_ns)} {event.pid:>7} {printable(event.comm):15} {event.type:11} "
        f"{in_unit(event.took_ns):>7} {printable(description)}"
    )


def _stack(names: Sequence[str]) -> Iterator[str]:
    for name in names:
        yield f"{'':10}{printable(name)}"


def _owner_stack(names: Sequence[str]) -> Iterator[str]:
    if names:
        yield f"{'':8}held in:"
        yield from _stack(names)
