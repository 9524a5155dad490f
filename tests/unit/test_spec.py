"""Specs are data: changing one gives another."""

from __future__ import annotations

from pathlib import Path

import pytest

from purebpf.elf import read_object
from purebpf.errors import SchemaError
from purebpf.spec import MapSpec, ObjectSpec, VariableSpec
from tests.support.builders.btf_builder import BtfBuilder

DATA = Path(__file__).parents[1] / "data"


@pytest.fixture(scope="module")
def spec() -> ObjectSpec:
    return read_object(DATA / "elf_data.bpf.o")


@pytest.fixture(scope="module")
def maps() -> ObjectSpec:
    return read_object(DATA / "elf_maps.bpf.o")


def value(spec: ObjectSpec, name: str) -> bytes:
    variable = spec.variables[name]
    return spec.maps[variable.map].contents[variable.offset :][: variable.size]


def test_the_same_bytes_make_equal_specs(spec: ObjectSpec) -> None:
    assert read_object(DATA / "elf_data.bpf.o") == spec
    assert read_object(DATA / "elf_functions.bpf.o") != spec


def test_specs_are_frozen(spec: ObjectSpec) -> None:
    for frozen in (spec, spec.maps[".data"], spec.programs["use_everything"]):
        with pytest.raises(AttributeError):
            frozen.name = "other"  # type: ignore[misc]


def test_set_changes_a_copy(spec: ObjectSpec) -> None:
    changed = spec.set(target_pid=1234, level=-7, counter=1 << 40)
    assert int.from_bytes(value(changed, "target_pid"), "little") == 1234
    assert int.from_bytes(value(changed, "level"), "little", signed=True) == -7
    assert int.from_bytes(value(changed, "counter"), "little") == 1 << 40
    assert int.from_bytes(value(spec, "target_pid"), "little") == 42
    assert changed != spec
    assert changed.set(target_pid=42, level=-5, counter=0) == spec


def test_set_leaves_the_neighbours_alone(spec: ObjectSpec) -> None:
    changed = spec.set(flags=[9, 8, 7])
    assert value(changed, "flags") == b"\x09\x08\x07"
    for name in spec.variables.keys() - {"flags"}:
        assert value(changed, name) == value(spec, name)


def test_set_takes_values_of_any_type(spec: ObjectSpec) -> None:
    inner = {"tag": 1, "points": (-1, 2, 3)}
    record = {"total": 5, "inner": (inner, inner), "word": 6, "small": 7, "wide": 8}
    changed = spec.set(last=record | {"name": "five", "mood": 7})
    assert value(changed, "last")[:12] == b"\5\0\0\0\0\0\0\0\1\0\xff\xff"
    assert b"five\0" in value(changed, "last")
    assert value(spec.set(extra=b"\1\2\3\4"), "extra") == b"\1\2\3\4"


def test_a_mapping_changes_the_fields_that_it_names(spec: ObjectSpec) -> None:
    inner = {"tag": 1, "points": (-1, 2, 3)}
    whole = {"total": 5, "inner": (inner, inner), "word": 6, "small": 7, "wide": 8}
    before = spec.set(last=whole | {"name": "five", "mood": 7}).get("last")
    after = spec.set(last=before).set(last={"total": 9, "small": 1}).get("last")
    assert after == before._replace(total=9, small=1)
    problem = r"variable last: .* does not have a field 'totl'; it has"
    with pytest.raises(SchemaError, match=problem):
        spec.set(last={"totl": 1})


def test_structs_in_structs_and_members_of_unions_are_changed_by_name() -> None:
    b = BtfBuilder()
    u8, u32 = b.int("u8", 1), b.int("u32", 4)
    either = b.union("", [("word", u32), ("byte", u8)])
    inner = b.struct("inner", [("x", u32), ("y", u32)])
    cfg = b.struct("cfg", [("pid", u32), ("in", inner), ("", either)])
    variables = {"cfg": VariableSpec("cfg", ".data", 4, 16, cfg)}
    data = MapSpec(".data", 2, 4, 20, 1, section=".data", contents=bytes(range(20)))
    spec = ObjectSpec("x", "x", "little", "", {}, {}, {".data": data}, variables, btf=b.btf())
    changed = spec.set(cfg={"in": {"y": 7}, "byte": 9})
    assert changed.get("cfg") == (0x07060504, (0x0B0A0908, 7), 9, 9)
    assert changed.maps[".data"].contents[:4] == bytes(range(4))
    assert spec.get("cfg").pid == 0x07060504


