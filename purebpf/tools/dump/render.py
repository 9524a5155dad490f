"""A dump as text, and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from purebpf.cli.places import wrapped_place
from purebpf.findings.places import WORK, classify, sum_places
from purebpf.findings.rings import find_ring
from purebpf.results.model.json_values import json_object
from purebpf.results.model.spelling import count_text
from purebpf.tools.dump.activities import activity_of_thread
from purebpf.tools.dump.model import (
    DumpedFrame,
    DumpedGoroutines,
    DumpedTask,
    DumpedThread,
    ProcessDump,
)

__all__ = ["document", "lines"]


_MOST_PLACES = 10
_MOST_NUMBERS = 8


def lines(dump: ProcessDump, *, verbose: bool = False) -> Iterator[str]:
    """Return the text, line by line; `verbose` has each thread apart, and the kernel's frames."""
    yield f"PID {dump.pid}: {_printable(dump.command)}\n"
    if dump.python:
        build = " without a GIL" if dump.is_free_threaded else ""
        yield f"CPython {dump.python}{build}\n"
    if dump.java:
        yield f"HotSpot {_printable(dump.java)}\n"
    if dump.v8:
        yield f"V8 {dump.v8}\n"
    if dump.php:
        yield f"PHP {dump.php}\n"
    if dump.ruby:
        yield f"Ruby {dump.ruby}\n"
    for note in dump.notes:
        yield f"note: {_printable(note)}\n"
    yield from _summary(dump)
    if dump.goroutines:
        from purebpf.tools.dump.goroutine_places import goroutine_places

        yield from goroutine_places(dump)
    if verbose:
        for thread in dump.threads:
            yield "\n"
            yield from _thread(thread)
    else:
        for alike in _groups(dump.threads):
            yield "\n"
            yield from _thread(alike[0], [thread.tid for thread in alike])
    for group in dump.goroutines:
        yield f"\n{count_text(group.number, 'goroutines')}:\n"
        yield from _frames(group)
    if dump.tasks is not None:
        yield f"\nasyncio: {len(dump.tasks)} tasks\n"
        for task in dump.tasks:
            yield "\n"
            yield from _task(task)


def _summary(dump: ProcessDump) -> Iterator[str]:
    """The deadlock, if there is one; then threads by own function, those in the middle of work."""
    held = {thread.tid: thread.held_by for thread in dump.threads if thread.held_by}
    ring = find_ring(held)
    if ring:
        steps = ", ".join(f"{tid} waits for the lock of {held[tid]}" for tid in ring)
        yield f"deadlock: thread {steps}\n"
    if len(dump.threads) == 1:
        return
    places = sum_places([activity_of_thread(dump.pid, thread) for thread in dump.threads])
    places.sort(key=lambda location: (location.use != WORK, -location.threads))
    for location in places[:_MOST_PLACES]:
        yield from wrapped_place(location, "idle: " if location.use != WORK else "")
    if len(places) > _MOST_PLACES:
        yield f"  and {len(places) - _MOST_PLACES} more places\n"


def _groups(threads: Sequence[DumpedThread]) -> list[list[DumpedThread]]:
    """Threads with equal stacks; those in the middle of work first."""
    uses = classify([activity_of_thread(0, thread) for thread in threads])
    groups: dict[DumpedThread, list[DumpedThread]] = {}
    idle = set[DumpedThread]()
    for thread, (_, use) in zip(threads, uses, strict=True):
        frames = tuple(frame for frame in thread.frames if frame.kind != "kernel")
        key = thread._replace(tid=0, frames=frames or thread.frames)
        groups.setdefault(key, []).append(thread._replace(frames=key.frames))
        if use != WORK:
            idle.add(key)
    return [groups[key] for key in sorted(groups, key=lambda key: key in idle)]


def _numbers(tids: Sequence[int]) -> str:
    if len(tids) == 1:
        return f"Thread {tids[0]}"
    more = ", ..." if len(tids) > _MOST_NUMBERS else ""
    return f"{len(tids)} threads ({', '.join(map(str, tids[:_MOST_NUMBERS]))}{more})"


def _thread(thread: DumpedThread, tids: Sequence[int] = ()) -> Iterator[str]:
    said = [thread.state]
    if thread.waits_for:
        said.append(f"waits for {thread.waits_for}")
    if thread.held_by:
        said.append(f"held by {thread.held_by}")
    if thread.holds_gil:
        said.append("holds the GIL")
    if thread.interpreter > 0:
        said.append(f"interpreter {thread.interpreter}")
    numbers = _numbers(tids or (thread.tid,))
    yield f'{numbers} "{_printable(thread.name)}": {_printable(", ".join(said))}\n'
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


def _frames(of: DumpedThread | DumpedTask | DumpedGoroutines) -> Iterator[str]:
    for frame in of.frames:
        yield f"    {_printable(_frame(frame))}\n"
    for problem in of.problems if not isinstance(of, DumpedGoroutines) else ():
        yield f"    ({_printable(problem)})\n"


def _frame(frame: DumpedFrame) -> str:
    if frame.kind == "kernel":
        return f"{frame.name} [{frame.file}]"
    if frame.kind in ("python", "php", "ruby", "java", "javascript"):
        location = f"{frame.file}:{frame.line}" if frame.line else frame.file
        return f"{frame.name} ({location})" if location else frame.name
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
    tree["goroutines"] = [_fields(group) for group in dump.goroutines]
    if dump.tasks is None:
        del tree["tasks"]
    else:
        tree["tasks"] = [_fields(task) for task in dump.tasks]
    return json.dumps(json_object("dump", tree), indent=1) + "\n"


def _fields(of: DumpedThread | DumpedTask | DumpedGoroutines) -> dict[str, object]:
    return {**of._asdict(), "frames": [frame._asdict() for frame in of.frames]}
