"""The differences between the machines that we unwind: registers, and the frames of signals.

DWARF register numbers: System V ABI, AMD64 supplement, figure 3.36, and Intel386 supplement, figure
2.14; "DWARF for the Arm 64-bit Architecture", section 4.1. Frames of signals: struct rt_sigframe of
Linux, in arch/x86/include/asm/sigframe.h and arch/arm64/kernel/signal.c.
"""

from __future__ import annotations

import struct

from purebpf.tuples import NamedTuple

__all__ = [
    "AARCH64",
    "CALL_BYTES",
    "I386",
    "MACHINES",
    "STUB_BYTES",
    "X86_64",
    "Machine",
    "ends_in_call",
    "is_stub",
]


class Machine(NamedTuple):
    """Registers are DWARF's numbers.

    Attributes:
        name: as `uname -m` spells it.
        elf: e_machine of its files.
        word: bytes of a register, and of an address in a file.
        sp, fp, ra: stack pointer, frame pointer, and the column of the return address.
        argument: the register of a system call's first argument.
        registers: how many registers unwinding follows, from 0 on; `ra` is among them.
        kept: those that a function gives back as it got them.
        address_bits: how large address spaces can be; a return address may have a signature above
            (PAC: Linux, Documentation/arch/arm64/pointer-authentication.rst).
        leaf_in_register: whether a call leaves the return address in a register.
        sigreturn: the instructions of rt_sigreturn(2)'s call, which handlers return to.
        sigreturn_pcs: where, in bytes after their start, such a frame can be interrupted.
        signal_at: bytes from the stack pointer to the saved registers of a signal's frame.
        signal_registers: which registers are saved there, a word each.
        signal_pc: index of the interrupted address among them.
    """

    name: str
    elf: int
    word: int
    sp: int
    fp: int
    ra: int
    argument: int
    registers: int
    kept: tuple[int, ...]
    address_bits: tuple[int, ...]
    leaf_in_register: bool
    sigreturn: bytes
    sigreturn_pcs: tuple[int, ...]
    signal_at: int
    signal_registers: tuple[int, ...]
    signal_pc: int


X86_64 = Machine(
    name="x86_64",
    elf=62,
    word=8,
    sp=7,
    fp=6,
    ra=16,
    argument=5,
    registers=17,
    kept=(3, 6, 12, 13, 14, 15),
    address_bits=(),
    leaf_in_register=False,
    sigreturn=b"\x48\xc7\xc0\x0f\0\0\0\x0f\x05",  # mov $15, %rax; syscall
    sigreturn_pcs=(0, 7),
    signal_at=40,
    signal_registers=(8, 9, 10, 11, 12, 13, 14, 15, 5, 4, 6, 3, 1, 0, 2, 7, 16),
    signal_pc=16,
)

AARCH64 = Machine(
    name="aarch64",
    elf=183,
    word=8,
    sp=31,
    fp=29,
    ra=30,
    argument=0,
    registers=32,
    kept=tuple(range(19, 30)),
    address_bits=(52, 48, 47, 42, 39, 36),
    leaf_in_register=True,
    sigreturn=struct.pack("<II", 0xD2801168, 0xD4000001),  # mov x8, #139; svc #0
    sigreturn_pcs=(0, 4),
    signal_at=312,
    signal_registers=tuple(range(33)),  # x0 to x30, sp, pc
    signal_pc=32,
)

I386 = Machine(
    name="i686",
    elf=3,
    word=4,
    sp=4,
    fp=5,
    ra=8,
    argument=3,
    registers=9,
    kept=(3, 5, 6, 7),
    address_bits=(),
    leaf_in_register=False,
    sigreturn=b"\xb8\xad\0\0\0\xcd\x80",  # mov $173, %eax; int $0x80
    sigreturn_pcs=(0, 5),
    signal_at=160,
    signal_registers=(*(9, 9, 9, 9), 7, 6, 5, 4, 3, 2, 1, 0, *(9, 9), 8),  # 9: of no use here
    signal_pc=14,
)
"""32-bit programs of x86-64. The other form of sigreturn(2), of handlers without SA_SIGINFO, has
rules in the vDSO.
"""

MACHINES = {machine.elf: machine for machine in (X86_64, AARCH64, I386)}
"""By e_machine."""

CALL_BYTES = 8
"""The longest call has 7, and one of x86-64 may have a prefix."""


def ends_in_call(code: bytes, machine: Machine) -> bool:
    """Return True if the last bytes of some code may be a call: it accepts all calls, and some
    other code.
    """
    if machine is AARCH64:  # bl; blr, and blraa and its like
        word = int.from_bytes(code[-4:], "little")
        return word >> 26 == 0x25 or word & 0xFEFFF000 == 0xD63F0000
    if code[-5:-4] == b"\xe8":
        return True
    return any(  # ff /2, with a displacement or index or without
        code[-size] == 0xFF and code[1 - size] & 0x38 == 0x10
        for size in (2, 3, 4, 6, 7)
        if size <= len(code)
    )


STUB_BYTES = 20
"""What `is_stub` looks at, on both sides of an address."""
_STUB = (
    (0x9F00001F, 0x90000010),  # adrp x16, page
    (0xFFC003FF, 0xF9400211),  # ldr x17, [x16, offset]
    (0xFFC003FF, 0x91000210),  # add x16, x16, offset
    (0xFFFFFFFF, 0xD61F0220),  # br x17
)
_BTI_C, _AUTIA1716 = 0xD503245F, 0xD503219F


def is_stub(code: bytes, machine: Machine) -> bool:
    """Return True if an instruction belongs to a stub in a PLT of arm64, which has no rules.

    Stubs do not change the stack or the return address (AAELF64, "Procedure Linkage Table").

    Args:
        code: `STUB_BYTES` before the instruction, and as many from it on.
        machine: of the code.
    """
    if machine is not AARCH64 or len(code) != 2 * STUB_BYTES:
        return False
    words = struct.unpack(f"<{2 * STUB_BYTES // 4}I", code)
    here = STUB_BYTES // 4
    last_start = here + (words[here] == _BTI_C)
    for start in range(here - 4, last_start + 1):
        stub = words[start : start + 5]
        if stub[3] == _AUTIA1716:
            stub = (*stub[:3], stub[4])
            end = start + 5
        else:
            end = start + 4
        fits = all(word & mask == value for word, (mask, value) in zip(stub, _STUB, strict=False))
        if fits and end > here:
            return True
    return False
