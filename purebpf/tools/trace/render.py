"""A trace as lines: text, as strace writes them, or JSON. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from purebpf.cli.event_lines import JsonLines, TaskLines, event_document, fit
from purebpf.errors import errno_name
from purebpf.results import Loss
from purebpf.results.model.json_values import exact
from purebpf.results.model.spelling import printable
from purebpf.results.model.units import in_unit
from purebpf.results.model.width import cut, display_width
from purebpf.tools.trace.events import Call, Ended, Event, Lost, Passed, Signalled

__all__ = ["JsonPrinter", "StracePrinter", "TextPrinter", "describe"]

_RESULT_COLUMN = 39
_UNFINISHED = " <unfinished ...>"
_FRAME = " " * 35
"""Before a frame of a stack, below its call."""


def describe(event: Event, prefix: str = "") -> str:
    """Describe an event as strace writes it; results are in a separate column, where they can
    be.
    """
    if isinstance(event, Call):
        return _call(event, prefix)
    return prefix + _describe_other(event)


def _describe_other(event: Passed | Signalled | Ended | Lost) -> str:
    if isinstance(event, Passed):
        event_text = ", ".join(f"{name}={text}" for name, text in event.arguments.items())
        return f"{event.name}({event_text})"
    if isinstance(event, Signalled):
        return f"--- {event.name} {event.info} ---"
    if isinstance(event, Ended):
        if event.signal:
            dumped = " (core dumped)" if event.dumped else ""
            return f"+++ killed by {event.signal}{dumped} +++"
        return f"+++ exited with {event.status} +++"
    most = sorted(event.by_name.items(), key=lambda item: -item[1])
    names = ", ".join(f"{count} {name}" for name, count in most)
    noun = "events" if any(":" in name for name, _ in most) else "calls"
    return f"... {event.calls} {noun} lost here{': ' if names else ''}{names}"


def _call(call: Call, prefix: str) -> str:
    event_text = _begin(call, prefix)
    if not _has_result(call):
        return event_text + _UNFINISHED
    return f"{event_text + ')':<{_RESULT_COLUMN}} = {call.result_text}"


def _begin(call: Call, prefix: str) -> str:
    name = call.name if call.abi in ("x86_64", "aarch64") else f"{call.name}/{call.abi}"
    return f"{prefix}{name}({', '.join(call.arguments)}"


def _has_result(call: Call) -> bool:
    return call.ending == "returned" or call.name in ("exit", "exit_group")


def _fit_call(call: Call, prefix: str, width: int) -> str:
    """A call in so many columns: it loses words of the result, then the end of arguments."""
    line = prefix + _call(call, "")
    if display_width(line) <= width:
        return line
    if not _has_result(call):
        return f"{cut(_begin(call, prefix), width - len(_UNFINISHED))}{_UNFINISHED}"
    result = f") = {call.result_text.partition(' (')[0]}"
    room = width - display_width(result)
    if room < display_width(prefix) + len(call.name) + len(_UNFINISHED):
        return fit(line, width)
    return cut(_begin(call, prefix), room) + result


def _duration(call: Call) -> str:
    return "?" if call.duration_ns is None else in_unit(call.duration_ns)


def _stack(event: Event) -> tuple[str, ...]:
    return (event.stack or ()) if isinstance(event, Call | Passed) else ()


class TextPrinter(TaskLines[Event]):
    """A line for each event, behind the thread and how long it took."""

    def columns(self, cgroup: str) -> str:
        """The names of the columns."""
        return f"    TID {'COMM':15}{cgroup}   TAKES CALL"

    def line(self, event: Event, width: int | None) -> str:
        """Return the line of an event; long ones are cut."""
        if isinstance(event, Lost):
            return fit(describe(event), width)
        takes = _duration(event) if isinstance(event, Call) else ""
        task = event.task
        columns = (
            f"{self.time(event.time_ns)}{task.tid:7} {printable(task.comm):15}"
            f"{self.cgroup(task.cgroup)} {takes:>7} "
        )
        if isinstance(event, Call) and width is not None:
            first = _fit_call(event, columns, width)
        else:
            first = fit(columns + describe(event), width)
        return "\n".join([first, *(fit(f"{_FRAME}{frame}", width) for frame in _stack(event))])


class StracePrinter:
    """Lines as `strace -f -o FILE` writes them: each behind the number of its thread."""

    def begin(self, width: int | None) -> Iterable[str]:
        """Nothing."""
        del width
        return ()

    def show(self, events: Iterable[Event]) -> Iterator[str]:
        """The lines."""
        for event in events:
            tid = "" if isinstance(event, Lost) else f"{event.task.tid:<5} "
            yield f"{describe(event, tid)}\n"
            for frame in _stack(event):
                yield f" > {frame}\n"

    def end(self, loss: Loss) -> Iterable[str]:
        """Print nothing: standard error has the losses."""
        del loss
        return ()


class JsonPrinter(JsonLines[Event]):
    """An object for each event."""

    def document(self, event: Event) -> dict[str, object]:
        """Return the event's fields, with the fields of its task first."""
        if isinstance(event, Lost):
            return {"event": "lost", "calls": event.calls, "by_name": event.by_name}
        fields = event._asdict()
        time_ns, task = fields.pop("time_ns"), fields.pop("task")
        noun = {Call: "call", Passed: "tracepoint", Signalled: "signal", Ended: "exit"}[type(event)]
        if isinstance(event, Call):
            fields["errno"] = errno_name(event.errno) if event.errno else None
            fields["words"] = [exact(word) for word in event.words]
        if isinstance(event, Passed):
            fields["values"] = {name: exact(value) for name, value in event.values.items()}
        if isinstance(event, Call | Passed) and event.stack is None:
            del fields["stack"]
        return event_document(noun, time_ns, {**task._asdict(), **fields})
