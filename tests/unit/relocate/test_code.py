"""Instructions as writable bytes, in both byte orders."""

from __future__ import annotations

import pytest

from purebpf.abi.instruction import LD_IMM64, Instruction, pack, unpack
from purebpf.relocate.code import Code

LOAD64 = [Instruction(LD_IMM64, 1, 0, 0, -1), Instruction(0, 0, 0, 0, 2)]
STORE = Instruction(0x63, 10, 3, -4, 7)


def big_endian(instructions: list[Instruction]) -> bytes:
    return b"".join(
        bytes((i.opcode, i.dst << 4 | i.src))
        + i.offset.to_bytes(2, "big", signed=True)
        + i.imm.to_bytes(4, "big", signed=True)
        for i in instructions
    )


@pytest.fixture(params=["little", "big"])
def code(request: pytest.FixtureRequest) -> Code:
    write = pack if request.param == "little" else big_endian
    return Code(write([*LOAD64, STORE]), request.param)


def instructions(code: Code) -> list[Instruction]:
    return unpack(bytes(code), code.byteorder)


def test_parts_of_instructions_are_read_by_slot(code: Code) -> None:
    assert len(code) == 3
    assert (code.opcode(2), code.source(2), code.offset(2), code.immediate(2)) == (0x63, 3, -4, 7)
    assert code.instruction_class(2) == 3
    assert code.load64(0) == 0x2_FFFF_FFFF


def test_writing_changes_nothing_else(code: Code) -> None:
    code.set_opcode(2, 0x7B)
    code.set_source(2, 9)
    code.set_offset(2, -32768)
    code.set_immediate(2, 0xFFFFFFFE)
    code.set_load64(0, -3)
    code.set_source(0, 2)

    assert instructions(code) == [
        Instruction(LD_IMM64, 1, 2, 0, -3),
        Instruction(0, 0, 0, 0, -1),
        Instruction(0x7B, 10, 9, -32768, -2),
    ]


def test_a_slot_becomes_a_call(code: Code) -> None:
    code.replace_by_call(2, 195896080)
    assert instructions(code)[2] == Instruction(0x85, 0, 0, 0, 0xBAD2310)


def test_an_ld_imm64_has_an_empty_second_slot() -> None:
    assert Code(pack(LOAD64), "little").is_load64(0)
    assert not Code(pack(LOAD64), "little").is_load64(1)
    assert not Code(pack([LOAD64[0]]), "little").is_load64(0)
    assert not Code(pack([LOAD64[0], STORE]), "little").is_load64(0)


@pytest.mark.parametrize("slot", [-1, 3])
def test_a_slot_is_inside_the_code(code: Code, slot: int) -> None:
    with pytest.raises(IndexError):
        code.opcode(slot)


def test_code_is_whole_instructions() -> None:
    with pytest.raises(ValueError, match="12 bytes"):
        Code(bytes(12), "little")


def test_an_ld_imm64_of_a_kind_keeps_its_register(code: Code) -> None:
    before = instructions(code)
    code.set_pseudo64(0, 2, 0x8000_0001, 0xFFFF_FFFF)
    first, second, *rest = instructions(code)
    assert (first.dst, first.src, first.imm & 0xFFFF_FFFF) == (1, 2, 0x8000_0001)
    assert (second.imm, second.src, second.dst) == (-1, 0, 0)
    assert rest == before[2:]
