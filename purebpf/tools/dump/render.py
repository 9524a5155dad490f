"""A dump as text, and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from purebpf.tools.dump.model import DumpedFrame, DumpedTask, DumpedThread, ProcessDump

__all__ = ["document", "lines"]


def lines(dump: ProcessDump) -> Iterator[str]:
    """The text, line by line."""
    yield f"PID {dump.pid}: {_printable(dump.command)}\n"
    if dump.python:
        build = " without a GIL" if dump.is_free_threaded else ""
        yield f"CPython {dump.python}{build}\n"
    for note in dump.notes:
        yield f"note: {_printable(note)}\n"
    for thread in dump.threads:
        yield "\n"
        yield from _thread(thread)
    if dump.tasks is not None:
        yield f"\nasyncio: {len(dump.tasks)} tasks\n"
        for task in dump.tasks:
            yield "\n"
            yield from _task(task)


def _thread(thread: DumpedThread) -> Iterator[str]:
    said = [thread.state]
    if thread.waits_for:
        said.append(f"waits for {thread.waits_for}")
    if thread.holds_gil:
        said.append("holds the GIL")
    if thread.interpreter > 0:
        said.append(f"interpreter {thread.interpreter}")
    yield f'Thread {thread.tid} "{_printable(thread.name)}": {_printable(", ".join(said))}\n'
    yield from _frames(thread)


def _task(task: DumpedTask) -> Iterator[str]:
    said = [_task_state(task)]
    if task.awaited_by:
        said.append(f"awaited by {_quoted(task.awaited_by)}")
    yield f'Task "{_printable(task.name)}": {_printable("; ".join(said))}\n'
    yield from _frames(task)


def _task_state(task: DumpedTask) -> str:
    if task.waits_for:
        return f"waits for {_quoted(task.waits_for)}"
    if task.state == "waits":
        return f"waits for a {task.waits_on}"
    return "ready to run" if task.state == "ready" else task.state


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def _frames(of: DumpedThread | DumpedTask) -> Iterator[str]:
    for frame in of.frames:
        yield f"    {_printable(_frame(frame))}\n"
    for problem in of.problems:
        yield f"    ({_printable(problem)})\n"


def _frame(frame: DumpedFrame) -> str:
    if frame.kind == "kernel":
        return f"{frame.name} [{frame.file}]"
    if frame.kind == "python":
        return (
            f"{frame.name} ({frame.file}:{frame.line})"
            if frame.line
            else (f"{frame.name} ({frame.file})")
        )
    module = frame.file.rpartition("/")[2] or "unknown"
    return f"{frame.name} ({module})"


def _printable(text: str) -> str:
    """Return the text without characters that would move a terminal's cursor or begin a line."""
    if text.isprintable():
        return text
    return "".join(
        char
        if char.isprintable()
        else char.encode("unicode_escape", "replace").decode()
        if not 0xD800 <= ord(char) < 0xE000
        else f"\\u{ord(char):04x}"
        for char in text
    )


def document(dump: ProcessDump) -> str:
    """The JSON."""
    import json

    tree = {**dump._asdict(), "threads": [_fields(thread) for thread in dump.threads]}
    if dump.tasks is None:
        del tree["tasks"]
    else:
        tree["tasks"] = [_fields(task) for task in dump.tasks]
    return json.dumps(tree, indent=1) + "\n"


def _fields(of: DumpedThread | DumpedTask) -> dict[str, object]:
    return {**of._asdict(), "frames": [frame._asdict() for frame in of.frames]}
