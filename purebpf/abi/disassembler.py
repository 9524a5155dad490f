"""BPF instructions as text, in the notation of the verifier and of llvm-objdump.

    12: (79) r1 = *(u64 *)(r7 + 48)
    13: (15) if r1 == 0x11 goto +3

Only what purebpf's assembler writes is spelled out; any other opcode is shown by its number.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from purebpf.abi.assembler import ALU, JUMPS
from purebpf.abi.helpers import bpf_func_id
from purebpf.abi.instruction import (
    CALL,
    EXIT,
    LD_IMM64,
    PSEUDO_CALL,
    PSEUDO_KFUNC_CALL,
    PSEUDO_MAP_VALUE,
    Instruction,
)
from purebpf.abi.names import member

__all__ = ["disassemble", "listing"]

_ALU = {code: operator for operator, code in ALU.items()}
_LOAD = {0x71: "u8", 0x69: "u16", 0x61: "u32", 0x79: "u64"}
_STORE = {0x73: "u8", 0x6B: "u16", 0x63: "u32", 0x7B: "u64"}
_STORE_CONSTANT = {0x72: "u8", 0x6A: "u16", 0x62: "u32", 0x7A: "u64"}
_ATOMIC = {0xC3: "u32", 0xDB: "u64"}
_COMPARE = {code: operator for operator, code in JUMPS.items()}
_REGISTER = 0x08
_JA = 0x05


def disassemble(
    instructions: Sequence[Instruction], functions: Mapping[int, str] | None = None
) -> Iterator[tuple[int, str]]:
    """Each instruction's index and text; the second slot of a wide one is left out.

    `functions` names kernel functions by the id they are called with.
    """
    index = 0
    while index < len(instructions):
        instruction = instructions[index]
        if instruction.opcode == LD_IMM64 and index + 1 < len(instructions):
            yield index, f"(18) {_wide(instruction, instructions[index + 1])}"
            index += 2
        else:
            yield index, f"({instruction.opcode:02x}) {_spell_call(instruction, functions or {})}"
            index += 1


def listing(
    instructions: Sequence[Instruction],
    comments: Mapping[int, str],
    functions: Mapping[int, str] | None = None,
) -> Iterator[str]:
    """Numbered lines; a comment is above its instruction, behind a `;`."""
    for index, text in disassemble(instructions, functions):
        if index in comments:
            yield f"; {comments[index]}"
        yield f"{index:4}: {text}"


def _wide(low: Instruction, high: Instruction) -> str:
    if low.src == PSEUDO_MAP_VALUE:
        return f"r{low.dst} = map_value(fd {low.imm}) + {high.imm}"
    value = (high.imm & 0xFFFFFFFF) << 32 | low.imm & 0xFFFFFFFF
    return f"r{low.dst} = {value:#x} ll"


def _spell_call(instruction: Instruction, functions: Mapping[int, str]) -> str:
    opcode, dst, src, offset, imm = instruction
    if opcode == EXIT:
        return "exit"
    if opcode == CALL:
        if src == PSEUDO_CALL:
            return f"call {imm:#x}"
        if src == PSEUDO_KFUNC_CALL:
            return f"call {functions.get(imm, f'kernel function {imm}')}"
        name = getattr(member(bpf_func_id, imm), "name", "helper").removeprefix("BPF_FUNC_")
        return f"call bpf_{name}#{imm}"
    if opcode == _JA:
        return f"goto {offset:+}"
    if size := _LOAD.get(opcode):
        return f"r{dst} = *({size} *)(r{src} {_spell_offset(offset)})"
    if size := _STORE.get(opcode):
        return f"*({size} *)(r{dst} {_spell_offset(offset)}) = r{src}"
    if size := _STORE_CONSTANT.get(opcode):
        return f"*({size} *)(r{dst} {_spell_offset(offset)}) = {imm:#x}"
    if imm == 0 and (size := _ATOMIC.get(opcode)):
        return f"lock *({size} *)(r{dst} {_spell_offset(offset)}) += r{src}"
    operand = f"r{src}" if opcode & _REGISTER else f"{imm:#x}"
    if operator := _ALU.get(opcode & ~_REGISTER):
        return f"r{dst} {operator} {operand}"
    if operator := _COMPARE.get(opcode & ~_REGISTER):
        return f"if r{dst} {operator} {operand} goto {offset:+}"
    return f"opcode {opcode:#x} dst={dst} src={src} off={offset} imm={imm}"


def _spell_offset(offset: int) -> str:
    return f"{'-' if offset < 0 else '+'} {abs(offset)}"
