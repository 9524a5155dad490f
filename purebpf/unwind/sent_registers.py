"""User registers as programs send them: bpf_src/include/user_registers.h.

The 21 words of struct pt_regs of x86-64. On arm64 they are x0, x1, x8, x9, x12, x15, x19 to x30, sp
and pc under the same names: the registers that a call preserves, and the ones in rules of leaves
(x0, x1 and x15 in 373 files of Debian 12).
"""

from __future__ import annotations

from collections.abc import Sequence

from purebpf.tuples import NamedTuple
from purebpf.unwind.machine import AARCH64, X86_64, Machine

__all__ = ["NAMES", "SentRegisters", "code_bits", "read_registers"]

NAMES = (
    *("r15", "r14", "r13", "r12", "bp", "bx", "r11", "r10", "r9", "r8"),
    *("ax", "cx", "dx", "si", "di", "orig_ax", "ip", "cs", "flags", "sp", "ss"),
)
"""struct registers."""

_X86_64 = ("ax", "dx", "cx", "bx", "si", "di", "bp", "sp", *(f"r{n}" for n in range(8, 16)))
_AARCH64 = (
    *("di", "si", "", "", "", "", "", "", "orig_ax", "dx", "", "", "flags", "", "", "ss"),
    *("", "", ""),
    *("r12", "r13", "r14", "r15", "r8", "r9", "r10", "r11", "ax", "cx", "bp", "bx", "sp"),
)
_PLACES: dict[str, list[int | None]] = {
    machine.name: [NAMES.index(name) if name else None for name in names]
    for machine, names in ((X86_64, _X86_64), (AARCH64, _AARCH64))
}
"""Which word each of DWARF's registers is."""
_IP, _CS = NAMES.index("ip"), NAMES.index("cs")
_USER_CS = 0x33
"""__USER_CS of arch/x86/include/asm/segment.h, on both machines."""


class SentRegisters(NamedTuple):
    """The registers of a task in user space.

    Attributes:
        pc: the address that runs next.
        values: by DWARF's numbers; None: not sent.
        is_compat: a 32-bit task.
    """

    pc: int
    values: tuple[int | None, ...]
    is_compat: bool


def read_registers(machine: Machine, words: Sequence[int]) -> SentRegisters:
    """The registers in the words of struct registers."""
    values = [None if at is None else words[at] for at in _PLACES[machine.name]]
    return SentRegisters(words[_IP], tuple(values), words[_CS] != _USER_CS)


def code_bits(machine: Machine, highest: int) -> int:
    """`arm64_code_bits` of the programs.

    Args:
        machine: that they run on.
        highest: an address at the upper end of the address space of processes: of a stack. Where
            addresses of code are signed, that is above it (Linux, setup_return and
            ptrauth_user_pac_mask: the bits above virtual addresses).
    """
    return (1 << highest.bit_length()) - 1 if machine is AARCH64 else 0
