"""The disassembly is that of the verifier's log: every form that a socket filter can have."""

from __future__ import annotations

import re

import pytest

import purebpf
from purebpf import asm
from purebpf.abi.disassembler import disassemble
from purebpf.abi.instruction import Instruction, pack

pytestmark = [pytest.mark.needs("bpf"), pytest.mark.any_kernel]

_LINE = re.compile(r"^\s*(\d+): (?:[.0-9]{10} )?(\([0-9a-f]{2}\) .*?)\s*(?:;.*)?$", re.MULTILINE)

START = [
    Instruction(0xBF, 6, 1, 0, 0),
    Instruction(0xB7, 1, 0, 0, 5),
    Instruction(0xB7, 2, 0, 0, -7),
    Instruction(0x7B, 10, 1, -8, 0),
    Instruction(0x7B, 10, 2, -16, 0),
]
END = [Instruction(0xB7, 0, 0, 0, 0), Instruction(0x95, 0, 0, 0, 0)]

ARITHMETIC = [
    Instruction(code | operand | width, 1, 2 * (operand == 8), 0, 3 * (operand == 0))
    for code in (0x00, 0x10, 0x20, 0x30, 0x40, 0x50, 0x60, 0x70, 0x90, 0xA0, 0xB0, 0xC0)
    for operand in (0, 8)
    for width in (7, 4)
] + [
    Instruction(0x07, 1, 0, 0, -5),
    Instruction(0x87, 1, 0, 0, 0),
    Instruction(0x84, 1, 0, 0, 0),
    Instruction(0xDC, 1, 0, 0, 16),
    Instruction(0xD4, 1, 0, 0, 32),
]
MEMORY = [
    *(Instruction(0x61 + size, 1, 10, -8, 0) for size in (0x00, 0x08, 0x10, 0x18)),
    Instruction(0xB7, 1, 0, 0, 1),
    *(Instruction(0x63 + size, 10, 1, -24, 0) for size in (0x00, 0x08, 0x10, 0x18)),
    *(Instruction(0x62 + size, 10, 0, -32, -9) for size in (0x00, 0x08, 0x10, 0x18)),
    Instruction(0x30, 0, 0, 0, 12),
    Instruction(0x48, 0, 0, 0, 2),
    Instruction(0x18, 1, 0, 0, 0x55667788),
    Instruction(0, 0, 0, 0, 0x11223344),
]
JUMPS = [
    instruction
    for code in (0x10, 0x20, 0x30, 0x40, 0x50, 0x60, 0x70, 0xA0, 0xB0, 0xC0, 0xD0)
    for kind in (5, 6)
    for instruction in (
        Instruction(code | kind, 1, 0, 1, -5),
        Instruction(0xB7, 0, 0, 0, 0),
        Instruction(code | 8 | kind, 1, 2, 1, 0),
        Instruction(0xB7, 0, 0, 0, 0),
    )
] + [Instruction(0x05, 0, 0, 0, 0), Instruction(0x85, 0, 0, 0, 5)]
ATOMIC = [
    *(
        Instruction(opcode, 10, 1, -8, imm)
        for imm in (0x00, 0x40, 0x50, 0xA0, 0x01, 0x41, 0x51, 0xA1, 0xE1)
        for opcode in (0xDB, 0xC3)
    ),
    Instruction(0xB7, 0, 0, 0, 3),
    Instruction(0xDB, 10, 1, -8, 0xF1),
    Instruction(0xC3, 10, 1, -8, 0xF1),
]
VERSION_4 = [
    Instruction(0x3F, 1, 2, 1, 0),
    Instruction(0x94, 1, 0, 1, 3),
    Instruction(0xBF, 1, 2, 8, 0),
    Instruction(0xBC, 1, 2, 16, 0),
    Instruction(0xD7, 1, 0, 0, 64),
    Instruction(0x81, 1, 10, -8, 0),
    Instruction(0x06, 0, 0, 0, 0),
    Instruction(0xE5, 0, 0, 0, 0),
]
ORDERED = [Instruction(0xDB, 1, 10, -8, 0x100), Instruction(0xC3, 10, 1, -8, 0x110)]


@pytest.mark.parametrize(
    "body", [ARITHMETIC, MEMORY, JUMPS, ATOMIC, VERSION_4, ORDERED], ids=lambda b: f"{len(b)}"
)
def test_each_line_is_in_the_verifiers_log(body: list[Instruction]) -> None:
    code = asm.Program("listed", "socket")
    code.exit()
    spec = asm.build("listed", [code])
    function = next(iter(spec.functions.values()))
    instructions = [*START, *body, *END]
    changed = function._replace(code=pack(instructions), line_info=())
    spec = spec._replace(functions={function.name: changed})
    with purebpf.load(spec, log_level=2) as obj:
        log = obj.programs["listed"].log
    theirs: dict[int, set[str]] = {}
    for number, text in _LINE.findall(log):
        theirs.setdefault(int(number), set()).add(text)
    ours = dict(disassemble(instructions))
    assert theirs.keys() >= ours.keys() - {len(instructions)}
    assert {at: text for at, text in ours.items() if text not in theirs[at]} == {}
