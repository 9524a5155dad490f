"""Chrome's trace events: time lines for Perfetto, chrome://tracing and speedscope.

Trace Event Format, https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU

A wait that was recorded by itself, or was not over when the run ended, is one event of its thread,
from its begin to its end; the part after the wake-up is a separate event. Where there are only
slots, the stacks of a thread share each slot, a nested event for each frame; a frame that goes on
into the next is one event. Stacks without a time are not drawn beside stacks that have one:
`otherData.undated` is their weight. If nothing has a time, stacks follow one another, as long as
their weight: a millisecond for a sample.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from json import JSONEncoder
from typing import Any

from purebpf.results.formats.chunked import join
from purebpf.results.model.profile import Labels, Profile, Row
from purebpf.results.model.spelling import NO_STACK
from purebpf.results.shape.functions import Function, Functions
from purebpf.tuples import NamedTuple

__all__ = ["document"]

_US = 1000
"""Nanoseconds in the unit of a trace's times."""

_SAMPLE_NS = 1_000_000

_Thread = tuple[int, int]
_encode = JSONEncoder(separators=(",", ":")).encode


class _Piece(NamedTuple):
    """A stack of a thread from one time to another, in nanoseconds."""

    start_ns: float
    end_ns: float
    path: Sequence[int]


def document(profile: Profile) -> Iterator[str]:
    """The pieces of the file: an object, with a line for each event."""
    rows = profile.rows()
    dated = _keep_dated(rows, profile.about.get("ended_ns"))
    slotted = [row for row in rows if row.slots]
    undated = profile.total - sum(row.weight for row in chain(dated, slotted))
    functions = Functions()
    if dated or slotted:
        charts = _place_slots(slotted, profile.slot_ns, functions)
    else:
        charts, undated = _lengths(rows, profile.unit, functions), 0
    waits = [(row, functions.path(row)) for row in dated]
    table = functions.table
    events = chain(
        map(_encode, _names(dated if dated or slotted else rows, slotted)),
        (_encode(event) for row, path in waits for event in _wait(row, path, table)),
        _nest(charts, table),
    )
    other = {"title": profile.title, "unit": profile.unit, "undated": undated, **profile.about}
    yield f'{{"displayTimeUnit":"ns","otherData":{_encode(other)},"traceEvents":[\n'
    yield from join(events, ",\n")
    yield "\n]}\n"


def _keep_dated(rows: Sequence[Row], end_ns: object) -> list[Row]:
    """Return the dated rows; a wait that was not over when the run ended is dated by the end."""
    dated = [row for row in rows if row.marks.ended_ns]
    if isinstance(end_ns, int):
        still = (row for row in rows if row.marks.is_open and not row.marks.ended_ns)
        dated += (row._replace(marks=row.marks._replace(ended_ns=end_ns)) for row in still)
    return dated


def _thread(labels: Labels) -> _Thread:
    return labels.pid, labels.tid or labels.pid


def _names(*rows: Sequence[Row]) -> Iterator[dict[str, Any]]:
    """Return the names of processes and threads; a process has the name of its first thread."""
    names = {_thread(row.labels): row.labels.comm for row in chain.from_iterable(rows)}
    for (pid, tid), comm in sorted(names.items()):
        of = {"ph": "M", "pid": pid, "tid": tid, "args": {"name": comm}}
        if tid == pid or (pid, pid) not in names:
            yield {"name": "process_name", **of}
        yield {"name": "thread_name", **of}


def _wait(row: Row, path: Sequence[int], table: Sequence[Function]) -> Iterator[dict[str, Any]]:
    """Yield one wait: blocked, and then waiting for a CPU if the profile has that part."""
    labels, marks = row.labels, row.marks
    stack = [table[number].name for number in reversed(path)]
    waker = marks.waker
    known = {
        "state": labels.state,
        "cgroup": labels.cgroup,
        "cpu": str(labels.cpu) if labels.cpu >= 0 else "",
        "waker": f"{waker.comm} ({waker.pid}/{waker.tid})" if waker else "",
        "over": "no" if marks.is_open else "",
    }
    args = {"stack": stack, **{name: value for name, value in known.items() if value}}
    queued_ns = max(marks.runnable, 0)
    woken_ns, kind = marks.ended_ns - queued_ns, marks.kind or "off-CPU"
    name = stack[0] if stack else NO_STACK
    start_ns = marks.ended_ns - row.weight
    if row.weight > queued_ns or not queued_ns:
        yield _event(name, kind, _thread(labels), start_ns, woken_ns) | {"args": args}
    if queued_ns:
        yield _event("run-queue", "run-queue", _thread(labels), woken_ns, marks.ended_ns)


