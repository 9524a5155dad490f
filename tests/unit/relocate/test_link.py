"""Linking of specs that the test builds: places of functions, distances, tables, map references."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import pytest

from purebpf.abi.bpf import bpf_core_relo_kind
from purebpf.abi.instruction import CALL, EXIT, LD_IMM64, Instruction, pack, unpack
from purebpf.btf.types.parse import Btf
from purebpf.errors import CoreRelocationError, FormatError, LinkError
from purebpf.relocate import LinkedProgram, Linker, Reference
from purebpf.spec import (
    CoreRelocation,
    FunctionSpec,
    LineInfo,
    MapSpec,
    ObjectSpec,
    ProgramSpec,
    Relocation,
    RelocationKind,
)
from tests.support.builders.btf_builder import BtfBuilder

MOV64 = 0xB7


def link(spec: ObjectSpec, program: str, targets: list[Btf]) -> LinkedProgram:
    return Linker(spec, targets).link(program)


def function(name: str, *parts: object, **more: Any) -> FunctionSpec:
    """A function of `parts`: a number of filler instructions, or a relocation's kind and target."""
    code: list[Instruction] = []
    relocations = []
    for part in parts:
        if isinstance(part, int):
            code += [Instruction(MOV64, 0, 0, 0, part)] * part
            continue
        kind, target, *addend = part  # type: ignore[misc]
        relocations.append(Relocation(8 * len(code), RelocationKind(kind), target, *addend))
        if kind == "call":
            code.append(Instruction(CALL, 0, 1, 0, -1))
        else:
            code += [Instruction(LD_IMM64, 1, 0, 0, 123), Instruction(0, 0, 0, 0, 0)]
    code.append(Instruction(EXIT, 0, 0, 0, 0))
    return FunctionSpec(
        name,
        "text",
        0,
        more.pop("code", pack(code)),
        "global",
        relocations=more.pop("relocations", tuple(relocations)),
        **more,
    )


def spec_of(
    *functions: FunctionSpec, maps: tuple[str, ...] = (), btf: Btf | None = None
) -> ObjectSpec:
    """An object with, as its programs, the functions with names in capitals."""
    return ObjectSpec(
        name="test",
        source="test.o",
        byteorder="little",
        license="GPL",
        programs={
            f.name: ProgramSpec(f.name, f.name, "socket", "socket", 1, 0)
            for f in functions
            if f.name.isupper()
        },
        functions={f.name: f for f in functions},
        maps={name: MapSpec(name, 2, 4, 4, 1) for name in maps},
        variables={},
        btf=btf,
    )


def call_targets(code: bytes) -> dict[int, int]:
    """Where each call and callback address leads, by its slot."""
    return {
        slot: slot + 1 + i.imm
        for slot, i in enumerate(unpack(code))
        if (i.opcode, i.src) in ((CALL, 1), (LD_IMM64, 4))
    }


def test_a_program_alone_is_its_code() -> None:
    main = function("MAIN", 3)
    linked = link(spec_of(main), "MAIN", [])
    assert linked.code == linked.bind({}) == main.code
    assert linked.functions == {"MAIN": 0}
    assert linked.maps == frozenset()


def test_functions_are_placed_once_in_the_order_they_are_reached() -> None:
    spec = spec_of(
        function("c", 5),
        function("b", ("call", "c"), 1),
        function("a", 1, ("call", "b"), ("call", "c")),
        function("unused", 1),
        function("MAIN", 2, ("call", "a"), ("call", "c"), ("call", "a")),
    )

    linked = link(spec, "MAIN", [])

    assert list(linked.functions) == ["MAIN", "a", "b", "c"]
    main, a, b, c = linked.functions.values()
    assert (main, a, b, c) == (0, 6, 10, 13)
    assert call_targets(linked.code) == {2: a, 3: c, 4: a, a + 1: b, a + 2: c, b: c}
    assert len(linked.code) == 8 * (13 + 6)


def test_each_program_has_its_own_copies() -> None:
    spec = spec_of(
        function("shared", 1),
        function("ONE", ("call", "shared")),
        function("TWO", 4, ("call", "shared")),
    )
    linker = Linker(spec, [])
    assert linker.link("ONE").functions == {"ONE": 0, "shared": 2}
    assert linker.link("TWO").functions == {"TWO": 0, "shared": 6}


def test_functions_that_call_each_other_are_placed_once() -> None:
    spec = spec_of(
        function("a", ("call", "b")),
        function("b", ("call", "a"), ("call", "MAIN")),
        function("MAIN", ("call", "a"), ("call", "MAIN")),
    )
    linked = link(spec, "MAIN", [])
    assert linked.functions == {"MAIN": 0, "a": 3, "b": 5}
    assert call_targets(linked.code) == {0: 3, 1: 0, 3: 5, 5: 3, 6: 0}


