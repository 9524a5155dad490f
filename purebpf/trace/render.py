"""A trace as lines: text, as strace writes them, or JSON. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from purebpf.cli.event_lines import JsonLines, TaskLines, event_document, fit
from purebpf.errors import errno_name
from purebpf.results import Loss
from purebpf.results.model.spelling import printable
from purebpf.results.model.units import in_unit
from purebpf.trace.events import Call, Ended, Event, Lost, Passed, Signalled

__all__ = ["JsonPrinter", "StracePrinter", "TextPrinter", "describe"]

_RESULT_COLUMN = 39
_FRAME = " " * 35
"""Before a frame of a stack, below its call."""


def describe(event: Event, prefix: str = "") -> str:
    """An event as strace writes it; results are in a column of their own, where they can be."""
    if isinstance(event, Call):
        return _call(event, prefix)
    return prefix + _describe_other(event)


def _describe_other(event: Passed | Signalled | Ended | Lost) -> str:
    if isinstance(event, Passed):
        shown = ", ".join(f"{name}={text}" for name, text in event.arguments.items())
        return f"{event.name}({shown})"
    if isinstance(event, Signalled):
        return f"--- {event.name} {event.info} ---"
    if isinstance(event, Ended):
        if event.signal:
            dumped = " (core dumped)" if event.dumped else ""
            return f"+++ killed by {event.signal}{dumped} +++"
        return f"+++ exited with {event.status} +++"
    most = sorted(event.by_name.items(), key=lambda item: -item[1])
    names = ", ".join(f"{count} {name}" for name, count in most)
    what = "events" if any(":" in name for name, _ in most) else "calls"
    return f"... {event.calls} {what} lost here{': ' if names else ''}{names}"


def _call(call: Call, prefix: str) -> str:
    name = call.name if call.abi in ("x86_64", "aarch64") else f"{call.name}/{call.abi}"
    shown = f"{prefix}{name}({', '.join(call.arguments)}"
    if call.ending != "returned" and call.name not in ("exit", "exit_group"):
        return f"{shown} <unfinished ...>"
    return f"{shown + ')':<{_RESULT_COLUMN}} = {call.result_text}"


def _stack(event: Event) -> tuple[str, ...]:
    return (event.stack or ()) if isinstance(event, Call | Passed) else ()


class TextPrinter(TaskLines[Event]):
    """A line for each event, behind the thread and how long it took."""

    def columns(self, cgroup: str) -> str:
        """The names of the columns."""
        return f"    TID {'COMM':15}{cgroup}   TAKES CALL"

    def line(self, event: Event, width: int | None) -> str:
        """An event; what is too long is cut."""
        if isinstance(event, Lost):
            return fit(describe(event), width)
        takes = in_unit(event.duration_ns) if isinstance(event, Call) else ""
        task = event.task
        columns = (
            f"{self.time(event.time_ns)}{task.tid:7} {printable(task.comm):15}"
            f"{self.cgroup(task.cgroup)} {takes:>7} "
        )
        lines = [columns + describe(event), *(f"{_FRAME}{frame}" for frame in _stack(event))]
        return "\n".join(fit(line, width) for line in lines)


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
        """Nothing: standard error says what was lost."""
        del loss
        return ()


class JsonPrinter(JsonLines[Event]):
    """An object for each event."""

    def document(self, event: Event) -> dict[str, object]:
        """Its fields, those of its task first."""
        if isinstance(event, Lost):
            return {"event": "lost", "calls": event.calls, "by_name": event.by_name}
        fields = event._asdict()
        time_ns, task = fields.pop("time_ns"), fields.pop("task")
        what = {Call: "call", Passed: "tracepoint", Signalled: "signal", Ended: "exit"}[type(event)]
        if isinstance(event, Call):
            fields["errno"] = errno_name(event.errno) if event.errno else None
        if isinstance(event, Call | Passed) and event.stack is None:
            del fields["stack"]
        return event_document(what, time_ns, {**task._asdict(), **fields})
