"""The frames of Ruby methods and blocks, innermost first.

Each fiber has memory for its frames, which grow down from its end; the execution context of a
thread has those of the fiber that runs. Code that is compiled (by YJIT or MJIT) keeps these frames,
too. A frame has the code that it executes (`rb_iseq_t`) and the next instruction, or, of a
method written in C, the method's entry. Memory may hold anything: each object must have the type
that it says, or else the frames end there with a reason.
"""

from __future__ import annotations

from purebpf.runtimes.interpreted import MAX_FRAMES, InterpretedFrame, InterpretedStack
from purebpf.runtimes.memory import Memory, UnreadableError
from purebpf.runtimes.ruby.layout import RubyLayout
from purebpf.runtimes.ruby.objects import RubySymbols, imemo_kind, read_ruby_string, ruby_path
from purebpf.tuples import NamedTuple

__all__ = ["BUILT_IN", "FINISH", "RubyFunctions", "first_instruction", "read_ruby_frames"]

BUILT_IN = "built-in"
"""In place of the file of a method that is not written in Ruby."""
UNKNOWN_METHOD = "{method of C}"
"""A method written in C, where the table of names was not found."""
FINISH = 0x20
"""A frame for which C code entered the loop (VM_FRAME_FLAG_FINISH)."""
_CODE, _METHOD, _SHARED = 7, 6, 2
"""Kinds of the interpreter's own objects: code, a method's entry, and one that has that."""
_SHARED_ENTRY = 8  # in the last one
_LONGEST_NAME, _LONGEST_PATH = 1024, 4096
_MOST_STACK = 1 << 27
"""Words of the frames of a fiber."""
_IMMEDIATE, _BLOCK = 54, 512
"""Instructions of the index of lines that have 7 bits each, and of one of the blocks behind."""
_BLOCK_AT, _BLOCK_SIZE = 48, 80
_MOST_CODE = 1 << 24
_UNREADABLE = "a frame of Ruby cannot be read"


class _Code(NamedTuple):
    """The parts of a piece of code: where its instructions are, and its lines."""

    name: str
    file: str
    start: int
    size: int
    lines: int
    lines_size: int
    line_index: int


class RubyFunctions:
    """Reads code and methods, each once.

    Args:
        layout: of the interpreter.
        memory: the process's.
        symbols: the address of the names of methods; 0: not known.
    """

    def __init__(self, layout: RubyLayout, memory: Memory, symbols: int) -> None:
        self._layout = layout
        self._memory = memory
        self._symbols = RubySymbols(layout, memory, symbols)
        self._codes: dict[int, _Code | None] = {}
        self._methods: dict[int, str] = {}

    def code(self, at: int) -> _Code | None:
        """Return a piece of code; None: it is a function of C in its place.

        Raises:
            UnreadableError: it is neither.
        """
        if at not in self._codes:
            is_code = imemo_kind(self._memory, at) == _CODE
            self._codes[at] = self._read(at) if is_code else None
        return self._codes[at]

    def method(self, at: int) -> tuple[int, str]:
        """Return the definition of a method written in C, and its name.

        Args:
            at: its entry, or what has that.

        Raises:
            UnreadableError: it is neither.
        """
        layout, memory = self._layout, self._memory
        if imemo_kind(memory, at) == _SHARED:
            at = memory.number(at + _SHARED_ENTRY)
        if imemo_kind(memory, at) != _METHOD:
            raise UnreadableError
        definition = memory.number(at + layout.entry_definition)
        if definition not in self._methods:
            number = memory.number(definition + layout.definition_id)
            self._methods[definition] = self._symbols.name(number, _LONGEST_NAME) or UNKNOWN_METHOD
        return definition, self._methods[definition]

    def line(self, code: _Code, pc: int) -> int:
        """Return the line of the instruction before `pc`; 0: there is none."""
        layout, memory = self._layout, self._memory
        words, odd = divmod(pc - code.start, 8)
        if odd or not 0 <= words <= code.size or not code.lines_size:
            return 0
        place = 1
        if code.lines_size > 1:
            place = self._rank(code.line_index, max(0, words - 1))
        if not 0 < place <= code.lines_size:
            return 0
        return memory.number(code.lines + (place - 1) * layout.line_size, 4)

    def _rank(self, index: int, position: int) -> int:
        """Return how many entries begin at an instruction or before it."""
        memory = self._memory
        if position < _IMMEDIATE:
            group, inside = divmod(position, 9)
            return memory.number(index + 8 * group) >> 7 * inside & 0x7F
        block, bit = divmod(position - _IMMEDIATE, _BLOCK)
        at = index + _BLOCK_AT + block * _BLOCK_SIZE
        word = bit // 64
        before = memory.number(at + 8) >> 9 * (word - 1) & 0x1FF if word else 0
        bits = memory.number(at + 16 + 8 * word) & (2 << bit % 64) - 1
        return memory.number(at, 4) + before + bits.bit_count()

    def _read(self, at: int) -> _Code:
        layout, memory = self._layout, self._memory
        body = memory.number(at + layout.iseq_body)
        label = memory.number(body + layout.body_label)
        path = ruby_path(layout, memory, memory.number(body + layout.body_path))
        return _Code(
            read_ruby_string(layout, memory, label, _LONGEST_NAME),
            read_ruby_string(layout, memory, path, _LONGEST_PATH),
            memory.number(body + layout.body_code),
            min(memory.number(body + layout.body_size, 4), _MOST_CODE),
            memory.number(body + layout.body_lines),
            memory.number(body + layout.body_lines_size, 4),
            memory.number(body + layout.body_line_index),
        )