def test_a_long_chain_of_calls_does_not_exhaust_the_stack() -> None:
    chain = [function(f"f{n}", ("call", f"f{n + 1}")) for n in range(5000)]
    spec = spec_of(function("MAIN", ("call", "f0")), *chain, function("f5000", 1))
    assert len(link(spec, "MAIN", []).functions) == 5002


def test_callbacks_are_appended_and_addressed() -> None:
    spec = spec_of(function("MAIN", 1, ("function", "callback"), 1), function("callback", 1))

    linked = link(spec, "MAIN", [])

    load, second = unpack(linked.code)[1:3]
    assert (load.opcode, load.src, second.imm) == (LD_IMM64, 4, 0)
    assert call_targets(linked.code) == {1: linked.functions["callback"]}


def test_map_references_are_named_then_bound() -> None:
    spec = spec_of(
        function("sub", 1, ("data", ".bss", 12)),
        function("MAIN", ("map", "counts"), ("call", "sub")),
        maps=("counts", ".bss"),
    )

    linked = link(spec, "MAIN", [])

    sub = linked.functions["sub"]
    assert linked.references == (
        Reference(0, RelocationKind.MAP, "counts"),
        Reference(sub + 1, RelocationKind.DATA, ".bss", 12),
    )
    assert linked.maps == {"counts", ".bss"}
    code = unpack(linked.bind({"counts": 7, ".bss": 9, "other": 11}))
    assert code[0:2] == [Instruction(LD_IMM64, 1, 1, 0, 7), Instruction(0, 0, 0, 0, 0)]
    assert code[sub + 1 : sub + 3] == [
        Instruction(LD_IMM64, 1, 2, 0, 9),
        Instruction(0, 0, 0, 0, 12),
    ]


def test_binding_needs_every_map() -> None:
    linked = link(spec_of(function("MAIN", ("map", "m")), maps=("m",)), "MAIN", [])
    with pytest.raises(LinkError, match=r"test\.o: m: program MAIN needs this map"):
        linked.bind({})


def test_references_to_nothing_are_refused() -> None:
    with pytest.raises(LinkError, match="counts: MAIN needs this map"):
        link(spec_of(function("MAIN", ("map", "counts"))), "MAIN", [])
    with pytest.raises(LinkError, match="sub: MAIN needs this function"):
        link(spec_of(function("MAIN", ("call", "sub"))), "MAIN", [])
    with pytest.raises(KeyError):
        link(spec_of(function("MAIN", 1)), "OTHER", [])


def test_jump_tables_move_with_their_function() -> None:
    table = ("jump table", "BPF.JT.0.0", 8)
    sub = function("sub", 1, table, jump_tables={"BPF.JT.0.0": (0, 24)})
    main = function("MAIN", 5, ("call", "sub"), table, jump_tables={"BPF.JT.0.0": (32,)})
    linked = link(spec_of(main, sub), "MAIN", [])

    start = linked.functions["sub"]
    assert linked.jump_tables == {"MAIN:BPF.JT.0.0": (4,), "sub:BPF.JT.0.0": (start, start + 3)}
    assert linked.references == (
        Reference(6, RelocationKind.JUMP_TABLE, "MAIN:BPF.JT.0.0", 8),
        Reference(start + 1, RelocationKind.JUMP_TABLE, "sub:BPF.JT.0.0", 8),
    )
    assert linked.maps == frozenset()
    code = unpack(linked.bind({"MAIN:BPF.JT.0.0": 33, "sub:BPF.JT.0.0": 44}))
    assert [(i.src, i.imm) for i in code[6:8]] == [(2, 33), (0, 8)]
    assert [(i.src, i.imm) for i in code[start + 1 : start + 3]] == [(2, 44), (0, 8)]


def test_a_jump_table_must_be_the_functions_own() -> None:
    main = function("MAIN", ("jump table", "BPF.JT.0.0"))
    with pytest.raises(LinkError, match="needs this jump table, which is not defined"):
        link(spec_of(main), "MAIN", [])


def test_externs_of_other_programs_do_not_matter() -> None:
    spec = spec_of(function("ONE", ("extern", "symbol")), function("TWO", 1))
    assert link(spec, "TWO", []).functions == {"TWO": 0}


@pytest.mark.parametrize(
    ("relocation", "code"),
    [
        (Relocation(0, RelocationKind.CALL, "MAIN"), [Instruction(CALL, 0, 0, 0, 5)]),
        (Relocation(0, RelocationKind.CALL, "MAIN"), [Instruction(EXIT, 0, 0, 0, 0)]),
        (Relocation(0, RelocationKind.FUNCTION, "MAIN"), [Instruction(EXIT, 0, 0, 0, 0)]),
        (Relocation(0, RelocationKind.MAP, "m"), [Instruction(LD_IMM64, 0, 0, 0, 0)]),
        (Relocation(4, RelocationKind.MAP, "m"), [Instruction(EXIT, 0, 0, 0, 0)]),
        (Relocation(8, RelocationKind.MAP, "m"), [Instruction(EXIT, 0, 0, 0, 0)]),
    ],
)
def test_a_relocation_must_suit_its_instruction(
    relocation: Relocation, code: list[Instruction]
) -> None:
    main = function("MAIN", code=pack(code), relocations=(relocation,))
    with pytest.raises(FormatError, match="function MAIN"):
        link(spec_of(main, maps=("m",)), "MAIN", [])


