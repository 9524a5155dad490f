"""Tables of functions and variables of an arena, as an object declares them."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from purebpf.btf.types.kinds import Struct
from purebpf.elf import read_object
from purebpf.elf.container import ElfObject
from purebpf.errors import FormatError, LinkError
from purebpf.spec import MapSpec, RelocationKind

DATA = Path(__file__).parents[2] / "data"
OBJECT = DATA / "attach_struct_ops.bpf.o"
SPEC = read_object(OBJECT)
STRUCT_OPS, LINK = 26, 1 << 13


def functions(table: MapSpec) -> dict[int, str]:
    return dict(table.initial)


def test_each_variable_is_a_table() -> None:
    tables = {name: each for name, each in SPEC.maps.items() if each.type == STRUCT_OPS}
    assert list(tables) == ["plain", "linked", "successor", "newer"]
    assert {name: each.flags for name, each in tables.items()} == {
        "plain": 0,
        "linked": LINK,
        "successor": LINK,
        "newer": 0,
    }
    assert [name for name, each in tables.items() if each.autocreate] == ["plain"]
    assert {(each.key_size, each.max_entries) for each in tables.values()} == {(4, 1)}


def test_members_are_data_and_programs() -> None:
    plain = SPEC.maps["plain"]
    assert functions(plain) == {
        1: "on_ssthresh",
        2: "on_cong_avoid",
        3: "on_undo_cwnd",
        4: "on_init",
    }
    assert len(plain.contents) == plain.value_size == 56
    assert plain.contents[40:] == b"purebpf_plain".ljust(16, b"\0")
    assert not any(plain.contents[:40]), "pointers are zero"


def test_a_change_makes_another_spec() -> None:
    changed = SPEC.struct_ops("linked", flags=3, init=None, ssthresh="on_undo_cwnd")
    linked = changed.maps["linked"]
    assert linked.autocreate
    assert struct.unpack_from("<I", linked.contents) == (3,)
    assert functions(linked) == {1: "on_undo_cwnd", 2: "on_cong_avoid", 3: "on_undo_cwnd"}
    assert not SPEC.maps["linked"].autocreate
    assert 4 in functions(SPEC.maps["linked"])


def test_without_its_programs_a_table_has_empty_slots() -> None:
    assert functions(SPEC.only("on_init").maps["plain"]) == {4: "on_init"}


def symbol(data: bytes, name: str) -> int:
    """Where a symbol's entry is in the file: found by its name."""
    (headers,) = struct.unpack_from("<Q", data, 40)
    count, names = struct.unpack_from("<HH", data, 60)
    tables = [struct.unpack_from("<IIQQQQIIQQ", data, headers + 64 * n) for n in range(count)]
    (table,) = [each for each in tables if each[1] == 2]
    strings = tables[table[6]]
    for at in range(table[4], table[4] + table[5], 24):
        (offset,) = struct.unpack_from("<I", data, at)
        if data[strings[4] + offset :].startswith(f"{name}\0".encode()):
            return at
    raise KeyError(name, names)


def test_a_member_that_is_given_something_else() -> None:
    data = bytearray(OBJECT.read_bytes())
    at = symbol(bytes(data), "on_init")
    struct.pack_into("<Q", data, at + 8, 8)  # the address is within the function
    with pytest.raises((LinkError, FormatError)):
        read_object(bytes(data))


def test_a_pointer_that_is_not_a_functions_is_refused() -> None:
    data = bytearray(OBJECT.read_bytes())
    (headers,) = struct.unpack_from("<Q", data, 40)
    (count,) = struct.unpack_from("<H", data, 60)
    rows = [struct.unpack_from("<IIQQQQIIQQ", data, headers + 64 * n) for n in range(count)]
    names = {section.name: section.number for section in ElfObject(bytes(data), "it").sections}
    (table,) = [row for row in rows if row[1] == 9 and row[7] == names[".struct_ops"]]
    struct.pack_into("<Q", data, table[4], 2)  # from `ssthresh` into `flags`
    with pytest.raises(FormatError, match=r"\.struct_ops\+0x2: a pointer that is not a function's"):
        read_object(bytes(data))


def test_a_table_beyond_its_section_is_a_format_error() -> None:
    data, btf = OBJECT.read_bytes(), SPEC.btf
    assert btf is not None
    table = btf.type(SPEC.maps["plain"].value_type_id)
    assert isinstance(table, Struct)
    kind_and_count = 4 << 24 | len(table.members)
    stored = struct.pack("<II", kind_and_count, table.size)
    assert stored in data
    larger = struct.pack("<II", kind_and_count, 1 << 20)
    with pytest.raises(FormatError, match="struct_ops plain: goes beyond its section"):
        read_object(data.replace(stored, larger))


def test_a_member_beyond_its_struct_is_a_format_error() -> None:
    """Found by `mutate.py load`: a pointer of which the last bytes are not there."""
    data, btf = OBJECT.read_bytes(), SPEC.btf
    assert btf is not None
    table = btf.type(SPEC.maps["plain"].value_type_id)
    assert isinstance(table, Struct)
    (init,) = [each for each in table.members if each.name == "init"]
    stored = struct.pack("<II", init.type_id, init.bit_offset)
    assert data.count(stored) == 1
    moved = struct.pack("<II", init.type_id, 8 * (table.size - 1))
    with pytest.raises(FormatError, match="member init of struct_ops plain: goes beyond the str"):
        read_object(data.replace(stored, moved))


def test_variables_of_an_arena_are_at_its_start() -> None:
    spec = read_object(DATA / "load_arena.bpf.o")
    arena = spec.maps["arena"]
    assert struct.unpack_from("<I", arena.contents) == (7,)
    assert spec.variables["counter"].offset == 0
    references = spec.functions["bump"].relocations
    assert {(each.kind, each.target) for each in references} == {(RelocationKind.DATA, "arena")}
    changed = spec.set(counter=9).maps["arena"].contents
    assert struct.unpack_from("<I", changed) == (9,)
