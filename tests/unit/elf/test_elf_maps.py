"""Maps as they are declared in C."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from purebpf.abi.bpf import bpf_map_type
from purebpf.btf.types.kinds import Struct
from purebpf.elf import read_object
from purebpf.errors import FormatError, LinkError
from purebpf.spec import MapSpec, ObjectSpec, RelocationKind

DATA = Path(__file__).parents[2] / "data"


@pytest.fixture(scope="module")
def spec() -> ObjectSpec:
    return read_object(DATA / "elf_maps.bpf.o")


def shape(found: MapSpec) -> tuple[str, int, int, int, int]:
    kind = bpf_map_type(found.type).name.removeprefix("BPF_MAP_TYPE_")
    return kind, found.key_size, found.value_size, found.max_entries, found.flags


def test_maps_have_their_sizes_and_flags(spec: ObjectSpec) -> None:
    assert {name: shape(found) for name, found in spec.maps.items()} == {
        "typed": ("HASH", 16, 8, 1000, 1 | 4),
        "sized": ("LRU_HASH", 12, 24, 7, 0),
        "both": ("ARRAY", 4, 64, 2, 0),
        "leaf_a": ("ARRAY", 4, 4, 16, 0),
        "leaf_b": ("ARRAY", 4, 4, 16, 0),
        "tree": ("ARRAY_OF_MAPS", 4, 4, 4, 0),
        "rings": ("HASH_OF_MAPS", 4, 4, 8, 0),
        "events": ("RINGBUF", 0, 0, 8192, 0),
        "bloom": ("BLOOM_FILTER", 0, 8, 100, 0),
        "arena": ("ARENA", 0, 0, 100, 1 << 10),
        "jumps": ("PROG_ARRAY", 4, 4, 3, 0),
    }


def test_maps_have_the_types_of_their_keys_and_values(spec: ObjectSpec) -> None:
    assert spec.btf is not None
    typed, both, sized = spec.maps["typed"], spec.maps["both"], spec.maps["sized"]
    key = spec.btf.type(typed.key_type_id)
    assert isinstance(key, Struct)
    assert key.name == "pair"
    assert spec.btf.name(typed.value_type_id) == "__u64"
    assert spec.btf.sizeof(both.value_type_id) == 64
    assert (sized.key_type_id, sized.value_type_id) == (0, 0)


def test_maps_have_their_other_attributes(spec: ObjectSpec) -> None:
    assert (spec.maps["typed"].numa_node, spec.maps["typed"].pinning) == (0, 1)
    assert (spec.maps["both"].numa_node, spec.maps["both"].pinning) == (None, 0)
    assert spec.maps["bloom"].map_extra == 3
    assert spec.maps["arena"].map_extra == 1 << 44


def test_templates_of_inner_maps(spec: ObjectSpec) -> None:
    tree, rings = spec.maps["tree"].inner, spec.maps["rings"].inner
    assert tree is not None
    assert rings is not None
    assert shape(tree) == ("ARRAY", 4, 4, 16, 0)
    assert (rings.name, shape(rings)) == ("rings.inner", ("RINGBUF", 0, 0, 4096, 0))
    assert spec.maps["jumps"].inner is None


def test_maps_have_their_static_contents(spec: ObjectSpec) -> None:
    assert spec.maps["tree"].initial == ((1, "leaf_a"), (3, "leaf_b"))
    assert spec.maps["jumps"].initial == ((2, "target"),)
    assert spec.maps["rings"].initial == ()


def test_instructions_refer_to_maps_by_name(spec: ObjectSpec) -> None:
    found = [(r.kind, r.target) for r in spec.functions["jump"].relocations]
    assert (RelocationKind.MAP, "jumps") in found
    assert (RelocationKind.MAP, "sized") in found


@pytest.mark.parametrize(
    ("name", "place", "problem"),
    [
        ("elf_bad_static_map", "map invisible", "is static"),
        ("elf_bad_map_data", "map confused", "has contents"),
        ("elf_bad_map_type", "map vague", "its value is struct elsewhere, which BTF only declares"),
        (
            "elf_bad_inner_value",
            "map outer.inner",
            r"clang keeps it with: const struct event \*unused __attribute__\(\(unused\)\);",
        ),
    ],
)
def test_definitions_that_cannot_be_meant(name: str, place: str, problem: str) -> None:
    with pytest.raises(FormatError) as caught:
        read_object(DATA / f"{name}.bpf.o")
    assert caught.value.where == place
    assert re.search(problem, caught.value.problem)


def test_a_map_of_another_object_is_to_be_linked() -> None:
    with pytest.raises(LinkError, match="defined in another object; link the two: bpftool gen"):
        read_object(DATA / "elf_bad_extern_map.bpf.o")
