"""Processes as lines of text or of JSON. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from signal import Signals

from purebpf.cli.event_command import (
    Printer,
    clock,
    errno_name,
    event_document,
    fit,
    json_lines,
    json_loss,
)
from purebpf.cli.units import duration_text
from purebpf.exec.events import Ended, Event, Executed, Refused
from purebpf.results import Loss
from purebpf.results.model.spelling import printable

__all__ = ["JsonPrinter", "TextPrinter"]


class TextPrinter(Printer[Event]):
    """A line for each event.

    Args:
        times: with the time of day.
        cgroups: with the container or unit.
    """

    def __init__(self, *, times: bool = False, cgroups: bool = False) -> None:
        self._times = times
        self._cgroups = cgroups
        self._width: int | None = None

    def begin(self, width: int | None) -> Iterator[str]:
        """The names of the columns."""
        self._width = width
        time = f"{'TIME':12} " if self._times else ""
        cgroup = f" {'CONTAINER':20}" if self._cgroups else ""
        yield f"{time}EVENT    PID    PPID   UID {'COMM':15}{cgroup} WHAT\n"

    def show(self, events: Iterable[Event]) -> Iterator[str]:
        """Their lines."""
        for event in events:
            yield fit(self._line(event), self._width) + "\n"

    def end(self, loss: Loss) -> Iterable[str]:
        """Nothing: standard error says what was lost."""
        del loss
        return ()

    def _line(self, event: Event) -> str:
        task = event.task
        time = f"{clock(task.time_ns)} " if self._times else ""
        cgroup = f" {printable(task.cgroup):20}" if self._cgroups else ""
        kind, what = _describe(event)
        return (
            f"{time}{kind:4} {task.pid:7} {task.ppid:7} {task.uid:5} "
            f"{printable(task.comm):15}{cgroup} {printable(what)}"
        )


def _describe(event: Event) -> tuple[str, str]:
    match event:
        case Executed(arguments=arguments, path=path, cut_bytes=cut):
            more = f" ... ({cut} bytes more)" if cut else ""
            return "exec", (shlex.join(arguments) or path) + more
        case Refused(path=path, errno=number):
            return "fail", f"{errno_name(number)} {path}"
        case Ended(signal=number, dumped_core=dumped, lifetime_ns=lifetime_ns):
            core = " (core dumped)" if dumped else ""
            how = f"status {event.status}" if number is None else f"{_signal(number)}{core}"
            return "exit", f"{how} after {duration_text(lifetime_ns)}"


def _signal(number: int) -> str:
    try:
        return Signals(number).name
    except ValueError:  # one of the real-time signals
        return f"signal {number}"


class JsonPrinter(Printer[Event]):
    """An object for each event, on a line of its own; the last one says what was lost."""

    def begin(self, width: int | None) -> Iterable[str]:
        """Nothing."""
        del width
        return ()

    def show(self, events: Iterable[Event]) -> Iterable[str]:
        """Their lines."""
        return json_lines(map(_document, events))

    def end(self, loss: Loss) -> Iterable[str]:
        """Every counter of what was lost."""
        return json_loss(loss)


def _document(event: Event) -> dict[str, object]:
    task = event.task
    about: dict[str, object] = {
        "pid": task.pid,
        "tid": task.tid,
        "ppid": task.ppid,
        "uid": task.uid,
        "comm": task.comm,
        "cgroup": task.cgroup,
    }
    match event:
        case Executed():
            what: dict[str, object] = {
                "path": event.path,
                "executable": event.executable,
                "arguments": event.arguments,
                "cut_bytes": event.cut_bytes,
            }
            return event_document("exec", task.time_ns, {**about, **what})
        case Refused():
            what = {"path": event.path, "errno": errno_name(event.errno)}
            return event_document("fail", task.time_ns, {**about, **what})
        case Ended(signal=number):
            name = None if number is None else _signal(number)
            what = {
                "status": event.status,
                "signal": name,
                "dumped_core": event.dumped_core,
                "lifetime_ns": event.lifetime_ns,
            }
            return event_document("exit", task.time_ns, {**about, **what})