# The tables


def lines(*offsets: int) -> tuple[LineInfo, ...]:
    return tuple(LineInfo(8 * slot, 100, 200 + slot, slot << 10) for slot in offsets)


def test_functions_and_lines_move_with_their_code() -> None:
    spec = spec_of(
        function("sub", 3, type_id=22, line_info=lines(0, 2)),
        function("MAIN", 1, ("call", "sub"), type_id=11, line_info=lines(0, 1)),
    )
    linked = link(spec, "MAIN", [])
    assert list(struct.iter_unpack("<II", linked.func_info)) == [(0, 11), (3, 22)]
    assert list(struct.iter_unpack("<IIII", linked.line_info)) == [
        (0, 100, 200, 0),
        (1, 100, 201, 1 << 10),
        (3, 100, 200, 0),
        (5, 100, 202, 2 << 10),
    ]


def test_one_function_without_a_type_leaves_no_function_table() -> None:
    spec = spec_of(
        function("sub", 1, line_info=lines(0)),
        function("MAIN", ("call", "sub"), type_id=11, line_info=lines(0)),
    )
    assert link(spec, "MAIN", []).func_info == b""


@pytest.mark.parametrize("sub_lines", [(), lines(1)])
def test_a_function_that_starts_without_a_line_leaves_no_line_table(
    sub_lines: tuple[LineInfo, ...],
) -> None:
    spec = spec_of(
        function("sub", 3, type_id=22, line_info=sub_lines),
        function("MAIN", ("call", "sub"), type_id=11, line_info=lines(0)),
    )
    linked = link(spec, "MAIN", [])
    assert linked.line_info == b""
    assert linked.func_info


# CO-RE


def core_object(*, candidates: int = 1) -> tuple[ObjectSpec, Btf]:
    """Programs that ask for `s.first` (slot 0 of ONE), `s.gone` (slot 1 of sub, called by TWO)."""
    local, target = BtfBuilder(), BtfBuilder()
    integer = local.int("int", 4)
    struct_id = local.struct("s", [("first", integer), ("gone", integer)])
    integer = target.int("int", 4)
    for number in range(candidates):
        pads = [(f"pad{n}", integer) for n in range(number + 1)]
        target.struct("s", [*pads, ("first", integer)])

    def asking(name: str, *parts: object, member: int, slot: int) -> FunctionSpec:
        offset = bpf_core_relo_kind.BPF_CORE_FIELD_BYTE_OFFSET
        core = CoreRelocation(8 * slot, struct_id, f"0:{member}", offset)
        load = Instruction(0x61, 0, 1, 4 * member, 0)
        rest = function(name, *parts)
        code = bytearray(rest.code)
        code[8 * slot : 8 * slot + 8] = pack([load])
        return function(
            name, code=bytes(code), relocations=rest.relocations, core_relocations=(core,)
        )

    spec = spec_of(
        asking("ONE", 1, member=0, slot=0),
        asking("sub", 2, member=1, slot=1),
        function("TWO", 4, ("call", "sub")),
        function("NONE", 1),
        btf=local.btf(),
    )
    return spec, target.btf()


def test_core_relocations_are_applied() -> None:
    spec, target = core_object()
    linked = link(spec, "ONE", [target])
    assert unpack(linked.code)[0].offset == 4
    assert linked.poisoned == {}


def test_poisoned_instructions_are_explained_by_their_final_slot() -> None:
    spec, target = core_object()
    linked = link(spec, "TWO", [target])
    slot = linked.functions["sub"] + 1
    assert linked.poisoned == {slot: "struct s.gone: no such field on this kernel"}
    assert unpack(linked.code)[slot] == Instruction(CALL, 0, 0, 0, 0xBAD2310)


def test_ambiguity_only_fails_the_programs_that_meet_it() -> None:
    spec, target = core_object(candidates=2)
    linker = Linker(spec, [target])
    assert linker.link("TWO").poisoned
    with pytest.raises(CoreRelocationError, match="ambiguous"):
        linker.link("ONE")


def test_targets_are_obtained_once_and_only_when_needed() -> None:
    spec, target = core_object()
    asked: list[str] = []

    def targets() -> Iterator[Btf]:
        asked.append("vmlinux")
        yield target

    linker = Linker(spec, targets)
    linker.link("NONE")
    assert asked == []
    linker.link("ONE")
    linker.link("TWO")
    assert asked == ["vmlinux"]


def test_core_relocations_without_btf_are_refused() -> None:
    spec, target = core_object()
    untyped = spec_of(*spec.functions.values())
    with pytest.raises(FormatError, match="the object has no BTF"):
        link(untyped, "ONE", [target])
    assert link(untyped, "NONE", [target]).code