def _event(
    name: str, category: str, thread: _Thread, start_ns: float, end_ns: float
) -> dict[str, Any]:
    pid, tid = thread
    ts, dur = start_ns / _US, (end_ns - start_ns) / _US
    return {"name": name, "cat": category, "ph": "X", "ts": ts, "dur": dur, "pid": pid, "tid": tid}


def _place_slots(
    rows: Sequence[Row], slot_ns: int, functions: Functions
) -> dict[_Thread, list[_Piece]]:
    """Place the stacks of each thread; stacks of one slot share it, as long as their weight."""
    slots_by_thread: dict[_Thread, dict[int, list[tuple[list[int], int]]]] = {}
    for row in rows:
        path = functions.path(row)
        slots = slots_by_thread.setdefault(_thread(row.labels), {})
        for slot, weight in row.slots:
            slots.setdefault(slot, []).append((path, weight))
    return {
        thread: [piece for slot in sorted(slots) for piece in _shares(slot, slot_ns, slots[slot])]
        for thread, slots in slots_by_thread.items()
    }


def _shares(slot: int, slot_ns: int, weights: list[tuple[list[int], int]]) -> Iterator[_Piece]:
    whole = sum(weight for _, weight in weights)
    seen = 0
    for path, weight in sorted(weights):  # equal ones come together
        start = slot + seen / whole if whole else slot
        seen += weight
        end = slot + seen / whole if whole else slot
        yield _Piece(start * slot_ns, end * slot_ns, path)


def _lengths(rows: Sequence[Row], unit: str, functions: Functions) -> dict[_Thread, list[_Piece]]:
    """The stacks of each thread one after the other, alike ones together."""
    paths: dict[_Thread, list[tuple[list[int], int]]] = {}
    for row in rows:
        weights = paths.setdefault(_thread(row.labels), [])
        weights.append((functions.path(row), row.weight * (1 if unit == "ns" else _SAMPLE_NS)))
    pieces_by_thread: dict[_Thread, list[_Piece]] = {}
    for thread, weights in paths.items():
        at, pieces = 0, pieces_by_thread.setdefault(thread, [])
        for path, weight in sorted(weights):
            pieces.append(_Piece(at, at + weight, path))
            at += weight
    return pieces_by_thread


def _nest(charts: Mapping[_Thread, Sequence[_Piece]], table: Sequence[Function]) -> Iterator[str]:
    """An event for each frame, from where it appears until it goes.

    There may be millions, and Perfetto reads nothing shorter (`stackFrames`:
    https://github.com/google/perfetto/issues/387), so the common parts of all events of a function
    or a thread are encoded once.
    """
    functions = [_function(entry) for entry in table]
    for (pid, tid), pieces in charts.items():
        thread = f'"pid":{pid},"tid":{tid}}}'
        for number, start_ns, end_ns in _boxes(pieces):
            ts, dur = _us(start_ns), _us(end_ns - start_ns)
            yield f'{functions[number]}"ts":{ts},"dur":{dur},{thread}'


def _function(function: Function) -> str:
    """The begin of its events."""
    args = {"args": {"module": function.module}} if function.module else {}
    return _encode({"name": function.name, "cat": function.kind, "ph": "X", **args})[:-1] + ","


def _us(ns: float) -> float:
    """Microseconds, without a fraction where there is none: that is shorter."""
    us = ns / _US
    return int(us) if us.is_integer() else us


def _boxes(pieces: Iterable[_Piece]) -> Iterator[tuple[int, float, float]]:
    """Yield the function, begin and end of each frame of a thread; a frame that goes on into the
    next slot is one.
    """
    open_: list[tuple[int, float]] = []
    until = 0.0
    for start, end, path in pieces:
        shared = 0
        if start == until:
            for (number, _), wanted in zip(open_, path, strict=False):
                if number != wanted:
                    break
                shared += 1
        for number, since in reversed(open_[shared:]):
            yield number, since, until
        del open_[shared:]
        open_ += [(number, start) for number in path[shared:]]
        until = end
    for number, since in reversed(open_):
        yield number, since, until
