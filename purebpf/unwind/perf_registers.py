"""User registers of perf samples (PERF_SAMPLE_REGS_USER) by DWARF's numbers.

Order: enum perf_event_x86_regs, enum perf_event_arm_regs in arch/*/include/uapi/asm/perf_regs.h.
"""

from __future__ import annotations

from collections.abc import Sequence

from purebpf.unwind.machine import AARCH64, X86_64, Machine

__all__ = ["MASKS", "SampledRegisters", "is_compat", "sampled_registers"]

SampledRegisters = tuple[int, list[int | None]]
"""The address that runs next, and the other registers by DWARF's numbers."""

_X86_64 = {
    0: 0,
    1: 3,
    2: 2,
    3: 1,
    4: 4,
    5: 5,
    6: 6,
    7: 7,  # ax bx cx dx si di bp sp
    **{16 + number: 8 + number for number in range(8)},
}
_X86_64_IP = 8
_USER_CS32 = 0x23
"""__USER32_CS of arch/x86/include/asm/segment.h."""
_AARCH64 = {number: number for number in range(32)}
_AARCH64_PC = 32
_PLACES = {X86_64.name: (_X86_64, _X86_64_IP), AARCH64.name: (_AARCH64, _AARCH64_PC)}
"""Bit in the mask -> DWARF's number; the bit of the program counter."""

_X86_CS = 10
_MORE = {X86_64.name: (9, _X86_CS, 11)}  # flags, cs, ss
MASKS = {
    name: sum(1 << bit for bit in (*places, pc, *_MORE.get(name, ())))
    for name, (places, pc) in _PLACES.items()
}
"""What to ask for, by the name of the machine: attr.sample_regs_user, as perf(1) asks for it."""


def sampled_registers(
    machine: Machine, mask: int, values: Sequence[int]
) -> SampledRegisters | None:
    """Registers of a sample.

    Args:
        machine: the machine of the sample.
        mask: attr.sample_regs_user.
        values: one for each bit of the mask; none for a task of the kernel.

    Returns:
        the registers; None where the sample has no program counter.
    """
    places, pc_bit = _PLACES[machine.name]
    if not mask >> pc_bit & 1 or len(values) != mask.bit_count():
        return None
    registers: list[int | None] = [None] * machine.registers
    pc = 0
    at = 0
    for bit in range(mask.bit_length()):
        if mask >> bit & 1:
            if bit == pc_bit:
                pc = values[at]
            elif bit in places:
                registers[places[bit]] = values[at]
            at += 1
    return pc, registers


def is_compat(machine: Machine, mask: int, values: Sequence[int]) -> bool:
    """Return True if 32-bit code ran on x86-64, as far as the mask has the code segment.

    The arguments are the same as for `sampled_registers`.
    """
    if machine is not X86_64 or not mask >> _X86_CS & 1 or len(values) != mask.bit_count():
        return False
    return values[(mask & (1 << _X86_CS) - 1).bit_count()] == _USER_CS32
