"""The 8-byte BPF instruction (RFC 9669): pack, unpack and the opcodes that loading touches."""

from __future__ import annotations

import struct

from purebpf.tuples import NamedTuple

INSN_SIZE = 8

LD_IMM64 = 0x18  # BPF_LD | BPF_IMM | BPF_DW: two slots
CALL = 0x85  # BPF_JMP | BPF_CALL
EXIT = 0x95  # BPF_JMP | BPF_EXIT

PSEUDO_MAP_FD = 1
PSEUDO_MAP_VALUE = 2
PSEUDO_BTF_ID = 3
PSEUDO_FUNC = 4
PSEUDO_CALL = 1
PSEUDO_KFUNC_CALL = 2

_LITTLE = struct.Struct("<BBhi")
_BIG = struct.Struct(">BBhi")


class Instruction(NamedTuple):
    """One slot: opcode, destination and source register, 16-bit offset, 32-bit immediate."""

    opcode: int
    dst: int
    src: int
    offset: int
    imm: int


def unpack(code: bytes | bytearray | memoryview, byteorder: str = "little") -> list[Instruction]:
    """Every slot of `code`; both slots of an ld_imm64 are listed."""
    if byteorder == "little":
        return [
            Instruction(op, regs & 15, regs >> 4, off, imm)
            for op, regs, off, imm in _LITTLE.iter_unpack(code)
        ]
    return [
        Instruction(op, regs >> 4, regs & 15, off, imm)
        for op, regs, off, imm in _BIG.iter_unpack(code)
    ]


def pack(instructions: list[Instruction]) -> bytes:
    """The little-endian bytes of `instructions`."""
    return b"".join(
        _LITTLE.pack(i.opcode, i.dst | i.src << 4, i.offset, i.imm) for i in instructions
    )
