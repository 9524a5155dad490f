"""Registers of a probed function: their places in `struct pt_regs`, by machine.

Sources: arch/x86/include/asm/ptrace.h, arch/arm64/include/uapi/asm/ptrace.h, and the calling
conventions of both.
"""

from __future__ import annotations

from collections.abc import Mapping

from purebpf.tuples import NamedTuple

__all__ = ["MACHINES", "Registers"]


class Registers(NamedTuple):
    """Places in bytes: of all registers, of the arguments, of the result, of the program counter.

    `stack_pointer` and `stack_arguments` find arguments that lie on the stack: the distance of
    the first from the stack pointer when a function begins.
    """

    by_name: Mapping[str, int]
    arguments: tuple[int, ...]
    result: int
    counter: int
    stack_pointer: int
    stack_arguments: int


_X86 = {
    name: 8 * index
    for index, name in enumerate(
        ("r15", "r14", "r13", "r12", "bp", "bx", "r11", "r10", "r9", "r8", "ax", "cx", "dx", "si",
         "di", "orig_ax", "ip", "cs", "flags", "sp", "ss")
    )
}  # fmt: skip
_X86["pc"] = _X86["ip"]
_ARM = {**{f"r{index}": 8 * index for index in range(31)}, "sp": 248, "pc": 256, "pstate": 264}

MACHINES: Mapping[str, Registers] = {
    "x86_64": Registers(_X86, tuple(_X86[name] for name in ("di", "si", "dx", "cx", "r8", "r9")),
                        _X86["ax"], _X86["ip"], _X86["sp"], 8),
    "aarch64": Registers(_ARM, tuple(8 * index for index in range(8)), 0, 256, 248, 0),
}  # fmt: skip
"""The machines that probes of functions support."""
