"""Kernel symbols in instructions: found, missing, of vmlinux and of a module."""

from __future__ import annotations

from pathlib import Path

import pytest

from purebpf.abi.instruction import (
    CALL,
    EXIT,
    LD_IMM64,
    PSEUDO_BTF_ID,
    PSEUDO_CALL,
    PSEUDO_KFUNC_CALL,
    Instruction,
    pack,
    unpack,
)
from purebpf.elf import read_object
from purebpf.errors import FormatError, LinkError
from purebpf.relocate import LinkedProgram, Linker
from purebpf.relocate.externs import POISONED_KFUNC, ResolvedExtern
from purebpf.spec import (
    ExternSpec,
    FunctionSpec,
    ObjectSpec,
    ProgramSpec,
    Relocation,
    RelocationKind,
)

DATA = Path(__file__).parents[2] / "data"
LOAD = [Instruction(LD_IMM64, 3, 0, 0, 0), Instruction(0, 0, 0, 0, 0)]
CALLS = [Instruction(CALL, 0, PSEUDO_CALL, 0, -1)]
STOP = [Instruction(EXIT, 0, 0, 0, 0)]


def one(code: list[Instruction], *, weak: bool = False) -> ObjectSpec:
    """An object with one program; its first instruction refers to `symbol`."""
    reference = Relocation(0, RelocationKind.EXTERN, "symbol")
    main = FunctionSpec("main", "socket", 0, pack([*code, *STOP]), "global")
    return ObjectSpec(
        name="test",
        source="test.o",
        byteorder="little",
        license="GPL",
        programs={"main": ProgramSpec("main", "main", "socket", "socket", 1, 0)},
        functions={"main": main._replace(relocations=(reference,))},
        maps={},
        variables={},
        externs={"symbol": ExternSpec("symbol", ".ksyms", 0, weak)},
    )


def linked(
    code: list[Instruction], found: ResolvedExtern | None, *, weak: bool = False
) -> LinkedProgram:
    return Linker(one(code, weak=weak), [], lambda _extern: found).link("main")


def instructions(program: LinkedProgram) -> list[Instruction]:
    return unpack(program.bind({}))[:-1]


def test_a_variable_is_referred_to_by_its_type_and_the_btf_that_has_it() -> None:
    assert instructions(linked(LOAD, ResolvedExtern(type_id=77))) == [
        Instruction(LD_IMM64, 3, PSEUDO_BTF_ID, 0, 77),
        Instruction(0, 0, 0, 0, 0),
    ]
    assert instructions(linked(LOAD, ResolvedExtern(type_id=77, btf_fd=5)))[1].imm == 5


def test_an_untyped_symbol_is_its_address() -> None:
    assert instructions(linked(LOAD, ResolvedExtern(address=0xFFFFFFFF81234568))) == [
        Instruction(LD_IMM64, 3, 0, 0, 0x81234568 - (1 << 32)),
        Instruction(0, 0, 0, 0, -1),
    ]


def test_a_kernel_function_is_called_by_its_type_and_the_slot_of_its_btf() -> None:
    called = instructions(linked(CALLS, ResolvedExtern(type_id=77, btf_fd=5, slot=2)))
    assert called == [Instruction(CALL, 0, PSEUDO_KFUNC_CALL, 2, 77)]


def test_what_is_missing_and_weak_is_0_and_calls_of_it_are_poisoned() -> None:
    assert instructions(linked(LOAD, None, weak=True)) == LOAD
    program = linked(CALLS, None, weak=True)
    assert instructions(program) == [Instruction(CALL, 0, 0, 0, POISONED_KFUNC)]
    assert program.poisoned == {
        0: "it calls symbol(), a kernel function that this kernel does not have"
    }


@pytest.mark.parametrize("code", [LOAD, CALLS])
def test_what_is_missing_and_not_weak_is_an_error_that_names_it(code: list[Instruction]) -> None:
    with pytest.raises(LinkError, match="main needs it, this kernel has no such") as caught:
        linked(code, None)
    assert caught.value.symbol == "symbol"


def test_an_instruction_that_refers_to_nothing() -> None:
    with pytest.raises(FormatError, match="neither for a call nor for an ld_imm64"):
        linked(STOP, ResolvedExtern(type_id=1))


def test_an_extern_that_the_object_does_not_declare() -> None:
    spec = one(LOAD)._replace(externs={})
    with pytest.raises(LinkError, match="main needs this extern, which is not defined"):
        Linker(spec, []).link("main")


def test_only_what_a_program_refers_to_is_asked_for() -> None:
    spec = read_object(DATA / "load_ksyms.bpf.o")
    asked = []

    def externs(extern: ExternSpec) -> ResolvedExtern:
        asked.append(extern.name)
        return ResolvedExtern(address=1)

    Linker(spec, [], externs).link("use_symbols")
    assert set(asked) == {"schedule", "no_such_variable", "no_such_symbol"}
