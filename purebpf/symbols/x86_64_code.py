"""x86-64 instructions: how long each is, and where a jump goes.

Enough of the encoding to walk over the code of a function and to find where it ends. Opcodes that
are not valid in 64-bit mode, and prefixes that are younger than this (REX2), are `CodeError`: who
asks must not guess. Source: Intel SDM volume 2, chapters 2 (formats) and A (opcode maps); AMD APM
volume 3 for XOP.
"""

from __future__ import annotations

from purebpf.enums import IntEnum
from purebpf.tuples import NamedTuple

__all__ = ["CodeError", "Flow", "Instruction", "Operand", "decode"]


class CodeError(ValueError):
    """Bytes that are no instruction, or an unsupported one."""


class Flow(IntEnum):
    """The kind of jump of an instruction."""

    NEXT = 0
    RETURN = 1
    JUMP = 2
    CONDITIONAL = 3
    """A conditional jump, to `target` or on."""
    INDIRECT = 4
    """A jump to what the operand has."""
    OTHER = 5
    """Far jumps and returns, interrupt returns: no compiler makes one."""


class Operand(NamedTuple):
    """The ModRM operand of an instruction, and the register beside it.

    Attributes:
        register: the number in ModRM.reg, with REX.R.
        base: of a register operand its number; of memory the base register, -1 without one, and
            `INSTRUCTION_POINTER` where the address is relative to the next instruction.
        index_register: the index register; -1 without one.
        scale: the factor of the index.
        is_register: the operand is a register, not memory.
    """

    register: int
    base: int
    index_register: int
    scale: int
    is_register: bool


INSTRUCTION_POINTER = -2


class Instruction(NamedTuple):
    """One instruction.

    Attributes:
        size: in bytes.
        flow: where it leads.
        target: of a direct jump, relative to the start of the decoded bytes; else 0.
        condition: of a conditional jump, the low four bits of its opcode; -1: another condition
            (of rcx, or of a transaction).
        opcode: the last byte of the opcode, plus 0x100 for the two-byte map; -1 for longer ones.
        wide: REX.W.
        operand: None for an instruction without ModRM; the register of push, pop, and the moves of
            constants, as if it were one.
        prefixes: the legacy prefixes, in order.
    """

    size: int
    flow: Flow
    target: int
    condition: int
    opcode: int
    wide: bool
    operand: Operand | None
    prefixes: bytes


_PREFIXES = frozenset(b"\x26\x2e\x36\x3e\x64\x65\x66\x67\xf0\xf2\xf3")
_OPERAND_SIZE, _ADDRESS_SIZE = 0x66, 0x67
_LONGEST = 15
_TWO_BYTES = 0x100

_NONE, _MODRM, _BAD = 0, 1 << 8, 1 << 9
_Z, _V, _MOFFS = 1 << 10, 1 << 11, 1 << 12
"""Kinds of immediates beside those with a fixed number of bytes: 16 or 32 bits by the operand size;
the same, and 64 with REX.W; an address."""


def _table(text: str) -> list[int]:
    """Return a map of 256 opcodes, from lines `FIRST-LAST WORDS`; opcodes without a line are
    bad.
    """
    words = {"modrm": _MODRM, "z": _Z, "v": _V, "moffs": _MOFFS, "1": 1, "2": 2, "3": 3, "none": 0}
    table = [_BAD] * 256
    for line in text.split(","):
        span, *kinds = line.split()
        first, _, last = span.partition("-")
        value = sum(words[kind] for kind in kinds)
        for opcode in range(int(first, 16), int(last or first, 16) + 1):
            table[opcode] = value
    return table


