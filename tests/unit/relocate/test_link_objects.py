"""Linking what clang makes, where libbpf cannot be asked: odd sections, the other byte order."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from purebpf.abi.instruction import CALL, LD_IMM64, PSEUDO_CALL, PSEUDO_FUNC, unpack
from purebpf.elf import read_object
from purebpf.relocate import LinkedProgram, Linker
from purebpf.spec import ObjectSpec, RelocationKind

DATA = Path(__file__).parents[2] / "data"


def linked(name: str) -> tuple[ObjectSpec, list[LinkedProgram]]:
    spec = read_object(DATA / name)
    linker = Linker(spec, [])
    return spec, [linker.link(program) for program in spec.programs]


@pytest.mark.parametrize("name", ["elf_functions.bpf.o", "elf_big_endian.bpf.o"])
def test_every_call_leads_to_the_function_it_names(name: str) -> None:
    spec, programs = linked(name)
    seen = 0
    for program in programs:
        code = unpack(program.code, spec.byteorder)
        for key, start in program.functions.items():
            for relocation in spec.functions[key].relocations:
                slot = start + relocation.offset // 8
                if relocation.kind in (RelocationKind.CALL, RelocationKind.FUNCTION):
                    assert (code[slot].opcode, code[slot].src) in (
                        (CALL, PSEUDO_CALL),
                        (LD_IMM64, PSEUDO_FUNC),
                    )
                    assert slot + 1 + code[slot].imm == program.functions[relocation.target]
                    seen += 1
    assert seen


@pytest.mark.parametrize("name", ["elf_functions.bpf.o", "elf_big_endian.bpf.o"])
def test_the_tables_are_in_the_objects_byte_order(name: str) -> None:
    spec, programs = linked(name)
    order = "<" if spec.byteorder == "little" else ">"
    for program in programs:
        starts = [start for start, _ in struct.iter_unpack(order + "II", program.func_info)]
        assert starts == list(program.functions.values())
        lines = [line for line, *_ in struct.iter_unpack(order + "IIII", program.line_info)]
        assert lines == sorted(set(lines))
        assert set(starts) <= set(lines)


def test_map_references_are_bound_in_the_objects_byte_order() -> None:
    spec, programs = linked("elf_big_endian.bpf.o")
    bound = 0
    for program in programs:
        code = unpack(program.bind(dict.fromkeys(program.maps, 0x1234)), spec.byteorder)
        for reference in program.references:
            first, second = code[reference.slot : reference.slot + 2]
            assert (first.src, first.imm) == (1 + (reference.kind is RelocationKind.DATA), 0x1234)
            assert second.imm == reference.offset
            bound += 1
    assert bound
