"""Programs, subprograms and what they refer to, in objects of clang and of bpftool's linker."""

from __future__ import annotations

from pathlib import Path

import pytest

from purebpf.abi.instruction import CALL, LD_IMM64, unpack
from purebpf.elf import read_object
from purebpf.spec import ObjectSpec, RelocationKind

DATA = Path(__file__).parents[2] / "data"


@pytest.fixture(scope="module")
def spec() -> ObjectSpec:
    return read_object(DATA / "elf_functions.bpf.o")


def targets(spec: ObjectSpec, function: str) -> list[tuple[RelocationKind, str]]:
    return [(r.kind, r.target) for r in spec.functions[function].relocations]


def test_programs_have_what_their_section_says(spec: ObjectSpec) -> None:
    found = {p.name: (p.sec_prefix, p.attach_target, p.autoload) for p in spec.programs.values()}
    assert found == {
        "first": ("tp", "sched/sched_switch", True),
        "second": ("tp", "sched/sched_switch", True),
        "optional": ("tp", "sched/sched_switch", False),
        "with_callback": ("raw_tp", "sched_switch", True),
        "unknown": ("", "", True),
        "lenient": ("socket", "", True),
    }
    assert {spec.programs[name].type for name in ("first", "second", "optional")} == {5}
    assert spec.programs["unknown"].type == 0
    assert spec.license == "Dual MIT/GPL"


def test_functions_have_their_linkage(spec: ObjectSpec) -> None:
    assert {f.name: f.linkage for f in spec.functions.values() if f.name not in spec.programs} == {
        "in_text": "static",
        "global_in_text": "global",
        "hidden_in_text": "static",
        "weak_in_text": "weak",
        "on_loop": "static",
        "elsewhere": "static",
        "global_elsewhere": "global",
    }
    assert spec.functions["elsewhere"].section == "subprograms"


def test_functions_of_a_section_follow_each_other(spec: ObjectSpec) -> None:
    first, second = spec.functions["first"], spec.functions["second"]
    assert first.section_offset == 0
    assert second.section_offset == len(first.code)
    assert first.code[-8] == second.code[-8] == 0x95


def test_calls_by_section_by_name_and_without_relocation(spec: ObjectSpec) -> None:
    call, data = RelocationKind.CALL, RelocationKind.DATA
    assert targets(spec, "first") == [(call, "in_text"), (call, "global_in_text")]
    assert targets(spec, "second") == [(call, "hidden_in_text"), (call, "weak_in_text")]
    assert targets(spec, "global_in_text") == [(call, "in_text")]
    assert targets(spec, "elsewhere") == [(data, ".bss"), (call, "global_in_text")]
    assert targets(spec, "optional") == [(call, "global_elsewhere")]
    assert targets(spec, "global_elsewhere") == [(call, "elsewhere")]


def test_a_callback_is_a_reference_to_its_function(spec: ObjectSpec) -> None:
    assert targets(spec, "with_callback") == [(RelocationKind.FUNCTION, "on_loop")]


@pytest.mark.parametrize("name", ["elf_functions", "elf_big_endian", "elf_linked", "elf_core"])
def test_references_stand_where_an_instruction_can_refer(name: str) -> None:
    spec = read_object(DATA / f"{name}.bpf.o")
    for function in spec.functions.values():
        code = unpack(function.code, spec.byteorder)
        calls = {i * 8 for i, insn in enumerate(code) if insn.opcode == CALL and insn.src == 1}
        found = {r.offset: r.kind for r in function.relocations}
        assert calls == {o for o, kind in found.items() if kind is RelocationKind.CALL}
        others = {code[o // 8].opcode for o in found if o not in calls}
        assert others <= {LD_IMM64}


def test_both_byte_orders_say_the_same(spec: ObjectSpec) -> None:
    big = read_object(DATA / "elf_big_endian.bpf.o")
    assert big.byteorder == "big"
    assert big.programs == spec.programs
    assert big.maps.keys() == spec.maps.keys()
    for name, function in spec.functions.items():
        swapped = big.functions[name]
        assert swapped.relocations == function.relocations
        assert [line.offset for line in swapped.line_info] == [
            line.offset for line in function.line_info
        ]
        assert unpack(swapped.code, "big") == unpack(function.code, "little")


def test_functions_know_their_types(spec: ObjectSpec) -> None:
    assert spec.btf is not None
    for function in spec.functions.values():
        assert spec.btf.name(function.type_id) == function.name


def test_hidden_functions_are_static_in_btf(spec: ObjectSpec) -> None:
    assert spec.btf is not None
    linkage = {
        function.name: spec.btf.type(function.type_id).linkage.name  # type: ignore[union-attr]
        for function in spec.functions.values()
    }
    assert linkage["hidden_in_text"] == linkage["in_text"] == "STATIC"
    assert linkage["global_in_text"] == linkage["weak_in_text"] == linkage["first"] == "GLOBAL"


def test_lines_start_each_function(spec: ObjectSpec) -> None:
    assert spec.btf is not None
    for function in spec.functions.values():
        assert function.line_info[0].offset == 0
        assert all(line.offset < len(function.code) for line in function.line_info)
        file_name = spec.btf.string(function.line_info[0].file_name)
        assert file_name == "./tests/data/elf_functions.bpf.c"
    line = spec.functions["unknown"].line_info[-1]
    assert spec.btf.string(line.line).strip() == "return 0;"
    source = (DATA / "elf_functions.bpf.c").read_text().splitlines()
    assert source[(line.line_col >> 10) - 1].strip() == "return 0;"


def test_linked_objects_have_functions_of_the_same_name() -> None:
    spec = read_object(DATA / "elf_linked.bpf.o")
    call = RelocationKind.CALL
    one, other = [key for key, f in spec.functions.items() if f.name == "same_name"]
    assert one == "same_name"
    assert other == f"same_name@.text+{spec.functions[other].section_offset:#x}"
    assert (call, one) in targets(spec, "entry_a")
    assert (call, other) in targets(spec, "entry_b")
    assert (call, other) in targets(spec, "from_b")


def test_a_weak_function_that_lost_is_not_there() -> None:
    spec = read_object(DATA / "elf_linked.bpf.o")
    assert spec.functions["overridden"].linkage == "global"
    text = [f for f in spec.functions.values() if f.section == ".text"]
    end = max(f.section_offset + len(f.code) for f in text)
    assert sum(len(f.code) for f in text) < end, "the weak function's code is in the section"


def test_an_object_without_a_license_has_an_empty_one() -> None:
    assert read_object(DATA / "elf_unlicensed.bpf.o").license == ""
