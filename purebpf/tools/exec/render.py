"""Processes as lines of text or of JSON. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from purebpf.cli.event_lines import JsonLines, TaskLines, event_document, fit
from purebpf.errors import errno_name
from purebpf.results.model.spelling import printable
from purebpf.results.model.units import in_unit
from purebpf.results.model.width import pad
from purebpf.tools.exec.events import Ended, Event, Executed, Refused, Used
from purebpf.tools.exec.signals import name_signal

__all__ = ["JsonPrinter", "TextPrinter"]

_ARGUMENTS_ROOM = 4096
"""Characters of arguments on a line: 20 of 128 in bcc's execsnoop are 2560."""
_QUOTED_QUOTE = "'\"'\"'"
"""What shlex makes of a single quote: 16 kB of them are a line of 82 kB."""


class TextPrinter(TaskLines[Event]):
    """A line for each event.

    Args:
        times: with the time of day.
        cgroups: with the container or unit.
        whole: with all arguments that were recorded.
        above: lines above the names of the columns.
    """

    def __init__(
        self,
        *,
        times: bool = False,
        cgroups: bool = False,
        whole: bool = False,
        above: Sequence[str] = (),
    ) -> None:
        super().__init__(times=times, cgroups=cgroups)
        self._whole = whole
        self._above = above

    def header(self) -> str:
        """The lines above, and the names of the columns."""
        return "\n".join((*self._above, super().header()))

    def columns(self, cgroup: str) -> str:
        """The names of the columns."""
        return f"EVENT    PID    PPID   UID {'COMM':15}{cgroup} WHAT"

    def line(self, event: Event, width: int | None) -> str:
        """An event; its end is cut."""
        task = event.task
        kind, fields = _describe(event, whole=self._whole)
        return fit(
            f"{self.time(task.time_ns)}{kind:4} {task.pid:7} {task.ppid:7} {task.uid:5} "
            f"{pad(printable(task.comm), 15)}{self.cgroup(task.cgroup)} {printable(fields)}",
            width,
        )


def _describe(event: Event, *, whole: bool) -> tuple[str, str]:
    match event:
        case Executed(arguments=arguments, path=path, cut_bytes=cut):
            if not whole:
                arguments, left_out = _bounded(arguments)
                cut += left_out
            more = f" ... ({cut} bytes more)" if cut else ""
            return "exec", (shlex.join(arguments) or path) + more
        case Refused(path=path, errno=number):
            return "fail", f"{errno_name(number)} {path}"
        case Ended(signal=number, dumped_core=dumped, lifetime_ns=lifetime_ns):
            core = " (core dumped)" if dumped else ""
            how = f"status {event.status}" if number is None else f"{name_signal(number)}{core}"
            return "exit", f"{how} after {in_unit(lifetime_ns)}"
        case Used(cpu_ns=cpu_ns):
            return "used", f"{in_unit(cpu_ns)} of CPU"


def _bounded(arguments: tuple[str, ...]) -> tuple[tuple[str, ...], int]:
    """Return the arguments that fit into a line, the last one cut, and the number of omitted
    bytes.
    """
    room = _ARGUMENTS_ROOM
    for count, argument in enumerate(arguments):
        for place, character in enumerate(argument):
            room -= len(_QUOTED_QUOTE) if character == "'" else 1
            if room < 0:
                left_out = (argument[place:], *arguments[count + 1 :])
                size = len("\0".join(left_out).encode(errors="surrogateescape")) + 1
                return (*arguments[:count], *([argument[:place]] if place else [])), size
        room -= 1  # the blank; and the quotes, if there are any
        room -= 0 if shlex.quote(argument) == argument else 2
    return arguments, 0


class JsonPrinter(JsonLines[Event]):
    """An object for each event."""

    def document(self, event: Event) -> dict[str, object]:
        """Return the event's fields, with the fields of its task first."""
        return _document(event)


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
            fields: dict[str, object] = {
                "path": event.path,
                "executable": event.executable,
                "arguments": event.arguments,
                "cut_bytes": event.cut_bytes,
            }
            return event_document("exec", task.time_ns, {**about, **fields})
        case Refused():
            fields = {"path": event.path, "errno": errno_name(event.errno)}
            return event_document("fail", task.time_ns, {**about, **fields})
        case Ended(signal=number):
            name = None if number is None else name_signal(number)
            fields = {
                "status": event.status,
                "signal": name,
                "dumped_core": event.dumped_core,
                "lifetime_ns": event.lifetime_ns,
            }
            return event_document("exit", task.time_ns, {**about, **fields})
        case Used(cpu_ns=cpu_ns):
            return event_document("used", task.time_ns, {**about, "cpu_ns": cpu_ns})