class _Stack(NamedTuple):
    """The frames of a context: the innermost one, and where there are no more."""

    frame: int
    end: int


def read_ruby_frames(
    layout: RubyLayout,
    memory: Memory,
    functions: RubyFunctions,
    context: int,
    most: int = MAX_FRAMES,
) -> InterpretedStack | None:
    """Read the frames of a thread; None: the address leads to no execution context of it.

    Whatever the memory holds, this ends: after `most` frames that have a name, or at the end of
    the frames' memory.

    Args:
        layout: of the interpreter.
        memory: the process's.
        functions: reads its code and methods.
        context: the address of the thread's execution context.
        most: frames.
    """
    try:
        stack = _stack(layout, memory, context)
    except UnreadableError:
        return None
    if stack is None:
        return None
    frames: list[InterpretedFrame] = []
    at = stack.frame
    looks = 2 * most
    while at < stack.end:
        if len(frames) >= most or not looks:
            return InterpretedStack(tuple(frames), f"more than {most} frames")
        looks -= 1
        try:
            frame = _named(layout, memory, functions, at)
        except UnreadableError:
            return InterpretedStack(tuple(frames), _UNREADABLE)
        if frame is not None:
            frames.append(frame)
        at += layout.frame_size
    if frames:
        frames[-1] = frames[-1]._replace(is_entry=True)
    return InterpretedStack(tuple(frames), "")


def first_instruction(layout: RubyLayout, memory: Memory, context: int) -> int:
    """Return the address of the machine code of an instruction that a thread executes.

    Raises:
        UnreadableError: it executes none, or the address leads to no execution context of it.
    """
    stack = _stack(layout, memory, context)
    if stack is not None:
        for at in range(stack.frame, stack.end, layout.frame_size)[:MAX_FRAMES]:
            code = memory.number(at + layout.frame_iseq)
            if code and memory.number(at + layout.frame_pc) and imemo_kind(memory, code) == _CODE:
                body = memory.number(code + layout.iseq_body)
                return memory.number(memory.number(body + layout.body_code))
    raise UnreadableError


def _stack(layout: RubyLayout, memory: Memory, context: int) -> _Stack | None:
    """Return the frames of a context; None: its thread does not run it, or it has none.

    The last frame is not a function's.

    Raises:
        UnreadableError: memory that is not there.
    """
    thread = memory.number(context + layout.context_thread)
    if memory.number(thread + layout.thread_context) != context:
        return None
    start = memory.number(context + layout.context_stack)
    size = memory.number(context + layout.context_stack_size)
    frame = memory.number(context + layout.context_frame)
    end = start + 8 * size - layout.frame_size
    if not start or not 0 < size <= _MOST_STACK or not start <= frame:
        return None
    if frame > end or (end - frame) % layout.frame_size:
        return None
    return _Stack(frame, end)


def _named(
    layout: RubyLayout, memory: Memory, functions: RubyFunctions, at: int
) -> InterpretedFrame | None:
    """The frame, named; None: it is no function's.

    Raises:
        UnreadableError: it is no frame.
    """
    raw = memory.bytes(at, layout.frame_size)
    pc, iseq, env = (
        int.from_bytes(raw[field : field + 8], "little")
        for field in (layout.frame_pc, layout.frame_iseq, layout.frame_env)
    )
    if not iseq:
        definition, name = functions.method(memory.number(env - 16))
        return InterpretedFrame(name, BUILT_IN, 0, definition, is_entry=False)
    if not pc:
        return None
    code = functions.code(iseq)
    if code is None:
        return None
    is_entry = bool(memory.number(env) & FINISH)
    return InterpretedFrame(code.name, code.file, functions.line(code, pc), iseq, is_entry)
