"""BPF instructions as text, in the notation of the verifier (kernel/bpf/disasm.c).

    12: (79) r1 = *(u64 *)(r7 +48)
    13: (15) if r1 == 0x11 goto pc+3

All instructions of RFC 9669, and the ones that Linux has added since: may_goto, jumps through
tables, loads that acquire, stores that release, casts of an arena's pointers. Other opcodes appear
as their number.
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

_CODE = 0xF0
_ALU = {code & _CODE: operator for operator, code in ALU.items()}
_COMPARE = {code & _CODE: operator for operator, code in JUMPS.items()}
_SIZES = {0x00: 32, 0x08: 16, 0x10: 8, 0x18: 64}
_NEGATE, _SWAP, _MOVE = 0x80, 0xD0, 0xB0
_SIGNED = {0x30: "s/=", 0x90: "s%="}
_ATOMIC = {0x00: ("+=", "add"), 0x40: ("|=", "or"), 0x50: ("&=", "and"), 0xA0: ("^=", "xor")}
_FETCH, _EXCHANGE, _COMPARE_EXCHANGE, _ACQUIRE, _RELEASE = 0x01, 0xE1, 0xF1, 0x100, 0x110
_REGISTER = 0x08


def disassemble(
    instructions: Sequence[Instruction], functions: Mapping[int, str] | None = None
) -> Iterator[tuple[int, str]]:
    """Return each instruction's index and text; the second slot of a wide one is skipped.

    `functions` names kernel functions by the id they are called with.
    """
    index = 0
    while index < len(instructions):
        instruction = instructions[index]
        if instruction.opcode == LD_IMM64 and index + 1 < len(instructions):
            yield index, f"(18) {_wide(instruction, instructions[index + 1])}"
            index += 2
        else:
            yield index, f"({instruction.opcode:02x}) {_spell(instruction, functions or {})}"
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
    return f"r{low.dst} = {value:#x}"


def _spell(instruction: Instruction, functions: Mapping[int, str]) -> str:
    kind = instruction.opcode & 7
    text = ""
    if kind in (_ALU32, _ALU64):
        text = _spell_alu(instruction)
    elif kind in (_JMP, _JMP32):
        text = _spell_jump(instruction, functions)
    elif _memory(instruction) in _MEMORY[kind]:
        text = _spell_memory(instruction)
    opcode, dst, src, offset, imm = instruction
    return text or f"opcode {opcode:#x} dst={dst} src={src} off={offset} imm={imm}"


_LD, _LDX, _ST, _STX, _ALU32, _JMP, _JMP32, _ALU64 = range(8)
_MEM, _MEM_SIGNED, _PACKET, _PACKET_AT, _ATOMICALLY = 0x60, 0x80, 0x20, 0x40, 0xC0
_MEMORY = {
    _LD: (_PACKET, _PACKET_AT),
    _LDX: (_MEM, _MEM_SIGNED),
    _ST: (_MEM,),
    _STX: (_MEM, _ATOMICALLY),
}


def _memory(instruction: Instruction) -> int:
    return instruction.opcode & 0xE0


def _spell_memory(instruction: Instruction) -> str:
    opcode, dst, src, offset, imm = instruction
    bits, mode = _SIZES[opcode & 0x18], _memory(instruction)
    if opcode & 7 == _LD:
        return f"r0 = *(u{bits} *)skb[{f'r{src} + ' if mode == _PACKET_AT else ''}{imm}]"
    if opcode & 7 == _LDX:
        sign = "s" if mode == _MEM_SIGNED else "u"
        return f"r{dst} = *({sign}{bits} *)(r{src} {offset:+})"
    place = f"(r{dst} {offset:+})"
    if opcode & 7 == _ST:
        return f"*(u{bits} *){place} = {imm}"
    if mode == _MEM:
        return f"*(u{bits} *){place} = r{src}"
    return _spell_atomic(instruction, bits, place)


def _spell_atomic(instruction: Instruction, bits: int, place: str) -> str:
    _, dst, src, offset, imm = instruction
    atomic = "atomic64" if bits == 64 else "atomic"  # noqa: PLR2004 - bits of a register
    if imm == _ACQUIRE:
        return f"r{dst} = load_acquire((u{bits} *)(r{src} {offset:+}))"
    if imm == _RELEASE:
        return f"store_release((u{bits} *){place}, r{src})"
    if imm == _EXCHANGE:
        return f"r{src} = {atomic}_xchg((u{bits} *){place}, r{src})"
    if imm == _COMPARE_EXCHANGE:
        return f"r0 = {atomic}_cmpxchg((u{bits} *){place}, r0, r{src})"
    operator, name = _ATOMIC.get(imm & ~_FETCH, ("", ""))
    if imm & _FETCH and name:
        return f"r{src} = {atomic}_fetch_{name}((u{bits} *){place}, r{src})"
    return f"lock *(u{bits} *){place} {operator} r{src}" if operator else ""


def _spell_alu(instruction: Instruction) -> str:
    opcode, dst, src, offset, imm = instruction
    code, wide = opcode & _CODE, opcode & 7 == _ALU64
    half = "r" if wide else "w"
    target = f"{half}{dst}"
    operand = f"{half}{src}" if opcode & _REGISTER else f"{imm}"
    if code == _NEGATE:
        return f"{target} = -{target}"
    if code == _SWAP:
        order = "bswap" if wide else "be" if opcode & _REGISTER else "le"
        return f"r{dst} = {order}{imm} r{dst}"
    if code == _MOVE and opcode & _REGISTER and offset == 1:
        return f"r{dst} = addr_space_cast(r{src}, {imm >> 16}, {imm & 0xFFFF})"
    if code == _MOVE and opcode & _REGISTER and offset:
        return f"{target} = (s{offset}){operand}"
    operator = _SIGNED.get(code) if offset == 1 else _ALU.get(code)
    return f"{target} {operator} {operand}" if operator else ""


def _spell_jump(instruction: Instruction, functions: Mapping[int, str]) -> str:
    opcode, dst, src, offset, imm = instruction
    if opcode == CALL:
        return f"call {_called(src, imm, functions)}"
    simple = {
        EXIT: "exit",
        0x8D: f"callx r{dst}",
        0x05: f"goto pc{offset:+}",
        0x06: f"gotol pc{imm:+}",
        0x0D: f"gotox r{dst}",
        0xE5: f"may_goto pc{offset:+}",
    }
    if opcode in simple:
        return simple[opcode]
    half = "r" if opcode & 7 == _JMP else "w"
    operand = f"{half}{src}" if opcode & _REGISTER else f"{imm & 0xFFFFFFFF:#x}"
    operator = _COMPARE.get(opcode & _CODE)
    return f"if {half}{dst} {operator} {operand} goto pc{offset:+}" if operator else ""


def _called(src: int, imm: int, functions: Mapping[int, str]) -> str:
    if src == PSEUDO_CALL:
        return f"pc{imm:+}"
    if src == PSEUDO_KFUNC_CALL:
        return f"{functions.get(imm, 'kernel-function')}#{imm}"
    name = getattr(member(bpf_func_id, imm), "name", "helper").removeprefix("BPF_FUNC_")
    return f"bpf_{name}#{imm}"
