"""The instructions of a function, or of a whole program, as bytes that can be written to."""

from __future__ import annotations

import struct

from purebpf.abi.instruction import CALL, INSN_SIZE, LD_IMM64

_U32 = 0xFFFFFFFF
_CLASS = 0x07


class Code:
    """Instructions of either byte order, by slot: an ld_imm64 is two slots.

    `immediate` values are written modulo 2**32. Methods raise IndexError for a slot that is
    outside of the code.
    """

    __slots__ = ("_bytes", "_immediate", "_offset", "_source_shift", "_unsigned", "byteorder")

    def __init__(self, code: bytes | bytearray, byteorder: str) -> None:
        if len(code) % INSN_SIZE:
            raise ValueError(f"{len(code)} bytes are not a whole number of instructions")
        order = "<" if byteorder == "little" else ">"
        self.byteorder = byteorder
        self._bytes = bytearray(code)
        self._offset = struct.Struct(order + "h")
        self._immediate = struct.Struct(order + "i")
        self._unsigned = struct.Struct(order + "I")
        self._source_shift = 4 if byteorder == "little" else 0

    def __len__(self) -> int:
        return len(self._bytes) // INSN_SIZE

    def __bytes__(self) -> bytes:
        return bytes(self._bytes)

    def opcode(self, slot: int) -> int:
        """The opcode byte."""
        return self._bytes[self._at(slot)]

    def instruction_class(self, slot: int) -> int:
        """BPF_CLASS of the opcode."""
        return self.opcode(slot) & _CLASS

    def set_opcode(self, slot: int, opcode: int) -> None:
        """Write the opcode byte."""
        self._bytes[self._at(slot)] = opcode

    def source(self, slot: int) -> int:
        """The source register, which for ld_imm64 and calls is a BPF_PSEUDO_* number."""
        return self._bytes[self._at(slot) + 1] >> self._source_shift & 15

    def set_source(self, slot: int, source: int) -> None:
        """Write the source register."""
        at = self._at(slot) + 1
        keep = 15 << (4 - self._source_shift)
        self._bytes[at] = self._bytes[at] & keep | source << self._source_shift

    def offset(self, slot: int) -> int:
        """The signed 16-bit offset."""
        return int(self._offset.unpack_from(self._bytes, self._at(slot) + 2)[0])

    def set_offset(self, slot: int, offset: int) -> None:
        """Write the offset, -32768 to 32767."""
        self._offset.pack_into(self._bytes, self._at(slot) + 2, offset)

    def immediate(self, slot: int) -> int:
        """The signed 32-bit immediate."""
        return int(self._immediate.unpack_from(self._bytes, self._at(slot) + 4)[0])

    def set_immediate(self, slot: int, value: int) -> None:
        """Write the low 32 bits of `value`."""
        value &= _U32
        signed = value - (1 << 32) if value >> 31 else value
        self._immediate.pack_into(self._bytes, self._at(slot) + 4, signed)

    def is_load64(self, slot: int) -> bool:
        """Return True if an ld_imm64 starts here, with its second slot after it."""
        at = slot * INSN_SIZE
        if not 0 <= at < len(self._bytes):
            raise IndexError(f"instruction {slot} of {len(self)}")
        second = self._bytes[at + INSN_SIZE : at + INSN_SIZE + 4]
        return self._bytes[at] == LD_IMM64 and len(second) > 0 and not any(second)

    def set_pseudo64(self, slot: int, source: int, first: int, second: int) -> None:
        """Make the ld_imm64 here one of a BPF_PSEUDO_* kind, with both immediates."""
        at = slot * INSN_SIZE
        keep = 15 << (4 - self._source_shift)
        self._bytes[at + 1] = self._bytes[at + 1] & keep | source << self._source_shift
        self._unsigned.pack_into(self._bytes, at + 4, first & _U32)
        self._unsigned.pack_into(self._bytes, at + INSN_SIZE + 4, second & _U32)

    def load64(self, slot: int) -> int:
        """The unsigned 64-bit value of an ld_imm64."""
        return self.immediate(slot) & _U32 | (self.immediate(slot + 1) & _U32) << 32

    def set_load64(self, slot: int, value: int) -> None:
        """Write the low 64 bits of `value` into both slots of an ld_imm64."""
        self.set_immediate(slot, value)
        self.set_immediate(slot + 1, value >> 32)

    def replace_by_call(self, slot: int, function: int) -> None:
        """Make the slot a call of helper number `function`."""
        at = self._at(slot)
        self._bytes[at : at + 4] = bytes((CALL, 0, 0, 0))
        self.set_immediate(slot, function)

    def _at(self, slot: int) -> int:
        if not 0 <= slot < len(self):
            raise IndexError(f"instruction {slot} of {len(self)}")
        return slot * INSN_SIZE
