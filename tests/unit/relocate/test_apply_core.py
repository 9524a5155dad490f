"""CO-RE results into instructions of each class."""

from __future__ import annotations

from pathlib import Path

import pytest

from purebpf.abi.bpf import bpf_core_relo_kind as K  # noqa: N812
from purebpf.abi.instruction import CALL, LD_IMM64, Instruction, pack, unpack
from purebpf.btf.core.matching import CoreResult, match
from purebpf.elf import read_object
from purebpf.errors import CoreRelocationError, FormatError
from purebpf.relocate.core import POISON, Patched, apply_core
from purebpf.spec import CoreRelocation, FunctionSpec

DATA = Path(__file__).parents[2] / "data/core"

MOV32, MOV64, ADD64, MOV64_X = 0xB4, 0xB7, 0x07, 0xBF
LDX_B, LDX_H, LDX_W, LDX_DW = 0x71, 0x69, 0x61, 0x79
LDX_W_SIGNED = 0x81
ST_W, STX_W, STX_DW, EXIT = 0x62, 0x63, 0x7B, 0x95
POISONED = Instruction(CALL, 0, 0, 0, POISON)


def result(value: int, local_value: int, **more: object) -> CoreResult:
    return CoreResult(0, "struct s.f", "struct s.f of type 1", value, local_value, **more)  # type: ignore[arg-type]


def apply(instructions: list[Instruction], *results: CoreResult, offset: int = 0) -> Patched:
    relocations = tuple(CoreRelocation(offset, 1, "0:0", 0) for _ in results)
    function = FunctionSpec(
        "f", "socket", 0, pack(instructions), "global", core_relocations=relocations
    )
    return apply_core(function, results, byteorder="little", source="test.o")


def patched(instruction: Instruction, *results: CoreResult) -> Instruction:
    """What becomes of the second of two instructions."""
    before = Instruction(MOV64, 1, 0, 0, 99)
    code = apply([before, instruction], *results, offset=8).code
    first, second = unpack(code)
    assert first == before
    return second


@pytest.mark.parametrize("opcode", [MOV32, MOV64, ADD64])
@pytest.mark.parametrize("value", [0, 8, 0x7FFFFFFF, -1, -(1 << 31)])
def test_alu_takes_the_immediate(opcode: int, value: int) -> None:
    assert patched(Instruction(opcode, 2, 0, 0, 4), result(value, 4)).imm == value


def test_alu_takes_32_unsigned_bits_too() -> None:
    assert patched(Instruction(MOV32, 2, 0, 0, -2), result(0xFFFFFFFF, 0xFFFFFFFE)).imm == -1


@pytest.mark.parametrize("value", [1 << 32, -(1 << 31) - 1])
def test_alu_refuses_what_32_bits_cannot_hold(value: int) -> None:
    with pytest.raises(CoreRelocationError, match="too large for 32 bits"):
        patched(Instruction(MOV64, 2, 0, 0, 4), result(value, 4))


@pytest.mark.parametrize("opcode", [LDX_W, LDX_DW, ST_W, STX_W, LDX_W_SIGNED])
def test_loads_and_stores_take_the_offset(opcode: int) -> None:
    before = Instruction(opcode, 2, 1, 4, 77 if opcode == ST_W else 0)
    assert patched(before, result(32767, 4)) == before._replace(offset=32767)


@pytest.mark.parametrize("value", [32768, -1])
def test_loads_and_stores_refuse_what_16_bits_cannot_hold(value: int) -> None:
    with pytest.raises(CoreRelocationError, match="too large for 16 bits"):
        patched(Instruction(LDX_W, 2, 1, 4, 0), result(value, 4))


@pytest.mark.parametrize(
    ("opcode", "local_size", "size", "expected"),
    [
        (LDX_W, 4, 8, LDX_DW),
        (LDX_W, 4, 2, LDX_H),
        (LDX_W, 4, 1, LDX_B),
        (LDX_DW, 8, 4, LDX_W),
        (STX_W, 4, 8, STX_DW),
        (LDX_W, 4, 4, LDX_W),
        (LDX_B, 4, 4, LDX_B),  # a deliberate part of a field of the same size
    ],
)
def test_loads_and_stores_change_their_width_with_the_field(
    opcode: int, local_size: int, size: int, expected: int
) -> None:
    found = patched(Instruction(opcode, 2, 1, 0, 0), result(8, 0, local_size=local_size, size=size))
    assert (found.opcode, found.offset) == (expected, 8)


def test_a_load_of_another_width_than_its_field_cannot_change_it() -> None:
    with pytest.raises(FormatError, match="accesses 1 bytes of a field of 4"):
        patched(Instruction(LDX_B, 2, 1, 0, 0), result(8, 0, local_size=4, size=8))


def test_a_load_is_as_wide_as_a_register_at_most() -> None:
    with pytest.raises(FormatError, match="cannot access 16 bytes"):
        patched(Instruction(LDX_DW, 2, 1, 0, 0), result(8, 0, local_size=8, size=16))


def test_ld_imm64_takes_both_immediates() -> None:
    for value in (5, 0x1122334455667788, -20, (1 << 64) - 1):
        code = apply(
            [Instruction(LD_IMM64, 3, 0, 0, 7), Instruction(0, 0, 0, 0, 1)],
            result(value, 1 << 32 | 7),
        ).code
        first, second = unpack(code)
        assert first.dst == 3
        whole = first.imm & 0xFFFFFFFF | (second.imm & 0xFFFFFFFF) << 32
        assert whole == value & (1 << 64) - 1


