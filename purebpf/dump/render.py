"""A dump as text, and as JSON."""

from __future__ import annotations

from collections.abc import Iterator

from purebpf.dump.model import DumpedFrame, DumpedThread, ProcessDump

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


def _thread(thread: DumpedThread) -> Iterator[str]:
    said = [thread.state]
    if thread.waits_for:
        said.append(f"waits for {thread.waits_for}")
    if thread.holds_gil:
        said.append("holds the GIL")
    if thread.interpreter > 0:
        said.append(f"interpreter {thread.interpreter}")
    yield f'Thread {thread.tid} "{_printable(thread.name)}": {_printable(", ".join(said))}\n'
    for frame in thread.frames:
        yield f"    {_printable(_frame(frame))}\n"
    for problem in thread.problems:
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
    """The text without what would move a terminal's cursor, or begin a line."""
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

    threads = [
        {**thread._asdict(), "frames": [frame._asdict() for frame in thread.frames]}
        for thread in dump.threads
    ]
    return json.dumps({**dump._asdict(), "threads": threads}, indent=1) + "\n"
