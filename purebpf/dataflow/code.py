"""The code of one function, decoded, with the edges between its instructions.

Needs iced-x86 (the extra `types`).
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

from iced_x86 import (
    Decoder,
    FlowControl,
    Instruction,
    InstructionInfoFactory,
    MemorySizeExt,
    Mnemonic,
    OpAccess,
    OpKind,
    Register,
    RegisterExt,
)

from purebpf.tuples import NamedTuple

__all__ = [
    "STACK_POINTER",
    "Access",
    "Code",
    "access_of",
    "access_size",
    "constant_of",
    "displacement",
    "full",
    "is_choice",
    "is_whole",
    "written",
]

_INFO = InstructionInfoFactory()
_WRITES = frozenset(
    (OpAccess.WRITE, OpAccess.READ_WRITE, OpAccess.COND_WRITE, OpAccess.READ_COND_WRITE)
)
_READS = frozenset(
    (OpAccess.READ, OpAccess.READ_WRITE, OpAccess.COND_READ, OpAccess.READ_COND_WRITE)
)
_GOES_ON = frozenset(
    (
        FlowControl.NEXT,
        FlowControl.CALL,
        FlowControl.INDIRECT_CALL,
        FlowControl.CONDITIONAL_BRANCH,
        FlowControl.XBEGIN_XABORT_XEND,
        FlowControl.INTERRUPT,
    )
)
_PADDING = (Mnemonic.NOP, Mnemonic.INT3)
_JUMPS = frozenset((FlowControl.CONDITIONAL_BRANCH, FlowControl.UNCONDITIONAL_BRANCH))
_SIGN = 1 << 63
_CONSTANTS = (OpKind.IMMEDIATE8TO64, OpKind.IMMEDIATE32TO64)
_CHOICES = frozenset(number for name, number in vars(Mnemonic).items() if name.startswith("CMOV"))
_WORD = 8
_size: Any = RegisterExt.size
_full_register: Any = RegisterExt.full_register  # their stubs want an enum that does not exist


class Access(NamedTuple):
    """A memory operand: how it is used, and how many bytes."""

    reads: bool
    writes: bool
    size: int


class Code:
    """Instructions of one function, and where each leads.

    Args:
        code: the bytes.
        address: of the first byte, as the file was linked.
        warns: execution goes on after UD2, as after the kernel's WARN().

    Attributes:
        instructions: in order; invalid bytes are among them.
        index: the number of the instruction at each address.
        written: the 64-bit registers that each instruction may change.
        calls: the address of each direct call, by the address that it returns to.
        next, before: the numbers that each instruction leads to, and comes from, within the
            function; indirect jumps lead nowhere.
    """

    def __init__(self, code: bytes, address: int, *, warns: bool = False) -> None:
        self._warns = warns
        self.instructions: list[Instruction] = list(Decoder(64, code, ip=address))
        self.index = {one.ip: number for number, one in enumerate(self.instructions)}
        self.written = [written(one) for one in self.instructions]
        self.calls = {
            one.next_ip: one.ip for one in self.instructions if one.flow_control == FlowControl.CALL
        }
        self.next = [self._next(number) for number in range(len(self.instructions))]
        self.before: list[list[int]] = [[] for _ in self.instructions]
        for number, followers in enumerate(self.next):
            for follower in followers:
                self.before[follower].append(number)
        for number in range(1, len(self.instructions)):
            self._cut_padding(number)

    @cached_property
    def opened(self) -> frozenset[int]:
        """The numbers of instructions between STAC and CLAC, which may touch a program's memory."""
        todo = [n for n, one in enumerate(self.instructions) if one.mnemonic == Mnemonic.STAC]
        found = set(todo)
        while todo:
            number = todo.pop()
            if self.instructions[number].mnemonic != Mnemonic.CLAC:
                fresh = [one for one in self.next[number] if one not in found]
                found.update(fresh)
                todo += fresh
        return frozenset(found)

    def is_padding(self, number: int) -> bool:
        """Return True for an instruction that fills the space before an aligned one."""
        return number > 0 and self.instructions[number].mnemonic in _PADDING

    def _cut_padding(self, number: int) -> None:
        """Remove the way out of padding that no path leads to."""
        if self.before[number] or not self.is_padding(number):
            return
        for follower in self.next[number]:
            self.before[follower].remove(number)
        self.next[number] = []

    def _next(self, number: int) -> list[int]:
        instruction = self.instructions[number]
        flow = instruction.flow_control
        followers = []
        goes_on = flow in _GOES_ON and instruction.mnemonic != Mnemonic.INT3
        goes_on |= self._warns and instruction.mnemonic == Mnemonic.UD2
        if goes_on and number + 1 < len(self.instructions):
            followers.append(number + 1)
        if flow in _JUMPS:
            target = self.index.get(instruction.near_branch_target)
            if target is not None and target not in followers:
                followers.append(target)
        return followers


def full(register: int) -> int:
    """Return the 64-bit register that a register is a part of."""
    return int(_full_register(register))


def is_whole(register: int) -> bool:
    """Return True for a register of 64 bits that is no part of another one."""
    return bool(_size(register) == _WORD and register == full(register))


def displacement(instruction: Instruction) -> int:
    """Return the constant of a memory operand, with its sign; an address where it is absolute."""
    constant: int = instruction.memory_displacement
    return constant - (_SIGN << 1) if constant & _SIGN else constant


def constant_of(instruction: Instruction) -> int | None:
    """Return the 64-bit constant that is the second operand, with its sign; None: it is none."""
    if instruction.op1_kind not in _CONSTANTS:
        return None
    constant: int = instruction.immediate(1)
    return constant - (_SIGN << 1) if constant & _SIGN else constant


def is_choice(instruction: Instruction) -> bool:
    """Return True for a conditional move."""
    return instruction.mnemonic in _CHOICES


def written(instruction: Instruction) -> set[int]:
    """Return the 64-bit registers that an instruction may change."""
    return {
        full(used.register)
        for used in _INFO.info(instruction).used_registers()
        if used.access in _WRITES
    }


def access_of(instruction: Instruction) -> Access | None:
    """Return the use of the memory operand; None: there is none, or only an address."""
    kinds = [instruction.op_kind(number) for number in range(instruction.op_count)]
    if OpKind.MEMORY not in kinds or instruction.mnemonic in (Mnemonic.LEA, Mnemonic.NOP):
        return None
    info = _INFO.info(instruction)
    uses = {info.op_access(n) for n, kind in enumerate(kinds) if kind == OpKind.MEMORY}
    reads, writes = bool(uses & _READS), bool(uses & _WRITES)
    if not (reads or writes):  # a prefetch
        return None
    return Access(reads, writes, MemorySizeExt.size(instruction.memory_size))


def access_size(instruction: Instruction) -> int:
    """Return the bytes that the memory operand has; 0: unknown."""
    return MemorySizeExt.size(instruction.memory_size)


STACK_POINTER = Register.RSP
