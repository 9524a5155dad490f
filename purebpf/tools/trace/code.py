"""The programs that copy the memory behind arguments: one for each signature, straight on.

They run at both ends of a call, between the programs of bpf_src/trace.bpf.c, which jump here and,
at the end, are jumped to. The record of the call is in the state of its task:

    R6  the state        R7  bytes of pieces that there are        R9  the context

R8 keeps a size over a helper. The loops of an array are unrolled: they are short.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from purebpf.asm import R0, R1, R2, R3, R4, R6, R7, R8, R9, R10, Label, MapName, Program, Stack
from purebpf.tools.trace.capture import (
    AT,
    MESSAGE_PARTS,
    MESSAGE_SIZE,
    MESSAGES,
    RESULT,
    ROOM,
    Block,
    Bytes,
    Copy,
    Environment,
    Framed,
    Message,
    Messages,
    Nodes,
    Pointed,
    Strings,
    TraceText,
    Unpacked,
    Vector,
    piece_id,
)
from purebpf.tuples import NamedTuple

__all__ = ["SLOTS", "Again", "Layout", "program"]

SLOTS = 512
"""Numbers of each ABI that have slots in the kernel half."""

_HEAD = 8  # struct piece
_MSGHDR = 56
_ARGUMENTS = 6
_ENVIRONMENT_BLOCK = 256

# Of the stack, from its end.
_KEY = -8
_NUMBER = -16
_ENTRY = -32  # a struct iovec
_HEADER = -96  # a struct msghdr

_UNASKED = 2  # enum progress

Emit = Callable[[], None]


class Again(NamedTuple):
    """Copies at the end of a call, for the ones that failed at its start.

    `after_success`: also if the call succeeded; execve(2) has replaced the memory then.
    """

    copies: tuple[Copy, ...]
    after_success: bool = True


class Layout(NamedTuple):
    """The byte offsets of the data that these programs use in `struct task_state`."""

    arguments: int
    result: int
    missed: int
    nr: int
    open: int
    used: int
    pieces: int
    task_storage: bool
    stack_pointer: int | None = None

    @classmethod
    def of(
        cls, offsets: Mapping[str, int], *, task_storage: bool, stack_pointer: int | None
    ) -> Layout:
        """From the offsets of the members of `struct call`, and its size as `pieces`.

        Args:
            offsets: of the members.
            task_storage: the kernel has task storage.
            stack_pointer: where struct pt_regs has it; None: frames of signals are not read.
        """
        names = ("arguments", "result", "missed", "nr", "open", "used", "pieces")
        members = {name: offsets[name] for name in names}
        return cls(**members, task_storage=task_storage, stack_pointer=stack_pointer)


class _Source(NamedTuple):
    """A number: 8 (or 4) bytes at an offset from a register."""

    base: int
    offset: int
    size: int = 8


def program(
    name: str, copies: tuple[Copy, ...], again: Again, layout: Layout, *, end: bool
) -> Program:
    """The program of one end of a call.

    Args:
        name: of the program.
        copies: the memory to copy.
        again: at the end: the memory to copy if the copy at the start failed.
        layout: of the kernel half.
        end: it is for the end.
    """
    return _Writer(name, layout, end=end).write(copies, again)


class _Writer:
    def __init__(self, name: str, layout: Layout, *, end: bool) -> None:
        self._layout = layout
        self._end = end
        self._code = Program(name, f"tp_btf/sys_{'exit' if end else 'enter'}")
        self._missing: Label | None = None
        self._phase = end

    def write(self, copies: tuple[Copy, ...], again: Again) -> Program:
        code = self._code
        out = code.label()
        self._begin(out)
        if again.copies:
            self._copy_again(again)
        for copy in copies:
            self._copy(copy)
        code.store(R6, self._layout.used, R7, 4)
        if self._end:
            code.call_helper("tail_call", R9, MapName("then"), 0)
        code.place(out)
        code.move(R0, 0)
        code.exit()
        return code

    def _copy_again(self, again: Again) -> None:
        code = self._code
        behind = code.label()
        code.load(R1, R6, self._layout.missed, 2)
        code.jump("==", R1, 0, behind)
        if not again.after_success:
            code.load(R1, R6, self._layout.result, 8)
            code.jump("s>=", R1, 0, behind)
        self._phase = False
        for copy in again.copies:
            skip = code.label()
            code.load(R1, R6, self._layout.missed, 2)
            code.alu("&=", R1, 1 << copy.argument)
            code.jump("==", R1, 0, skip)
            self._copy(copy)
            code.place(skip)
        self._phase = True
        code.place(behind)

    def _begin(self, out: Label) -> None:
        """Find the state."""
        code = self._code
        code.comment("the state of the task")
        code.copy(R9, R1)
        if self._layout.task_storage:
            code.call_helper("get_current_task_btf")
            code.copy(R2, R0)
            code.map(R1, "tasks")
            code.move(R3, 0)
            code.move(R4, 0)
            code.call_helper("task_storage_get")
        else:
            code.call_helper("get_current_task")
            code.store(R10, _KEY, R0, 8)
            code.call_helper("map_lookup_elem", MapName("tasks_by_address"), Stack(_KEY))
        code.jump("==", R0, 0, out)
        code.copy(R6, R0)
        code.load(R7, R6, self._layout.used, 4)
        code.jump(">", R7, ROOM, out)

    def _copy(self, copy: Copy) -> None:
        code = self._code
        behind, missing = code.label(), code.label()
        self._missing = missing
        code.comment(str(copy))
        if isinstance(copy, Framed):
            self._missing = behind  # at the end of the call it is another frame
            self._framed(copy)
            code.place(behind)
            return
        argument = _Source(R6, self._layout.arguments + 8 * copy.argument)
        if isinstance(copy, Unpacked):
            self._missing = behind
            self._unpack(copy, argument)
            code.place(behind)
            return
        code.load(R1, *argument)
        code.jump("==", R1, 0, behind)
        identity = piece_id(copy.argument, end=self._phase)
        if isinstance(copy, Pointed):
            self._missing = behind  # it need not be an address: that is not tried again
            self._pointed(copy, argument, identity + copy.part)
            code.place(behind)
            return
        self._kind(copy, argument, identity)
        code.go(behind)
        code.place(missing)
        if not self._end:
            code.load(R1, R6, self._layout.missed, 2)
            code.alu("|=", R1, 1 << copy.argument)
            code.store(R6, self._layout.missed, R1, 2)
        code.place(behind)

    def _pointed(self, copy: Pointed, argument: _Source, identity: int) -> None:
        code = self._code
        assert self._missing is not None
        if copy.only is not None:
            code.load(R1, R6, self._layout.arguments + 8, 4)
            code.jump("!=", R1, copy.only, self._missing)
        self._fetch(argument, copy.at, _NUMBER, copy.word)
        source = _Source(R10, _NUMBER, copy.word)
        if copy.length_at is not None:
            self._fetch(argument, copy.length_at, _ENTRY, 4)
            self._bytes(source, _Source(R10, _ENTRY, 4), copy.room, identity)
        elif copy.text:
            self._text(source, copy.room, identity)
        else:
            self._block(source, copy.room, identity)

    def _unpack(self, copy: Unpacked, argument: _Source) -> None:
        """Replace the arguments; with `calls`, go on as one of those or, of others, not at all."""
        code, layout = self._code, self._layout
        assert self._missing is not None
        self._fetch(argument, 0, _HEADER, 4 * _ARGUMENTS)
        if copy.calls:
            code.load(R8, R6, layout.arguments, 4)
            code.jump(">", R8, SLOTS - 1 - copy.first, self._missing)
            code.jump("==", R8, 0, self._missing)
        for index in range(_ARGUMENTS):
            code.load(R1, R10, _HEADER + 4 * index, 4)
            code.store(R6, layout.arguments + 8 * index, R1, 8)
        if not copy.calls:
            return
        is_wanted = code.label()
        for number in copy.calls:
            code.jump("==", R8, number, is_wanted)
        code.store_constant(R6, layout.open, _UNASKED, 1)
        code.move(R0, 0)
        code.exit()
        code.place(is_wanted)
        code.alu("+=", R8, copy.first)
        code.store(R6, layout.nr, R8, 4)
        code.alu("+=", R8, SLOTS)
        code.call_helper("tail_call", R9, MapName("at_start"), R8)

    def _framed(self, copy: Framed) -> None:
        """The first argument of the tracepoint is the task's struct pt_regs."""
        code, register = self._code, self._layout.stack_pointer
        if register is None:
            return
        code.load(R1, R9, 0, 8)
        code.load(R1, R1, register, 8)
        code.store(R10, _NUMBER, R1, 8)
        identity = piece_id(copy.argument, copy.part, end=self._phase)
        self._block(_Source(R10, _NUMBER), copy.size, identity, copy.at)

    def _nodes(self, copy: Nodes, argument: _Source, identity: int) -> None:
        """The kernel reads one bit fewer than the caller gives it: get_nodes() of
        mm/mempolicy.c.
        """
        code = self._code
        code.load(R1, *self._length(copy.length))
        code.alu("+=", R1, 62)
        code.alu(">>=", R1, 6)
        code.store(R10, _NUMBER, R1, 8)
        self._bytes(argument, _Source(R10, _NUMBER), copy.room, identity, 8)

    def _kind(self, copy: Copy, argument: _Source, identity: int) -> None:
        if isinstance(copy, TraceText):
            self._text(argument, copy.room, identity)
        elif isinstance(copy, Block):
            self._block(argument, copy.size, identity + copy.part)
        elif isinstance(copy, Bytes):
            self._bytes(argument, self._length(copy.length), copy.room, identity, copy.unit)
        elif isinstance(copy, Nodes):
            self._nodes(copy, argument, identity)
        elif isinstance(copy, Strings):
            self._strings(argument, copy, identity)
        elif isinstance(copy, Environment):
            for block in range(copy.blocks):
                at = block * _ENVIRONMENT_BLOCK
                self._block(argument, _ENVIRONMENT_BLOCK, identity + block, at)
        elif isinstance(copy, Vector):
            length = self._length(copy.length)
            self._vector(argument, length, copy, identity)
        elif isinstance(copy, Messages):
            self._messages(argument, copy, identity)
        elif isinstance(copy, Message):
            self._message(argument, copy, identity)

    def _length(self, length: int) -> _Source:
        """Return the place of a length; one in memory is fetched to the stack."""
        if length == RESULT:
            return _Source(R6, self._layout.result)
        source = _Source(R6, self._layout.arguments + 8 * (length % AT))
        if length < AT:
            return source
        self._fetch(source, 0, _NUMBER, 4)
        return _Source(R10, _NUMBER, 4)

    def _fetch(self, pointer: _Source, at: int, slot: int, size: int) -> None:
        """Copy `size` bytes of user memory to the stack, or go where that failed."""
        code = self._code
        assert self._missing is not None
        code.load(R3, *pointer)
        if at:
            code.alu("+=", R3, at)
        code.call_helper("probe_read_user", Stack(slot), size, R3)
        code.jump("!=", R0, 0, self._missing)

    def _target(self, room: int, full: Label) -> None:
        """R1 = where the next piece's bytes go; to `full` where `room` bytes do not fit.

        A piece ends at a multiple of 8: there may be 7 bytes more.
        """
        code = self._code
        code.jump(">", R7, ROOM - _HEAD - 7 - room, full)
        code.copy(R1, R6)
        code.alu_register("+=", R1, R7)
        code.alu("+=", R1, self._layout.pieces + _HEAD)

    def _finish(self, size: int, room: int, identity: int, full: Label) -> None:
        """Write the head of a piece of `size` (a register) bytes, and go past it."""
        code = self._code
        code.jump(">", R7, ROOM - _HEAD - 7 - room, full)
        code.copy(R1, R6)
        code.alu_register("+=", R1, R7)
        code.alu("+=", R1, self._layout.pieces)
        code.store_constant(R1, 0, identity, 4)
        code.store(R1, 4, size, 4)
        code.alu("+=", size, _HEAD + 7)
        code.alu("&=", size, 0x3FF8)
        code.alu_register("+=", R7, size)

    def _text(self, pointer: _Source, room: int, identity: int) -> None:
        code, full = self._code, self._code.label()
        room = -(-room // 8) * 8
        self._target(room, full)
        code.move(R2, room)
        code.load(R3, *pointer)
        code.call_helper("probe_read_user_str")
        assert self._missing is not None
        code.jump("s<", R0, 0, self._missing)
        # Of an empty string Linux 6.1 and 6.12 say 0, 6.18 says 1, its NUL; R8 = 1 without a jump,
        # which would double the verifier's paths
        code.copy(R8, R0)
        code.copy(R1, R0)
        code.alu("-=", R1, 1)
        code.alu(">>=", R1, 63)
        code.alu_register("+=", R8, R1)
        code.jump(">", R8, room, full)
        self._finish(R8, room, identity, full)
        code.place(full)

    def _block(self, pointer: _Source, size: int, identity: int, at: int = 0) -> None:
        """Emit a piece of a constant size, `at` bytes behind the pointer's target."""
        code, full = self._code, self._code.label()
        self._target(size, full)
        code.move(R2, size)
        code.load(R3, *pointer)
        if at:
            code.alu("+=", R3, at)
        code.call_helper("probe_read_user")
        assert self._missing is not None
        code.jump("!=", R0, 0, self._missing)
        code.move(R8, size)
        self._finish(R8, size, identity, full)
        code.place(full)

    def _bytes(
        self, pointer: _Source, length: _Source, room: int, identity: int, unit: int = 1
    ) -> None:
        """A piece of `length` times `unit` bytes, or as many as there is room for."""
        code = self._code
        full, fits, empty = code.label(), code.label(), code.label()
        most = room // unit * unit
        code.load(R8, *length)
        code.jump("s<", R8, 0, full)
        code.jump("<=", R8, room // unit, fits)
        code.move(R8, room // unit)
        code.place(fits)
        if unit > 1:
            code.alu("*=", R8, unit)
        code.jump("==", R8, 0, empty)
        code.jump(">", R8, most, full)
        self._target(most, full)
        code.copy(R2, R8)
        code.load(R3, *pointer)
        code.call_helper("probe_read_user")
        assert self._missing is not None
        code.jump("!=", R0, 0, self._missing)
        code.place(empty)
        self._finish(R8, most, identity, full)
        code.place(full)

    def _strings(self, argument: _Source, copy: Strings, identity: int) -> None:
        code, over = self._code, self._code.label()
        for index in range(copy.most):
            self._fetch(argument, index * copy.word, _NUMBER, copy.word)
            code.load(R1, R10, _NUMBER, copy.word)
            code.jump("==", R1, 0, over)
            self._text(_Source(R10, _NUMBER, copy.word), copy.room, identity + index)
        code.place(over)

    def _vector(
        self, array: _Source, length: _Source, copy: Vector | Message | Messages, identity: int
    ) -> None:
        """The array is part 0, its buffers are those behind."""
        code, over = self._code, self._code.label()
        word, entry = copy.word, 2 * copy.word
        self._bytes(array, length, copy.entries * entry, identity, entry)
        for index in range(copy.entries):
            self._forget_used(over)
            code.load(R1, *length)
            code.jump("<=", R1, index, over)
            self._fetch(array, index * entry, _ENTRY, entry)
            base, size = _Source(R10, _ENTRY, word), _Source(R10, _ENTRY + word, word)
            self._bytes(base, size, copy.room, identity + 1 + index)
        code.place(over)

    def _forget_used(self, full: Label) -> None:
        """R7 out and in, so that the verifier does not go on for each range that it may have."""
        code = self._code
        code.store(R6, self._layout.used, R7, 4)
        code.load(R7, R6, self._layout.used, 4)
        code.jump(">", R7, ROOM, full)

    def _messages(self, argument: _Source, copy: Messages, identity: int) -> None:
        code, over = self._code, self._code.label()
        length = self._length(copy.length)
        for index in range(MESSAGES):
            self._forget_used(over)
            code.load(R1, *length)
            code.jump("s<", R1, index + 1, over)
            part = identity + index * MESSAGE_PARTS
            size = MESSAGE_SIZE * copy.word // 8
            self._message(argument, copy, part, index * size, size)
        code.place(over)

    def _message(
        self,
        argument: _Source,
        copy: Message | Messages,
        identity: int,
        at: int = 0,
        size: int = 0,
    ) -> None:
        """The header is part 0, the name 1, control data 2, the array 3, its buffers those behind.

        Source: struct user_msghdr of include/linux/socket.h.
        """
        word = copy.word
        header = _MSGHDR * word // 8
        self._block(argument, size or header, identity, at)
        self._fetch(argument, at, _HEADER, header)
        parts = ((0, word, 4, 128, 1), (4 * word, 5 * word, word, 256, 2))
        for pointer, length, width, room, part in parts:
            behind = self._code.label()
            self._code.load(R1, R10, _HEADER + pointer, word)
            self._code.jump("==", R1, 0, behind)
            source = _Source(R10, _HEADER + length, width)
            self._bytes(_Source(R10, _HEADER + pointer, word), source, room, identity + part)
            self._code.place(behind)
        array = _Source(R10, _HEADER + 2 * word, word)
        self._vector(array, _Source(R10, _HEADER + 3 * word, word), copy, identity + 3)
