"""The target of a suspended coroutine: the chain of coroutines, and the object that its last one
waits for.
"""

from __future__ import annotations

from enum import Enum

from purebpf.runtimes.cpython.frames import FrameReader
from purebpf.runtimes.cpython.objects import Objects
from purebpf.runtimes.cpython.task_layout import TaskLayout
from purebpf.runtimes.interpreted import InterpretedFrame
from purebpf.runtimes.memory import UnreadableError
from purebpf.tuples import NamedTuple

__all__ = ["CoroutineChain", "read_chain"]

_FRAMED = {"coroutine", "generator", "async_generator"}
_WRAPPERS = {
    "coroutine_wrapper",
    "async_generator_asend",
    "async_generator_athrow",
    "_asyncio.FutureIter",
    "FutureIter",
}
"""Objects that pass on what they await: it is their first field."""
_FIRST_FIELD = 16
_TAG = 7
_NEGATIVE = 128
_MOST = 10_000


class CoroutineChain(NamedTuple):
    """A coroutine and those that it awaits.

    Attributes:
        frames: innermost first.
        is_running: whether a thread executes it now: its frames are on that thread's stack.
        has_ended: whether the last of them has: there is nothing to wait for.
        awaits: the address of the object that the innermost one waits for; 0: none, or unknown.
        problem: why it ends early; "" if it does not.
    """

    frames: tuple[InterpretedFrame, ...]
    is_running: bool
    has_ended: bool
    awaits: int
    problem: str


def read_chain(
    version: tuple[int, int],
    layout: TaskLayout,
    objects: Objects,
    frames: FrameReader,
    coroutine: int,
) -> CoroutineChain:
    """The chain that begins with a coroutine.

    Whatever the memory holds, this ends.
    """
    chain: list[InterpretedFrame] = []
    seen: set[int] = set()
    at = coroutine
    try:
        while at and at not in seen and len(seen) < _MOST:
            seen.add(at)
            kind = objects.type_name(at)
            if kind in _WRAPPERS:
                at = objects.word(at + _FIRST_FIELD)
                continue
            if kind not in _FRAMED:  # what the event loop waits for
                return CoroutineChain(tuple(reversed(chain)), False, False, at, "")
            frame = _frame_of(version, layout, objects, at)
            state = _state(version, layout, objects, at, frame)
            if state is not _State.WAITS:
                is_running = state is _State.RUNS
                return CoroutineChain(tuple(reversed(chain)), is_running, not is_running, 0, "")
            chain.append(frames.read(frame))
            at = _awaited(version, layout, objects, frame)
    except UnreadableError:
        return CoroutineChain(tuple(reversed(chain)), False, False, 0, "a coroutine cannot be read")
    problem = "the coroutines are a cycle, or too many" if at else ""
    return CoroutineChain(tuple(reversed(chain)), False, False, 0, problem)


def _frame_of(version: tuple[int, int], layout: TaskLayout, objects: Objects, at: int) -> int:
    """Its frame; 0: it has ended."""
    frame = at + layout.coroutine_frame
    return frame if version >= (3, 11) else objects.word(frame)


class _State(Enum):
    WAITS, RUNS, ENDED = range(3)


def _state(
    version: tuple[int, int], layout: TaskLayout, objects: Objects, at: int, frame: int
) -> _State:
    """Return the state of a coroutine: enum _framestate of Include/internal/pycore_frame.h, or
    an older form.
    """
    if not frame:
        return _State.ENDED
    place = frame if version == (3, 10) else at
    state = objects.memory.number(place + layout.coroutine_state, 1)
    if version < (3, 10):
        return _State.RUNS if state else _State.WAITS
    executing = 4 if version >= (3, 15) else 0
    if state == executing:
        return _State.RUNS
    return _State.ENDED if executing < state < _NEGATIVE else _State.WAITS


def _awaited(version: tuple[int, int], layout: TaskLayout, objects: Objects, frame: int) -> int:
    """The object on top of a suspended frame's stack, if it is one that is awaited; 0: none."""
    top = _top(version, layout, objects, frame)
    # 3.15 keeps one word more above the iterator of some loops
    for at in (top - 8, top - 16):
        if at < frame and version >= (3, 11):
            return 0
        value = objects.word(at) & ~_TAG
        if not value:
            continue
        try:
            name = objects.type_name(value)
        except UnreadableError:
            continue
        if name in _FRAMED | _WRAPPERS or "Future" in name or "Task" in name:
            return value
        if version < (3, 15):
            return 0
    return 0


def _top(version: tuple[int, int], layout: TaskLayout, objects: Objects, frame: int) -> int:
    if version < (3, 10) or version >= (3, 14):
        return objects.word(frame + layout.frame_top)
    values = frame + layout.frame_values
    if version < (3, 11):
        values = objects.word(values)
    count = objects.memory.number(frame + layout.frame_top, 4)
    if count > 1 << 20:
        raise UnreadableError
    return values + 8 * count