_ARITHMETIC = ",".join(
    f"{row:x}-{row + 3:x} modrm,{row + 4:x} 1,{row + 5:x} z" for row in range(0, 0x40, 8)
)
_ONE_BYTE = _table(
    _ARITHMETIC + ",50-5f none,63 modrm,68 z,69 modrm z,6a 1,6b modrm 1,6c-6f none,70-7f 1,"
    "80 modrm 1,81 modrm z,83 modrm 1,84-8f modrm,90-99 none,9b-9f none,a0-a3 moffs,a4-a7 none,"
    "a8 1,a9 z,aa-af none,b0-b7 1,b8-bf v,c0-c1 modrm 1,c2 2,c3 none,c6 modrm 1,c7 modrm z,c8 3,"
    "c9 none,ca 2,cb-cc none,cd 1,cf none,d0-d3 modrm,d7 none,d8-df modrm,e0-e7 1,e8-e9 z,eb 1,"
    "ec-ef none,f1 none,f4-f5 none,f6-f7 modrm,f8-fd none,fe-ff modrm"
)
_TWO_BYTE = _table(
    "0-3 modrm,5-9 none,b none,d modrm,e none,f modrm 1,10-23 modrm,28-2f modrm,30-35 none,37 none,"
    "40-6f modrm,70-73 modrm 1,74-76 modrm,77 none,78-79 modrm,7c-7f modrm,80-8f z,90-9f modrm,"
    "a0-a2 none,a3 modrm,a4 modrm 1,a5 modrm,a8-aa none,ab modrm,ac modrm 1,ad-b9 modrm,"
    "ba modrm 1,bb-c1 modrm,c2 modrm 1,c3 modrm,c4-c6 modrm 1,c7 modrm,c8-cf none,d0-ff modrm"
)
_VECTOR_IMMEDIATES = frozenset((0x70, 0x71, 0x72, 0x73, 0xC2, 0xC4, 0xC5, 0xC6))
"""Of the two-byte map with VEX or EVEX."""
_RETURNS = {0xC2: Flow.RETURN, 0xC3: Flow.RETURN, 0xCA: Flow.OTHER, 0xCB: Flow.OTHER}
_INTERRUPT_RETURN = 0xCF
_GROUP_3 = (0xF6, 0xF7)
_GROUP_5 = 0xFF
_INDIRECT_JUMP, _FAR_JUMP = 4, 5
_MOVE_IMMEDIATE = 0xC7
_BEGIN_TRANSACTION = 7


def decode(code: bytes, at: int = 0) -> Instruction:
    """The instruction at an offset of some bytes of code.

    Raises:
        CodeError: it is none, or is cut, or is not known here.
    """
    try:
        return _Decoder(code, at).decode()
    except IndexError:
        raise CodeError(f"the instruction at {at:#x} is cut") from None


