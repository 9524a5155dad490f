"""BPF programs made at run time, instruction by instruction, without a compiler:

    from purebpf import asm

    code = asm.Program("count", "raw_tp/sys_enter")
    out = code.label()
    code.store_constant(asm.R10, -4, 0, 4)
    code.call_helper("map_lookup_elem", asm.MapName("calls"), asm.Stack(-4))
    code.jump("==", asm.R0, 0, out)
    code.move(asm.R1, 1)
    code.atomic_add(asm.R0, 0, asm.R1, 8)
    code.place(out)
    code.move(asm.R0, 0)
    code.exit()

    calls = asm.MapSpec("calls", asm.bpf_map_type.BPF_MAP_TYPE_ARRAY, 4, 8, 1)
    with purebpf.load(asm.build("counter", [code], maps=[calls])) as counter:
        counter.attach()

`build` returns an `ObjectSpec`, as `purebpf.read_object` does for a file: it is loaded, attached,
inspected and refused like clang's objects. The verifier's messages show the lines of Python that
made the instructions. `disassemble` shows the code of any object below its lines of C. docs/asm.md

Names are imported when they are first used (PEP 562).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from purebpf.lazy import names

if TYPE_CHECKING:
    from purebpf.abi.assembler import (
        ALU,
        JUMPS,
        R0,
        R1,
        R2,
        R3,
        R4,
        R5,
        R6,
        R7,
        R8,
        R9,
        R10,
        Assembler,
        Label,
        Register,
        TooLongError,
    )
    from purebpf.abi.bpf import bpf_map_type
    from purebpf.asm.listing import disassemble
    from purebpf.asm.object import build
    from purebpf.asm.program import Function, MapName, Program, Stack
    from purebpf.spec import MapSpec

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
    "Function",
    "Label",
    "MapName",
    "MapSpec",
    "Program",
    "Register",
    "Stack",
    "TooLongError",
    "bpf_map_type",
    "build",
    "disassemble",
]

if not TYPE_CHECKING:  # a type checker would take any misspelt name for granted
    _ASSEMBLER = (
        *("ALU", "JUMPS", "Assembler", "Label", "Register", "TooLongError"),
        *(f"R{number}" for number in range(11)),
    )
    __getattr__ = names(
        __name__,
        {
            **{name: f"purebpf.abi.assembler.{name}" for name in _ASSEMBLER},
            **{
                name: f"purebpf.asm.program.{name}"
                for name in ("Function", "MapName", "Program", "Stack")
            },
            "MapSpec": "purebpf.spec.MapSpec",
            "bpf_map_type": "purebpf.abi.bpf.bpf_map_type",
            "build": "purebpf.asm.object.build",
            "disassemble": "purebpf.asm.listing.disassemble",
        },
    )
