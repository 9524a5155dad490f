"""The tables of V8's code: source positions, offsets of baseline code, safepoints, translations.

All are packed bytes (src/codegen/source-position-table.cc, src/baseline/bytecode-offset-iterator.h,
src/codegen/safepoint-table.h, src/deoptimizer/translation-array.h). Whatever the bytes, a reader
ends at the end of its table.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from purebpf.tuples import NamedTuple

__all__ = [
    "SAFEPOINT_HEADER",
    "Position",
    "Safepoint",
    "SafepointTable",
    "TranslatedFrame",
    "baseline_bytecode",
    "every_position",
    "find_position",
    "find_safepoint",
    "inlined_calls",
    "read_safepoint_header",
    "translated_frames",
]

_NEW_DELTAS = 1400
"""The version from which on a code offset has two bits for its kind, and no sign."""
_LONGEST = 10
_POSITION_BITS = 0x3FFFFFFF
_INLINED_AT, _INLINED_BITS = 31, 0xFFFF
_WIDE, _EXTRA_WIDE, _DEBUG_WIDE, _DEBUG_EXTRA_WIDE = range(4)
_SLOTS_FIRST = 1300
"""The version from which on a table of safepoints begins with the size of the frame."""
SAFEPOINT_HEADER = 16
"""Bytes of the longest header of such a table."""
_MOST_SAFEPOINTS = 1 << 16
_MOST_STEPS = 1 << 12


class Position(NamedTuple):
    """A place in a script.

    Attributes:
        offset: of the character; -1: not known.
        inlined: 0, or 1 + the index of the inlined call that it belongs to.
    """

    offset: int
    inlined: int


def _unsigned(data: bytes, at: int) -> tuple[int, int]:
    """A number of 7 bits a byte, and where the next one is."""
    value = shift = 0
    while at < len(data) and shift < 7 * _LONGEST:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:  # noqa: PLR2004
            break
    return value, at


def split_position(raw: int) -> Position:
    """A packed position."""
    inlined = raw >> _INLINED_AT & _INLINED_BITS
    return Position(-1 if raw & 1 else (raw >> 1 & _POSITION_BITS) - 1, inlined)


def find_position(table: bytes, offset: int, version: int) -> Position:
    """The position of a code offset: the last one at or before it.

    Args:
        table: source positions of bytecode, or of code.
        offset: in that.
        version: of V8, see `V8Layout`.
    """
    last = Position(-1, 0)
    for at, position in every_position(table, version):
        if at > offset:
            break
        last = position
    return last


def every_position(table: bytes, version: int) -> Iterator[tuple[int, Position]]:
    """The code offsets of a table, ascending, and their positions; see `find_position`."""
    at, code, raw = 0, -1, 0
    while at < len(table):
        delta, at = _unsigned(table, at)
        code += delta >> (2 if version >= _NEW_DELTAS else 1)
        if at >= len(table):
            break
        change, at = _unsigned(table, at)
        raw += (change >> 1) ^ -(change & 1)
        yield code, split_position(raw)


def baseline_bytecode(table: bytes, code: bytes, sizes: bytes, offset: int) -> int | None:
    """The bytecode of a place in baseline code.

    Args:
        table: the lengths of the prologue, and of the code of each bytecode.
        code: the bytecodes.
        sizes: the bytes of each bytecode: plain ones, wide ones, extra wide ones.
        offset: of the place.

    Returns:
        its offset in `code`; None: the table does not have the place.
    """
    count = len(sizes) // 3
    length, at = _unsigned(table, 0)
    if offset < length:
        return 0
    bytecode = 0
    while at < len(table) and bytecode < len(code):
        size, at = _unsigned(table, at)
        length += size
        if offset < length:
            return bytecode
        scale, opcode = 0, code[bytecode]
        if opcode <= _DEBUG_EXTRA_WIDE:
            scale = 1 + opcode % 2
            bytecode += 1
            if bytecode >= len(code):
                return None
            opcode = code[bytecode]
        if opcode >= count:
            return None
        bytecode += sizes[scale * count + opcode]
    return None


class Safepoint(NamedTuple):
    """A return address in optimised code.

    Attributes:
        pc: its offset.
        deopt: the index of its deoptimisation; -1: it has none.
    """

    pc: int
    deopt: int


class SafepointTable(NamedTuple):
    """The header of the safepoints of some code.

    Attributes:
        start: the bytes of the header.
        entries: how many safepoints there are.
        widths: the bytes of each one's pc, deoptimisation, trampoline, and of the rest.
    """

    start: int
    entries: int
    widths: tuple[int, int, int, int]

    @property
    def size(self) -> int:
        """The bytes of header and safepoints."""
        return self.start + self.entries * sum(self.widths)


def read_safepoint_header(header: bytes, version: int, *, is_maglev: bool) -> SafepointTable | None:
    """The header of a table of safepoints; None: it is none.

    Args:
        header: its first bytes, `SAFEPOINT_HEADER` of them.
        version: of V8, see `V8Layout`.
        is_maglev: one of Maglev's code, which has numbers of its own, and a byte an entry more.
    """
    if len(header) < SAFEPOINT_HEADER:
        return None
    words = struct.unpack_from("<3I", header)
    has_slots = version >= _SLOTS_FIRST
    count, configuration = words[has_slots : has_slots + 2]
    has_deopt = configuration & 1
    registers, pc, deopt = (configuration >> shift & 7 for shift in (1, 4, 7))
    widths = (pc, deopt * has_deopt, pc * has_deopt, registers + is_maglev)
    if not 0 < count <= _MOST_SAFEPOINTS or not pc:
        return None
    return SafepointTable(
        (12 if has_slots else 8) + (16 - 8 - 4 * has_slots) * is_maglev, count, widths
    )


def find_safepoint(table: SafepointTable, raw: bytes, pc: int) -> Safepoint | None:
    """The safepoint of a return address: its own, or the place to which deoptimisation led it.

    Args:
        table: the header.
        raw: as many bytes as `table.size` says.
        pc: the offset of the return address in the code.
    """
    at = table.start
    trampoline = None
    for _ in range(table.entries):
        fields = []
        for width in table.widths:
            fields.append(int.from_bytes(raw[at : at + width], "little"))
            at += width
        if fields[0] == pc:
            return Safepoint(pc, fields[1] - 1 if table.widths[1] else -1)
        if fields[2] == pc + 1 and fields[1]:
            trampoline = Safepoint(fields[0], fields[1] - 1)
    return trampoline


class TranslatedFrame(NamedTuple):
    """A frame that optimised code stands for.

    Attributes:
        has_bytecode: False for one of a function of V8's own, which has only a literal.
        bytecode: the offset of the bytecode.
        literal: the index of the function among the literals: of its SharedFunctionInfo; of a
            function of V8's own itself, -1 if that is no literal.
        array: the index of its bytecodes among the protected literals, from 13 on.
    """

    has_bytecode: bool
    bytecode: int
    literal: int
    array: int


class _Opcodes(NamedTuple):
    """Instructions of translations.

    Attributes:
        frames: the opcodes of frames of bytecode.
        built_in: those of frames of V8's own functions.
        operands: how many operands opcodes have, other than 1.
        begin: opcodes with which translations begin.
        literal: the one of a value that is a literal.
        repeat: the opcode that repeats those of another translation; higher ones are short forms.
    """

    frames: tuple[int, int]
    built_in: tuple[int, int]
    operands: dict[int, int]
    begin: tuple[int, int]
    literal: int
    repeat: int


_V10 = _Opcodes(
    (18, 18), (19, 20), {0: 2, 2: 0, 6: 3, 8: 3, 18: 5, 19: 3, 20: 3, 21: 4, 27: 2}, (3, 3), 22, 255
)
_V11 = _Opcodes(
    (23, 24),
    (25, 26),
    {1: 0, 6: 3, 8: 3, 14: 2, 23: 5, 24: 3, 25: 3, 26: 3, 27: 4, 28: 0, 34: 2},
    (2, 3),
    29,
    35,
)
_STUBS = {2: 3, 3: 3, 4: 2, 6: 3, 7: 4, 8: 3}
_V12 = _Opcodes((0, 1), (2, 3), {**_STUBS, 0: 5, 1: 3, 9: 2, 11: 0, 32: 0, 38: 2}, (12, 13), 33, 39)
_MORE_STUBS = {**_STUBS, 9: 3, 10: 2, 12: 0, 13: 0}
_V12_9 = _Opcodes((0, 1), (2, 3), {**_MORE_STUBS, 0: 5, 1: 3, 36: 0, 42: 2}, (14, 15), 37, 43)
_V13 = _Opcodes((0, 1), (2, 3), {**_MORE_STUBS, 0: 6, 1: 4, 19: 0, 37: 0, 43: 2}, (14, 15), 38, 44)
_V14 = _V13._replace(operands={**_V13.operands, 10: 3})
_BY_VERSION = {
    1001: _V10,
    1002: _V10,
    1103: _V11,
    1108: _V12,
    1204: _V12,
    1209: _V12_9,
    1306: _V13,
    1401: _V14,
    1406: _V14,
}
_SHARES = 1100
"""The version from which on translations repeat parts of others; before, opcodes were shifted."""


def translated_frames(data: bytes, at: int, version: int) -> list[TranslatedFrame] | None:
    """The frames at a place of optimised code, outermost first.

    Args:
        data: the translations of the code.
        at: where one begins.
        version: of V8, see `V8Layout`.

    Returns:
        the frames; None: this version's translations are not known, or this one is not whole.
    """
    opcodes = _BY_VERSION.get(version)
    if opcodes is None:
        return None
    steps = _translation(data, at, opcodes, shift=version < _SHARES)
    if steps is None:
        return None
    frames = []
    for number, (opcode, operands) in enumerate(steps):
        if opcode in opcodes.frames:
            frames.append(TranslatedFrame(True, *operands[:3]))
        elif opcode in opcodes.built_in:
            value, literal = steps[number + 1] if number + 1 < len(steps) else (-1, [])
            is_literal = value == opcodes.literal
            frames.append(TranslatedFrame(False, 0, literal[0] if is_literal else -1, 0))
    return frames


def _translation(
    data: bytes, at: int, opcodes: _Opcodes, *, shift: bool, is_basis: bool = False
) -> list[tuple[int, list[int]]] | None:
    """The instructions of a translation; it may repeat another one's, its basis."""
    if not 0 <= at < len(data) or data[at] >> shift not in opcodes.begin:
        return None
    distance, _ = _unsigned(data, at + 1)
    _, next_at = _operands(data, at + 1, 3)
    basis: list[tuple[int, list[int]]] = []
    if distance and not is_basis and not shift:
        basis = _translation(data, at - distance, opcodes, shift=shift, is_basis=True) or []
    steps: list[tuple[int, list[int]]] = []
    while next_at < len(data) and len(steps) < _MOST_STEPS:
        opcode = data[next_at] >> shift
        if opcode in opcodes.begin:
            break
        next_at += 1
        if opcode >= opcodes.repeat:
            count = opcode - opcodes.repeat - 1
            if opcode == opcodes.repeat:
                count, next_at = _unsigned(data, next_at)
            if len(basis) < len(steps) + count:
                return None
            steps += basis[len(steps) : len(steps) + count]
            continue
        operands, next_at = _operands(data, next_at, opcodes.operands.get(opcode, 1))
        steps.append((opcode, operands))
    return steps


def _operands(data: bytes, at: int, count: int) -> tuple[list[int], int]:
    operands = []
    for _ in range(count):
        value, at = _unsigned(data, at)
        operands.append(-(value >> 1) if value & 1 else value >> 1)
    return operands, at


def inlined_calls(table: bytes) -> Iterator[tuple[Position, int]]:
    """The inlined calls of optimised code: the place of the call, and the function's index."""
    for position, function in struct.iter_unpack("<qi4x", table[: len(table) // 16 * 16]):
        yield split_position(position), function
