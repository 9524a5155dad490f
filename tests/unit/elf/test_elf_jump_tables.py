"""Jump tables: read by function, and refused when they lead elsewhere."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from purebpf.abi.instruction import LD_IMM64
from purebpf.elf import read_object
from purebpf.errors import FormatError, LinkError
from purebpf.spec import Relocation, RelocationKind
from tests.support.builders import elf_builder as e
from tests.support.builders.elf_builder import ElfBuilder

OBJECT = Path(__file__).parents[2] / "data/load_jump_tables.bpf.o"


def built(
    places: tuple[int, ...] = (24, 40), *, start: int = 0, size: int = 16, imm: int = 0
) -> bytes:
    """An object with one function, `start` bytes into its section, that refers to one table."""
    made = ElfBuilder()
    load = e.LOAD[:4] + struct.pack("<i", imm) + e.LOAD[8:]
    code = load + e.EXIT * 2
    main = made.section("socket", bytes(start) + code, flags=e.EXECUTABLE)
    made.symbol("main", main, start, len(code))
    tables = made.section(".jumptables", struct.pack(f"<{len(places)}Q", *places))
    table = made.symbol("BPF.JT.0.0", tables, 0, size, kind=e.OBJECT)
    made.relocate(main, (start, 1, table))
    return made.build()


def test_tables_of_clang_lead_to_instructions_of_their_function() -> None:
    spec = read_object(OBJECT)
    tables = {name: each.jump_tables for name, each in spec.functions.items()}
    assert {name: [*map(len, each.values())] for name, each in tables.items()} == {
        "shared": [15],
        "first": [14],
        "second": [14],
    }
    for name, function in spec.functions.items():
        wide = {at + 8 for at in range(0, len(function.code), 8) if function.code[at] == LD_IMM64}
        (places,) = function.jump_tables.values()
        assert all(not place % 8 and place < len(function.code) for place in places)
        assert not wide & set(places), f"{name}: into the middle of an instruction"
        found = [r for r in function.relocations if r.kind is RelocationKind.JUMP_TABLE]
        assert [each.target for each in found] == list(function.jump_tables)


@pytest.mark.parametrize("start", [0, 16])
def test_places_count_from_the_function(start: int) -> None:
    main = read_object(built((start + 24, start + 40), start=start)).functions["main"]
    assert main.jump_tables == {"BPF.JT.0.0": (24, 40)}
    assert main.relocations == (Relocation(0, RelocationKind.JUMP_TABLE, "BPF.JT.0.0", 0),)


def test_a_reference_may_be_to_a_later_entry() -> None:
    (found,) = read_object(built(imm=8)).functions["main"].relocations
    assert found.addend == 8


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        (built((24, 48)), "leads to socket+0x30, outside of the function"),
        (built((24, 25)), "leads to socket+0x19, outside of the function"),
        (built((8, 24), start=16), "leads to socket+0x8, outside of the function"),
        (built(size=24), "24 bytes at 0x0 of 16"),
        (built(size=12), "12 bytes at 0x0 are not whole entries"),
    ],
)
def test_broken_tables_say_where(source: bytes, problem: str) -> None:
    with pytest.raises(FormatError) as caught:
        read_object(source)
    assert "jump table BPF.JT.0.0 of main" in str(caught.value)
    assert problem in str(caught.value)


@pytest.mark.parametrize("imm", [16, 4, -8])
def test_there_is_an_entry_where_the_instruction_says(imm: int) -> None:
    with pytest.raises(LinkError, match="has no entry at"):
        read_object(built(imm=imm))


def test_a_table_without_a_size_is_none() -> None:
    with pytest.raises(LinkError, match="has no entry at"):
        read_object(built(size=0))