class _Decoder:
    """The state of decoding one instruction."""

    def __init__(self, code: bytes, at: int) -> None:
        self._code = code
        self._start = self._at = at
        self._prefixes = b""
        self._rex = 0
        self._operand: Operand | None = None

    def decode(self) -> Instruction:
        """Read the prefixes, then the parts that the opcode requires."""
        code, at = self._code, self._at
        while code[at] in _PREFIXES:
            at += 1
        self._prefixes = code[self._at : at]
        if code[at] & 0xF0 == 0x40:  # noqa: PLR2004
            self._rex = code[at]
            at += 1
        opcode = code[at]
        self._at = at + 1
        if opcode == 0x0F:  # noqa: PLR2004
            return self._long_opcode()
        if opcode in (0xC4, 0xC5, 0x62) or (opcode == 0x8F and code[at + 1] & 0x1F >= 8):  # noqa: PLR2004
            return self._vector(opcode)
        return self._by_table(opcode, _ONE_BYTE[opcode])

    def _error(self, what: str) -> CodeError:
        shown = self._code[self._start : self._start + _LONGEST].hex(" ")
        return CodeError(f"{what} at {self._start:#x}: {shown}")

    def _long_opcode(self) -> Instruction:
        opcode = self._code[self._at]
        self._at += 1
        if opcode not in (0x38, 0x3A):
            return self._by_table(opcode + _TWO_BYTES, _TWO_BYTE[opcode])
        self._at += 1
        self._read_modrm()
        self._at += opcode == 0x3A  # noqa: PLR2004
        return self._finish(-1)

    def _vector(self, opcode: int) -> Instruction:
        """VEX, EVEX and XOP: prefixes that name the opcode map."""
        code, at = self._code, self._at
        if self._rex:
            raise self._error("REX before a vector prefix")
        opcode_map = 1 if opcode == 0xC5 else code[at] & (7 if opcode == 0x62 else 0x1F)  # noqa: PLR2004
        self._at = at + {0xC5: 1, 0xC4: 2, 0x8F: 2, 0x62: 3}[opcode]
        last = code[self._at]
        self._at += 1
        maps = {0x62: (1, 2, 3, 5, 6), 0x8F: (8, 9, 10)}.get(opcode, (1, 2, 3))
        if opcode_map not in maps:
            raise self._error("an unknown opcode map")
        if (opcode_map, last) == (1, 0x77) and opcode != 0x62:  # noqa: PLR2004 - vzeroupper
            return self._finish(-1)
        self._read_modrm()
        if opcode_map in (3, 8) or (opcode_map == 1 and last in _VECTOR_IMMEDIATES):
            self._at += 1
        elif opcode_map == 10:  # noqa: PLR2004
            self._at += 4
        return self._finish(-1)

    def _by_table(self, opcode: int, kind: int) -> Instruction:
        if kind & _BAD:
            raise self._error("no instruction")
        if kind & _MODRM:
            self._read_modrm()
        elif 0x50 <= opcode <= 0x5F or 0xB0 <= opcode <= 0xBF:  # noqa: PLR2004
            register = opcode & 7 | (self._rex & 1) << 3
            self._operand = Operand(0, register, -1, 1, is_register=True)
        operand = self._operand
        size = kind & 0xFF
        narrow = _OPERAND_SIZE in self._prefixes and not self._rex & 8
        if operand is not None and opcode in _GROUP_3 and not operand.register & 6:
            size = 1 if opcode == _GROUP_3[0] else 0
            kind |= 0 if size else _Z
        if kind & (_Z | _V):
            size = 2 if narrow else 4
        if kind & _V and self._rex & 8:
            size = 8
        if kind & _MOFFS:
            size = 4 if _ADDRESS_SIZE in self._prefixes else 8
        self._at += size
        return self._with_flow(opcode, size, narrow=narrow)

    def _with_flow(self, opcode: int, size: int, *, narrow: bool) -> Instruction:
        """Return the instruction of a valid opcode; `size` is the size of its immediate."""
        if opcode in _RETURNS:
            return self._finish(opcode, _RETURNS[opcode])
        if opcode == _INTERRUPT_RETURN:
            return self._finish(opcode, Flow.OTHER)
        if opcode in (0xE9, 0xEB):
            return self._jump(opcode, Flow.JUMP, -1, size, narrow=narrow)
        if 0x70 <= opcode <= 0x7F or 0x180 <= opcode <= 0x18F:  # noqa: PLR2004
            return self._jump(opcode, Flow.CONDITIONAL, opcode & 15, size, narrow=narrow)
        if 0xE0 <= opcode <= 0xE3:  # noqa: PLR2004
            return self._jump(opcode, Flow.CONDITIONAL, -1, size, narrow=narrow)
        operand = self._operand
        if operand is not None and opcode == _GROUP_5:
            if operand.register & 7 == _INDIRECT_JUMP:
                return self._finish(opcode, Flow.INDIRECT)
            if operand.register & 7 == _FAR_JUMP:
                return self._finish(opcode, Flow.OTHER)
        if (
            operand is not None
            and opcode == _MOVE_IMMEDIATE
            and operand.is_register
            and operand.register & 7 == _BEGIN_TRANSACTION
        ):
            return self._jump(opcode, Flow.CONDITIONAL, -1, size, narrow=narrow)
        return self._finish(opcode)

    def _jump(
        self, opcode: int, flow: Flow, condition: int, size: int, *, narrow: bool
    ) -> Instruction:
        if narrow:  # processors disagree about its size
            raise self._error("a jump with an operand size prefix")
        distance = int.from_bytes(self._code[self._at - size : self._at], "little", signed=True)
        return self._finish(opcode, flow, self._at + distance, condition)

    def _read_modrm(self) -> None:
        code = self._code
        modrm = code[self._at]
        self._at += 1
        mode, low, rex = modrm >> 6, modrm & 7, self._rex
        register = modrm >> 3 & 7 | (rex & 4) << 1
        if mode == 3:  # noqa: PLR2004
            self._operand = Operand(register, low | (rex & 1) << 3, -1, 1, is_register=True)
            return
        base, index, scale = low | (rex & 1) << 3, -1, 1
        displacement = (0, 1, 4)[mode]
        if low == 4:  # noqa: PLR2004 - a SIB byte
            sib = code[self._at]
            self._at += 1
            index = sib >> 3 & 7 | (rex & 2) << 2
            index, scale = (-1 if index == 4 else index), 1 << (sib >> 6)  # noqa: PLR2004
            base = sib & 7 | (rex & 1) << 3
            if sib & 7 == 5 and mode == 0:  # noqa: PLR2004
                base, displacement = -1, 4
        elif low == 5 and mode == 0:  # noqa: PLR2004
            base, displacement = INSTRUCTION_POINTER, 4
        self._at += displacement
        self._operand = Operand(register, base, index, scale, is_register=False)

    def _finish(
        self, opcode: int, flow: Flow = Flow.NEXT, target: int = 0, condition: int = -1
    ) -> Instruction:
        size = self._at - self._start
        if size > _LONGEST:
            raise self._error("an instruction of more than 15 bytes")
        if self._at > len(self._code):
            raise IndexError
        wide = bool(self._rex & 8)
        return Instruction(
            size, flow, target, condition, opcode, wide, self._operand, self._prefixes
        )