def test_negative_values_are_checked_as_64_bits() -> None:
    code = [Instruction(LD_IMM64, 3, 0, 0, -2), Instruction(0, 0, 0, 0, -1)]
    assert unpack(apply(code, result(1, -2)).code)[0].imm == 1
    with pytest.raises(FormatError, match=", expected 4294967294"):
        apply(code, result(1, 0xFFFFFFFE))


@pytest.mark.parametrize(
    "code",
    [
        [Instruction(LD_IMM64, 3, 1, 0, 0), Instruction(0, 0, 0, 0, 0)],  # a map already
        [Instruction(LD_IMM64, 3, 0, 1, 0), Instruction(0, 0, 0, 0, 0)],
        [Instruction(LD_IMM64, 3, 0, 0, 0), Instruction(EXIT, 0, 0, 0, 0)],
        [Instruction(LD_IMM64, 3, 0, 0, 0)],
        [Instruction(0x20, 0, 0, 0, 0)],  # BPF_LD_ABS
        [Instruction(MOV64_X, 1, 2, 0, 0)],
        [Instruction(EXIT, 0, 0, 0, 0)],
        [Instruction(CALL, 0, 0, 0, 0)],
    ],
)
def test_other_instructions_are_refused(code: list[Instruction]) -> None:
    with pytest.raises(FormatError, match="cannot be relocated"):
        apply(code, result(0, 0))


@pytest.mark.parametrize(
    "instruction",
    [Instruction(MOV64, 1, 0, 0, 5), Instruction(LDX_W, 1, 2, 5, 0)],
)
def test_an_instruction_holds_what_the_compiler_put_there(instruction: Instruction) -> None:
    with pytest.raises(FormatError, match="has 5, expected 4") as caught:
        patched(instruction, result(8, 4))
    assert "function f, instruction 1" in caught.value.where
    assert patched(instruction, result(8, 4, is_checked=False)) != instruction


def test_a_result_without_an_answer_poisons() -> None:
    instruction = Instruction(LDX_W, 1, 2, 5, 0)
    found = apply([instruction], result(0, 4, problem="no such field on this kernel"))
    assert unpack(found.code) == [POISONED]
    assert found.poisoned == {0: "struct s.f: no such field on this kernel"}


def test_both_halves_of_an_ld_imm64_are_poisoned() -> None:
    code = [Instruction(LD_IMM64, 3, 0, 0, 7), Instruction(0, 0, 0, 0, 1)]
    found = apply(code, result(0, 0, problem="no such enumerator on this kernel"))
    assert unpack(found.code) == [POISONED, POISONED]
    assert set(found.poisoned) == {0, 1}


@pytest.mark.parametrize(("opcode", "is_poisoned"), [(LDX_W, 1), (ST_W, 1), (MOV64, 0)])
def test_a_misfit_poisons_loads_and_stores_only(opcode: int, is_poisoned: int) -> None:
    misfit = result(8, 0, local_size=4, size=8, misfit="4 bytes when compiled, 8 on this kernel")
    found = apply([Instruction(opcode, 1, 0, 0, 0)], misfit)
    assert len(found.poisoned) == is_poisoned
    assert (unpack(found.code) == [POISONED]) == bool(is_poisoned)


@pytest.mark.parametrize("offset", [4, -8, 8])
def test_a_relocation_is_at_an_instruction(offset: int) -> None:
    with pytest.raises(FormatError, match="is not an instruction"):
        apply([Instruction(MOV64, 1, 0, 0, 0)], result(0, 0), offset=offset)


@pytest.mark.parametrize(
    ("function", "opcode", "offset", "size"),
    [
        ("load_widened", LDX_DW, 24, 8),
        ("load_narrowed", LDX_W, 16, 4),
        ("load_pointer", LDX_DW, 40, 8),
        ("load_element", LDX_W, 48 + 2 * 4, 4),
        ("load_same", LDX_B, 60, 1),
        ("store_register", STX_W, 16, 4),
        ("store_constant", None, 60, 1),
    ],
)
def test_what_clang_makes(function: str, opcode: int | None, offset: int, size: int) -> None:
    found, results = relocate_fixture(function)
    slot = found_slot(function)
    instruction = unpack(found.code)[slot]
    assert not found.poisoned
    assert instruction.offset == offset
    assert results[0].size == size
    if opcode is not None:
        assert instruction.opcode == opcode


def test_a_signed_field_of_another_size_is_poisoned() -> None:
    found, _ = relocate_fixture("load_signed")
    assert unpack(found.code)[found_slot("load_signed")] == POISONED
    (why,) = found.poisoned.values()
    assert why == (
        "struct sized.signed_widened: 4 bytes when compiled, 8 on this kernel, and only loads "
        "and stores of pointers and unsigned integers can change their width"
    )


def relocate_fixture(function: str) -> tuple[Patched, list[CoreResult]]:
    local, target = (read_object(DATA / f"core_loads.{kind}.o") for kind in ("bpf", "target"))
    assert local.btf is not None
    assert target.btf is not None
    spec = local.functions[function]
    results = match(local.btf, spec.core_relocations, [target.btf])
    assert [K(each.kind) for each in results] == [K.BPF_CORE_FIELD_BYTE_OFFSET]
    return apply_core(spec, results, byteorder="little", source="core_loads"), results


def found_slot(function: str) -> int:
    spec = read_object(DATA / "core_loads.bpf.o").functions[function]
    return spec.core_relocations[0].offset // 8
