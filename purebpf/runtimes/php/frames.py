"""The frames of PHP functions, innermost first.

The engine keeps a chain of frames (`zend_execute_data`) in memory of its own; generated code (the
JIT) also keeps it. Each frame has its function, and the instruction that it executes or, of a
caller, the call. Memory may hold anything: each function must have the kind, and each name the
type, that it says, or else the frames end there with a reason.
"""

from __future__ import annotations

from collections.abc import Iterator

from purebpf.runtimes.interpreted import MAX_FRAMES, InterpretedFrame, InterpretedStack
from purebpf.runtimes.memory import Memory, UnreadableError
from purebpf.runtimes.php.layout import NONE, PhpLayout
from purebpf.tuples import NamedTuple

__all__ = ["BUILT_IN", "EVAL", "MAIN", "PhpFunctions", "PhpState", "read_php_frames"]

MAIN, EVAL = "{main}", "{eval}"
"""The names of code outside of functions: of a file, and of a text that was evaluated."""
BUILT_IN = "built-in"
"""In place of the file of a function that is not written in PHP."""
_INTERNAL, _USER, _EVAL_CODE = 1, 2, 4
_TYPE_MASK, _STRING, _OBJECT = 0x0F, 6, 8
_TOP = 1 << 17
"""A call for which C code entered the loop (ZEND_CALL_TOP)."""
_LONGEST_NAME, _LONGEST_PATH = 1024, 4096
_MOST_DELEGATED = 256
"""Generators that delegate to each other, for one frame."""
_UNREADABLE = "a frame of PHP cannot be read"


class PhpFunctions:
    """Reads functions, each once.

    Args:
        layout: of the engine.
        memory: the process's.
    """

    def __init__(self, layout: PhpLayout, memory: Memory) -> None:
        self._layout = layout
        self._memory = memory
        self._known: dict[int, tuple[int, str, str]] = {}

    def find(self, at: int) -> tuple[int, str, str]:
        """Return the kind of a function, its name, and its file.

        Raises:
            UnreadableError: it is none.
        """
        if at not in self._known:
            self._known[at] = self._read(at)
        return self._known[at]

    def line(self, at: int, opline: int) -> int:
        """Return the line of an instruction of a script's function; 0: it is none of it."""
        layout, memory = self._layout, self._memory
        first = memory.number(at + layout.function_opcodes)
        number = memory.number(at + layout.function_last, 4)
        inside = opline - first
        if not 0 <= inside < number * layout.opline_size or inside % layout.opline_size:
            return 0  # of an exception that is thrown, or of a call that just begins
        return memory.number(opline + layout.opline_line, 4)

    def _read(self, at: int) -> tuple[int, str, str]:
        layout, memory = self._layout, self._memory
        kind = memory.number(at, 1)
        if kind not in (_INTERNAL, _USER, _EVAL_CODE):
            raise UnreadableError
        name = memory.number(at + layout.function_name)
        scope = memory.number(at + layout.function_scope)
        if name:
            spelled = self._string(name, _LONGEST_NAME)
        else:
            spelled = EVAL if kind == _EVAL_CODE else MAIN
        if name and scope:  # code of a file that a method includes has a scope, too
            of = self._string(memory.number(scope + layout.class_name), _LONGEST_NAME)
            spelled = f"{of}::{spelled}"
        file = BUILT_IN
        if kind != _INTERNAL:
            file = self._string(memory.number(at + layout.function_file), _LONGEST_PATH)
        return kind, spelled, file

    def _string(self, at: int, most: int) -> str:
        """A string, as far as it goes or a NUL is in it: names of anonymous classes go on."""
        layout, memory = self._layout, self._memory
        if memory.number(at + 4, 4) & _TYPE_MASK != _STRING:
            raise UnreadableError
        length = memory.number(at + layout.string_length)
        if length > 1 << 31:
            raise UnreadableError
        raw = memory.bytes(at + layout.string_text, min(length, most))
        return raw.partition(b"\0")[0].decode("utf-8", "replace")


class PhpState(NamedTuple):
    """Addresses in a process.

    Attributes:
        executor: of `executor_globals`.
        generators: of the pointer to the class of generators; 0: not known.
    """

    executor: int
    generators: int = 0


def read_php_frames(
    layout: PhpLayout,
    memory: Memory,
    functions: PhpFunctions,
    state: PhpState,
    most: int = MAX_FRAMES,
) -> InterpretedStack:
    """Read the frames of the thread that runs scripts.

    Whatever the memory holds, this ends: after `most` frames, or where a frame is its own caller.

    Args:
        layout: of the engine.
        memory: the process's.
        functions: reads its functions.
        state: where its frames begin.
        most: frames.
    """
    try:
        at = memory.number(state.executor + layout.current)
        of_generators = memory.number(state.generators) if state.generators else 0
    except UnreadableError:
        return InterpretedStack((), "the state of PHP cannot be read")
    frames: list[InterpretedFrame] = []
    seen: set[int] = set()
    while at and len(frames) < most:
        if at in seen:
            return InterpretedStack(tuple(frames), "the frames are a cycle")
        seen.add(at)
        try:
            frame = _Frame(layout, memory, at)
            if frame.function:
                frames += _named(frame, functions)
            else:
                for each in _delegating(frame, of_generators):
                    waiting = _named(_Frame(layout, memory, each), functions)
                    frames += [one._replace(is_entry=False) for one in waiting]
        except UnreadableError:
            return InterpretedStack(tuple(frames), _UNREADABLE)
        at = frame.previous
    return InterpretedStack(tuple(frames), f"more than {most} frames" if at else "")


class _Frame:
    """The words of a frame."""

    def __init__(self, layout: PhpLayout, memory: Memory, at: int) -> None:
        raw = memory.bytes(at, layout.frame_previous + 8)
        self.layout, self.memory = layout, memory
        self.opline = _word(raw, layout.frame_opline)
        self.function = _word(raw, layout.frame_function)
        self.object = _word(raw, layout.frame_object)
        self.info = _word(raw, layout.frame_info) & 0xFFFFFFFF
        self.previous = _word(raw, layout.frame_previous)


def _named(frame: _Frame, functions: PhpFunctions) -> list[InterpretedFrame]:
    """The frame, named; none for one of C code that has no name, below the first of a fiber."""
    kind, name, file = functions.find(frame.function)
    if kind == _INTERNAL:
        found = [InterpretedFrame(name, file, 0, frame.function, is_entry=False)]
        return found if name != MAIN else []
    line = functions.line(frame.function, frame.opline)
    is_entry = bool(frame.info & _TOP) or not frame.previous
    return [InterpretedFrame(name, file, line, frame.function, is_entry)]


def _delegating(frame: _Frame, generators: int) -> Iterator[int]:
    """The frames of the generators that wait for another one by `yield from`, innermost first.

    The frame of the innermost generator returns to one without a function, which has the outermost.
    Others without a function stand for C code that calls.
    """
    layout, memory = frame.layout, frame.memory
    if frame.info & _TYPE_MASK != _OBJECT or layout.generator_parent == NONE or not generators:
        return
    at = frame.object
    if memory.number(at + layout.object_class) != generators:
        return
    found = []
    while parent := memory.number(at + layout.generator_parent):
        found.append(memory.number(at + layout.generator_frame))
        if len(found) > _MOST_DELEGATED:
            raise UnreadableError
        at = parent
    yield from reversed(found)


def _word(raw: bytes, at: int) -> int:
    return int.from_bytes(raw[at : at + 8], "little")
