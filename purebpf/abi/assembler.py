"""Writing BPF instructions: one method for each kind, jumps to labels, comments for the reader.

    code = Assembler()
    out = code.label()
    code.move(R0, 0)
    code.jump("==", R1, 17, out)
    code.move(R0, 1)
    code.place(out)
    code.exit()
    instructions = code.finish()

Constants of 64 bits that do not fit into an instruction are loaded into R2, which the caller leaves
free. The encoding is in RFC 9669 and Documentation/bpf/standardization/instruction-set.rst.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import NewType

from purebpf.abi.instruction import (
    CALL,
    EXIT,
    LD_IMM64,
    PSEUDO_CALL,
    PSEUDO_FUNC,
    PSEUDO_KFUNC_CALL,
    PSEUDO_MAP_FD,
    PSEUDO_MAP_VALUE,
    Instruction,
)

__all__ = [
    "ALU",
    "JUMPS",
    "R0",
    "R1",
    "R2",
    "R3",
    "R4",
    "R5",
    "R6",
    "R7",
    "R8",
    "R9",
    "R10",
    "Assembler",
    "Label",
    "Register",
    "TooLongError",
]


class Register(IntEnum):
    """R0 has results, R1 to R5 arguments, R6 to R9 last over calls, R10 is where the stack ends."""

    R0 = 0
    R1 = 1
    R2 = 2
    R3 = 3
    R4 = 4
    R5 = 5
    R6 = 6
    R7 = 7
    R8 = 8
    R9 = 9
    R10 = 10


R0, R1, R2, R3, R4, R5, R6, R7, R8, R9, R10 = Register

JUMPS: Mapping[str, int] = {
    "==": 0x15,
    ">": 0x25,
    ">=": 0x35,
    "&": 0x45,
    "!=": 0x55,
    "<": 0xA5,
    "<=": 0xB5,
    "s>": 0x65,
    "s>=": 0x75,
    "s<": 0xC5,
    "s<=": 0xD5,
}
"""64-bit comparisons with a constant, unsigned but for "s..."; "&": a common bit is set."""

ALU: Mapping[str, int] = {
    "+=": 0x07,
    "-=": 0x17,
    "*=": 0x27,
    "/=": 0x37,
    "|=": 0x47,
    "&=": 0x57,
    "<<=": 0x67,
    ">>=": 0x77,
    "%=": 0x97,
    "^=": 0xA7,
    "=": 0xB7,
    "s>>=": 0xC7,
}
"""64-bit operations with a constant, unsigned but for "s>>="."""

_LOAD = {1: 0x71, 2: 0x69, 4: 0x61, 8: 0x79}
_STORE = {1: 0x73, 2: 0x6B, 4: 0x63, 8: 0x7B}
_STORE_CONSTANT = {1: 0x72, 2: 0x6A, 4: 0x62, 8: 0x7A}
_ATOMIC = {4: 0xC3, 8: 0xDB}
_REGISTER = 0x08  # BPF_X: the second operand is a register
_JA = 0x05
_MAY_GO = 0xE5  # BPF_JMP | BPF_JCOND
_NEGATE = 0x87
_TO_BIG_ENDIAN = 0xDC  # on a little-endian machine, the bytes in the other order
_MOVE32 = 0xBC
_FETCH_ADD, _EXCHANGE, _COMPARE_EXCHANGE = 0x01, 0xE1, 0xF1
_FARTHEST = 0x7FFF

Label = NewType("Label", int)


class TooLongError(ValueError):
    """A jump of more than 32767 instructions."""


class Assembler:
    """Instructions in the making.

    Attributes:
        comments: the purpose of the instruction at an index, for a listing.
    """

    def __init__(self) -> None:
        self.comments: dict[int, str] = {}
        self._code: list[Instruction] = []
        self._labels: list[int] = []
        self._jumps: list[tuple[int, Label]] = []
        self._functions: list[tuple[int, Label]] = []

    def __len__(self) -> int:
        return len(self._code)

    def label(self) -> Label:
        """A new place to jump to, which `place` puts somewhere."""
        self._labels.append(-1)
        return Label(len(self._labels) - 1)

    def place(self, label: Label) -> None:
        """The label is here: before the next instruction."""
        self._labels[label] = len(self._code)

    def comment(self, text: str) -> None:
        """Comment the next instruction."""
        self.comments[len(self._code)] = text

    def move(self, register: int, value: int) -> None:
        """`register = value`, an unsigned or negative number of up to 64 bits."""
        if _fits(value):
            self._emit(ALU["="], register, imm=_as_signed(value))
        else:
            self._wide(register, 0, value & 0xFFFFFFFF, value >> 32 & 0xFFFFFFFF)

    def copy(self, register: int, source: int) -> None:
        """`register = source`."""
        self._emit(ALU["="] | _REGISTER, register, source)

    def alu(self, operator: str, register: int, value: int) -> None:
        """`register OP value` on 64 bits; an operator of `ALU`."""
        if not _fits(value):
            self.move(R2, value)
            self.alu_register(operator, register, R2)
        else:
            self._emit(ALU[operator], register, imm=_as_signed(value))

    def alu_register(self, operator: str, register: int, source: int) -> None:
        """`register OP source` on 64 bits."""
        self._emit(ALU[operator] | _REGISTER, register, source)

    def load(self, register: int, base: int, offset: int, size: int) -> None:
        """`register = *(base + offset)`, `size` bytes, zero-extended."""
        self._emit(_LOAD[size], register, base, offset)

    def store(self, base: int, offset: int, register: int, size: int) -> None:
        """`*(base + offset) = register`, its low `size` bytes."""
        self._emit(_STORE[size], base, register, offset)

    def store_constant(self, base: int, offset: int, value: int, size: int) -> None:
        """`*(base + offset) = value`, `size` bytes; 8 of them are sign-extended from 32 bits."""
        self._emit(_STORE_CONSTANT[size], base, offset=offset, imm=_as_signed(value))

    def atomic_add(self, base: int, offset: int, register: int, size: int) -> None:
        """`*(base + offset) += register` in one step, 4 or 8 bytes."""
        self._emit(_ATOMIC[size], base, register, offset)

    def fetch_add(self, base: int, offset: int, register: int, size: int) -> None:
        """Add `register` to memory in one step; `register` = the value before.

        Linux 5.12 (commit 5ffa25502b5a).
        """
        self._emit(_ATOMIC[size], base, register, offset, imm=_FETCH_ADD)

    def exchange(self, base: int, offset: int, register: int, size: int) -> None:
        """Swap `register` and memory in one step.

        Linux 5.12 (commit 5ffa25502b5a).
        """
        self._emit(_ATOMIC[size], base, register, offset, imm=_EXCHANGE)

    def compare_exchange(self, base: int, offset: int, register: int, size: int) -> None:
        """Store `register` if memory equals R0, in one step; R0 = the value before.

        Linux 5.12 (commit 5ffa25502b5a).
        """
        self._emit(_ATOMIC[size], base, register, offset, imm=_COMPARE_EXCHANGE)

    def negate(self, register: int) -> None:
        """`register = -register` on 64 bits."""
        self._emit(_NEGATE, register)

    def zero_extend(self, register: int) -> None:
        """Keep the low 32 bits of `register`."""
        self._emit(_MOVE32, register, register)

    def swap_bytes(self, register: int, bits: int) -> None:
        """Reverse the order of the low 16, 32 or 64 bits' bytes, and clear the others."""
        self._emit(_TO_BIG_ENDIAN, register, imm=bits)

    def may_go(self, label: Label) -> None:
        """Go to `label` once the kernel's limit of repetitions is reached; a loop's guard.

        Linux 6.9 (commit 011832b97b31).
        """
        self._jump(_MAY_GO, 0, 0, 0, label)

    def map(self, register: int, map_fd: int) -> None:
        """`register` = a map, for a helper."""
        self._wide(register, PSEUDO_MAP_FD, map_fd, 0)

    def function(self, register: int, label: Label) -> None:
        """`register` = the function that begins at `label`, for a helper to call.

        Linux 5.13 (commit 69c087ba6225).
        """
        self._functions.append((len(self._code), label))
        self._wide(register, PSEUDO_FUNC, 0, 0)

    def map_value(self, register: int, map_fd: int, offset: int = 0) -> None:
        """`register` = the address of a one-entry array's value, `offset` bytes in.

        Linux 5.2 (commit d8eca5bbb2be).
        """
        self._wide(register, PSEUDO_MAP_VALUE, map_fd, offset)

    def jump(self, operator: str, register: int, value: int, label: Label) -> None:
        """Go to `label` if `register OP value`; an operator of `JUMPS`."""
        if _fits(value):
            self._jump(JUMPS[operator], register, 0, _as_signed(value), label)
        else:
            self.move(R2, value)
            self._jump(JUMPS[operator] | _REGISTER, register, R2, 0, label)

    def jump_register(self, operator: str, register: int, other: int, label: Label) -> None:
        """Go to `label` if `register OP other`; an operator of `JUMPS`."""
        self._jump(JUMPS[operator] | _REGISTER, register, other, 0, label)

    def go(self, label: Label) -> None:
        """Go to `label`."""
        self._jump(_JA, 0, 0, 0, label)

    def call(self, helper: int) -> None:
        """Call a helper function; R1 to R5 are gone afterwards."""
        self._emit(CALL, imm=helper)

    def call_kernel(self, type_id: int) -> None:
        """Call a kernel function by its id in the kernel's BTF.

        Linux 5.13 (commit e6ac2450d6de).
        """
        self._emit(CALL, 0, PSEUDO_KFUNC_CALL, imm=type_id)

    def call_function(self, label: Label) -> None:
        """Call the function that begins at `label`, in this program; R1 to R5 are gone then.

        Linux 4.16 (commit cc8b0b92a169).
        """
        self._functions.append((len(self._code), label))
        self._emit(CALL, 0, PSEUDO_CALL)

    def exit(self) -> None:
        """Return R0."""
        self._emit(EXIT)

    def drop_unreachable(self) -> dict[int, int]:
        """Drop instructions that nothing leads to, which the verifier refuses.

        Returns:
            The new index of each instruction that stays.
        """
        reached = self._reached()
        places, count = {}, 0
        for index in range(len(self._code) + 1):
            places[index] = count
            count += index in reached
        self._code = [code for index, code in enumerate(self._code) if index in reached]
        self._labels = [places[place] if place >= 0 else place for place in self._labels]
        self._jumps = [(places[index], label) for index, label in self._jumps if index in reached]
        self._functions = [(places[at], label) for at, label in self._functions if at in reached]
        self.comments = {places[at]: text for at, text in self.comments.items() if at in reached}
        return {index: places[index] for index in sorted(reached)}

    def _reached(self) -> set[int]:
        jumps, reached = dict(self._jumps), set[int]()
        pending = [0, *(self._labels[label] for _, label in self._functions)]
        while pending:
            index = pending.pop()
            while index not in reached and 0 <= index < len(self._code):
                reached.add(index)
                opcode = self._code[index].opcode
                if index in jumps:
                    pending.append(self._labels[jumps[index]])
                if opcode in (_JA, EXIT):
                    break
                if opcode == LD_IMM64:
                    reached.add(index + 1)
                    index += 1
                index += 1
        return reached

    def finish(self) -> list[Instruction]:
        """The instructions, their jumps filled in.

        Raises:
            TooLongError: a label is farther than a jump reaches.
            ValueError: a label was not placed.
        """
        code = list(self._code)
        for index, label in self._jumps:
            distance = self._distance(index, label)
            if abs(distance) > _FARTHEST:
                raise TooLongError(f"a jump of {distance} instructions")
            code[index] = code[index]._replace(offset=distance)
        for index, label in self._functions:
            code[index] = code[index]._replace(imm=self._distance(index, label))
        return code

    def _distance(self, index: int, label: Label) -> int:
        if self._labels[label] < 0:
            raise ValueError(f"instruction {index} refers to a label that was not placed")
        return self._labels[label] - index - 1

    def _emit(
        self, opcode: int, dst: int = 0, src: int = 0, offset: int = 0, *, imm: int = 0
    ) -> None:
        self._code.append(Instruction(opcode, dst, src, offset, imm))

    def _wide(self, register: int, kind: int, low: int, high: int) -> None:
        self._emit(LD_IMM64, register, kind, imm=_signed32(low))
        self._emit(0, imm=_signed32(high))

    def _jump(self, opcode: int, register: int, source: int, imm: int, label: Label) -> None:
        self._jumps.append((len(self._code), label))
        self._emit(opcode, register, source, imm=imm)


def _as_signed(value: int) -> int:
    """An unsigned 64-bit number as a signed one."""
    return value - (1 << 64) if value >= 1 << 63 else value


def _fits(value: int) -> bool:
    """Return True if sign extension of 32 bits gives the value."""
    return -(1 << 31) <= _as_signed(value) < 1 << 31


def _signed32(value: int) -> int:
    return value - (1 << 32) if value >= 1 << 31 else value
