"""`write_object` against `read_object`: an object says the same after it was written."""

from __future__ import annotations

from pathlib import Path

import pytest

from purebpf.elf import read_object
from purebpf.elf.write import write_object
from purebpf.errors import LinkError, NotSupportedError
from purebpf.spec import FunctionSpec, MapSpec, ObjectSpec, RelocationKind

ROOT = Path(__file__).parents[3]
OBJECTS = sorted(
    path
    for path in (*ROOT.glob("purebpf/objects/[pst]*.bpf.o"), *ROOT.glob("tests/data/*.bpf.o"))
    if not path.name.startswith("elf_bad_")
)
REFUSED = {
    "attach_struct_ops.bpf.o": "struct_ops",
    "elf_maps.bpf.o": "declares",
    "load_arena.bpf.o": "arena",
    "load_arena_first_page.bpf.o": "arena",
    "load_dummy_ops.bpf.o": "struct_ops",
    "load_hash_of_maps.bpf.o": "declares",
    "load_iproute2.bpf.o": "declares",
    "load_jump_tables.bpf.o": "jump tables",
    "load_tail.bpf.o": "declares",
    "trace.bpf.o": "declares",
}
WITHOUT_BTF = ("elf_no_btf.bpf.o",)
_RINGS = (27, 31)
pytestmark = pytest.mark.filterwarnings("ignore:.*does not relocate:RuntimeWarning")


def shape(spec_map: MapSpec) -> tuple[object, ...]:
    """All that a loader has to know; a ring's value is only a type for readers."""
    value_size = 0 if spec_map.type in _RINGS else spec_map.value_size
    inner = spec_map.inner and shape(spec_map.inner)
    return (
        *(spec_map.type, spec_map.key_size, value_size, spec_map.max_entries, spec_map.flags),
        *(spec_map.map_extra, spec_map.pinning, spec_map.section, spec_map.contents),
        *(spec_map.frozen, inner),
    )


def meaning(spec: ObjectSpec, function: FunctionSpec) -> tuple[object, ...]:
    """A function's references, without the names of static functions, which may be equal."""
    assert spec.btf is not None
    btf = spec.btf
    return (
        function.name,
        function.linkage,
        len(function.code),
        [
            (each.offset, each.kind, spec.functions[each.target].name)
            if each.kind in (RelocationKind.CALL, RelocationKind.FUNCTION)
            else (each.offset, each.kind, each.target, each.addend)
            for each in function.relocations
        ],
        [
            (each.offset, btf.name(each.type_id), each.access, each.kind)
            for each in function.core_relocations
        ],
        [
            (each.offset, btf.string(each.file_name), btf.string(each.line), each.line_col)
            for each in function.line_info
        ],
        btf.name(function.type_id),
    )


@pytest.mark.parametrize("path", OBJECTS, ids=lambda path: path.name)
def test_an_object_says_the_same_after_it_was_written(path: Path) -> None:
    spec = read_object(path)
    if path.name in WITHOUT_BTF or spec.btf is None:
        with pytest.raises(LinkError, match="-g"):
            write_object(spec)
        return
    if path.name in REFUSED:
        with pytest.raises(NotSupportedError, match=REFUSED[path.name]):
            write_object(spec)
        return
    again = read_object(write_object(spec))
    assert (again.license, again.byteorder) == (spec.license, spec.byteorder)
    assert {name: shape(each) for name, each in again.maps.items()} == {
        name: shape(each) for name, each in spec.maps.items()
    }
    assert {name: each._replace(type_id=0) for name, each in again.variables.items()} == {
        name: each._replace(type_id=0) for name, each in spec.variables.items()
    }
    assert again.programs == spec.programs
    assert {name: each._replace(type_id=0) for name, each in again.externs.items()} == {
        name: each._replace(type_id=0) for name, each in spec.externs.items()
    }
    functions = [meaning(again, each) for each in again.functions.values()]
    known = [meaning(spec, each) for each in spec.functions.values()]
    assert functions
    assert all(function in known for function in functions)
    assert {program.function for program in spec.programs.values()} <= again.functions.keys()


def test_the_same_spec_gives_the_same_bytes() -> None:
    spec = read_object(ROOT / "purebpf/objects/profile.bpf.o")
    assert write_object(spec) == write_object(spec)