def test_get_gives_what_set_was_given(spec: ObjectSpec) -> None:
    assert spec.set(target_pid=1234).get("target_pid") == 1234
    with pytest.raises(KeyError, match=r"unknown global variable 'target_pd'; similar: target_pid"):
        spec.get("target_pd")


@pytest.mark.parametrize("bad", [1 << 32, -1, "one", None, b"\1"])
def test_set_refuses_what_does_not_fit(spec: ObjectSpec, bad: object) -> None:
    with pytest.raises(SchemaError):
        spec.set(target_pid=bad)


def test_names_that_do_not_exist_come_with_similar_ones(spec: ObjectSpec) -> None:
    with pytest.raises(KeyError, match=r"unknown global variable 'target_pd'; similar: target_pid"):
        spec.set(target_pd=1)
    with pytest.raises(KeyError, match="unknown program 'use_everthing'; similar: use_everything"):
        spec.only("use_everthing")
    with pytest.raises(KeyError, match="unknown map 'zzz'; no similar name"):
        spec.resize(zzz=1)
    with pytest.raises(KeyError, match="unknown global variable 'secret'"):
        spec.set(secret=b"x")


def test_only_keeps_programs_and_wants_them() -> None:
    spec = read_object(DATA / "elf_functions.bpf.o")
    assert not spec.programs["optional"].autoload
    kept = spec.only("optional", "first")
    assert list(kept.programs) == ["optional", "first"]
    assert kept.programs["optional"].autoload
    assert kept.maps == spec.maps
    assert kept.functions == spec.functions


def test_only_empties_slots_of_programs_that_went(maps: ObjectSpec) -> None:
    assert maps.only("jump").maps["jumps"].initial == ()
    assert maps.only("jump", "target").maps["jumps"].initial == ((2, "target"),)
    assert maps.only("jump").maps["tree"].initial == maps.maps["tree"].initial


def test_resize_changes_the_named_maps_of_a_copy(maps: ObjectSpec) -> None:
    changed = maps.resize(typed=5, events=1 << 20)
    assert (changed.maps["typed"].max_entries, changed.maps["events"].max_entries) == (5, 1 << 20)
    assert maps.maps["typed"].max_entries == 1000
    assert list(changed.maps) == list(maps.maps)


@pytest.mark.parametrize("count", [-1, 1 << 32])
def test_resize_takes_counts(maps: ObjectSpec, count: int) -> None:
    with pytest.raises(SchemaError, match="map typed cannot have"):
        maps.resize(typed=count)


def test_a_data_section_that_does_not_end_with_an_array_keeps_its_size(spec: ObjectSpec) -> None:
    with pytest.raises(SchemaError, match=r"map \.data cannot be resized: its last variable"):
        spec.resize(**{".data": 2})


def test_specs_read_well(spec: ObjectSpec) -> None:
    assert repr(spec) == "<ObjectSpec elf_data: 1 programs, 7 maps, 10 variables>"
    text = str(spec).splitlines()
    assert text[0].endswith("elf_data.bpf.o (little-endian, license GPL)")
    size = spec.maps[".data"].value_size
    assert f"  map .data: ARRAY, key 4, value {size}, 1 entries, flags 0x400" in text
    assert "  variable target_pid: .rodata+0, 4 bytes" in text
    assert all(len(line) <= 100 for line in text[1:])
    assert len(repr(spec.maps[".bss"])) < 300, "contents are not printed"


def test_what_is_not_loaded_by_default_says_so() -> None:
    text = str(read_object(DATA / "elf_functions.bpf.o"))
    assert "program optional: ?tp/sched/sched_switch, 3 instructions, not loaded by default" in text


def test_a_map_needs_only_its_sizes() -> None:
    spec = MapSpec("m", 1, 4, 8, 16)
    assert (spec.flags, spec.numa_node, spec.inner, spec.initial) == (0, None, None, ())
