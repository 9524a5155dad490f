"""Data sections, variables, and pointers without relocation."""

from __future__ import annotations

from pathlib import Path

import pytest

from purebpf.btf.types.kinds import Datasec, Kind
from purebpf.elf import read_object
from purebpf.spec import ObjectSpec, RelocationKind

DATA = Path(__file__).parents[2] / "data"
RDONLY_PROG, MMAPABLE = 0x80, 0x400


@pytest.fixture(scope="module")
def spec() -> ObjectSpec:
    return read_object(DATA / "elf_data.bpf.o")


def test_sections_become_maps(spec: ObjectSpec) -> None:
    assert {name: (m.flags, m.frozen) for name, m in spec.maps.items()} == {
        ".rodata": (RDONLY_PROG | MMAPABLE, True),
        ".rodata.tuning": (RDONLY_PROG | MMAPABLE, True),
        ".rodata.str1.1": (RDONLY_PROG, True),
        ".data": (MMAPABLE, False),
        ".data.extra": (MMAPABLE, False),
        ".bss": (MMAPABLE, False),
        ".bss.hidden": (0, False),
    }
    for name, found in spec.maps.items():
        assert (found.type, found.key_size, found.max_entries) == (2, 4, 1)
        assert found.section == name
        assert len(found.contents) == found.value_size


def test_types_of_sections_are_complete(spec: ObjectSpec) -> None:
    assert spec.btf is not None
    assert spec.maps[".rodata.str1.1"].value_type_id == 0
    for name in (".rodata", ".data", ".bss", ".data.extra", ".bss.hidden"):
        found = spec.btf.type(spec.maps[name].value_type_id)
        assert isinstance(found, Datasec)
        assert (found.name, found.size) == (name, spec.maps[name].value_size)
        offsets = [entry.offset for entry in found.entries]
        assert offsets == sorted(offsets)
        ends = [entry.offset + entry.size for entry in found.entries]
        assert all(end <= start for end, start in zip(ends, offsets[1:], strict=False))


def test_variables_have_their_map_and_size(spec: ObjectSpec) -> None:
    assert spec.btf is not None
    assert {name: (v.map, v.size) for name, v in spec.variables.items()} == {
        "target_pid": (".rodata", 4),
        "expected": (".rodata", 56),
        "counter": (".bss", 8),
        "last": (".bss", 56),
        "table": (".bss", 4000),
        "level": (".data", 8),
        "flags": (".data", 3),
        "maybe": (".data", 4),
        "extra": (".data.extra", 4),
        "tuning": (".rodata.tuning", 4),
    }
    for variable in spec.variables.values():
        assert spec.btf.sizeof(variable.type_id) == variable.size


def test_variables_have_their_first_values(spec: ObjectSpec) -> None:
    def value(name: str) -> bytes:
        variable = spec.variables[name]
        contents = spec.maps[variable.map].contents
        return contents[variable.offset : variable.offset + variable.size]

    assert int.from_bytes(value("target_pid"), "little") == 42
    assert int.from_bytes(value("level"), "little", signed=True) == -5
    assert value("flags") == b"\1\2\3"
    assert int.from_bytes(value("maybe"), "little") == 11
    assert b"nine\0" in value("expected")
    assert not any(spec.maps[".bss"].contents)
    assert spec.maps[".rodata.str1.1"].contents == b"a string literal of its own\0"


def test_addresses_are_places_in_a_map(spec: ObjectSpec) -> None:
    assert spec.btf is not None
    places = {
        (r.target, r.addend)
        for r in spec.functions["use_everything"].relocations
        if r.kind is RelocationKind.DATA
    }
    for name in ("counter", "target_pid", "extra", "tuning"):
        variable = spec.variables[name]
        assert (variable.map, variable.offset) in places
    assert (".rodata.str1.1", 0) in places
    data = spec.btf.type(spec.maps[".data"].value_type_id)
    assert isinstance(data, Datasec)
    static = {spec.btf.name(e.type_id): e.offset for e in data.entries}["private_level"]
    assert (".data", static) in places


def test_without_btf_there_are_maps_but_no_variables() -> None:
    plain = read_object(DATA / "elf_no_btf.bpf.o")
    full = read_object(DATA / "elf_data.bpf.o")
    assert plain.btf is None
    assert plain.variables == {}
    assert {n: m.contents for n, m in plain.maps.items()} == {
        n: m.contents for n, m in full.maps.items()
    }
    assert plain.maps[".data"].flags == 0
    (program,) = plain.functions.values()
    assert program.relocations == full.functions[program.name].relocations


def test_pointers_in_data_are_warned_about() -> None:
    with pytest.warns(RuntimeWarning, match=r"elf_pointers.bpf.o: .data holds 2 pointers"):
        spec = read_object(DATA / "elf_pointers.bpf.o")
    assert spec.maps[".data"].contents == bytes(16)


def test_every_section_of_variables_is_complete_in_btf(spec: ObjectSpec) -> None:
    assert spec.btf is not None
    datasecs = [i for i in range(1, len(spec.btf)) if spec.btf.kind(i) is Kind.DATASEC]
    assert {spec.btf.name(i) for i in datasecs} >= {"license", ".rodata", ".bss.hidden"}
    for i in datasecs:
        found = spec.btf.type(i)
        assert isinstance(found, Datasec)
        assert found.size >= max(e.offset + e.size for e in found.entries)
