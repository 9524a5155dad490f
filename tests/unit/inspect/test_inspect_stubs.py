"""The classes of a typed module: all with names of their own."""

from __future__ import annotations

import ast

from purebpf.abi.bpf import bpf_map_type
from purebpf.inspect.stubs import stubs
from purebpf.spec import MapSpec, ObjectSpec, VariableSpec
from tests.support.btf_builder import BtfBuilder

HASH = bpf_map_type.BPF_MAP_TYPE_HASH


def classes(spec: ObjectSpec) -> dict[str, list[str]]:
    """The bases of each class in the module."""
    found = [node for node in ast.walk(ast.parse(stubs(spec))) if isinstance(node, ast.ClassDef)]
    assert len({node.name for node in found}) == len(found)
    return {node.name: [ast.unparse(base) for base in node.bases] for node in found}


def test_maps_with_similar_names_have_a_class_each() -> None:
    names = ("events_1", "events1", ".data", "data", "1st")
    maps = {name: MapSpec(name, HASH, 4, 8, 10) for name in names}
    spec = ObjectSpec("x", "x", "little", "", {}, {}, maps, {})
    found = [name for name, bases in classes(spec).items() if bases == ["purebpf.Map"]]
    assert found == ["Events1Map", "Events1Map_2", "DataMap", "DataMap_2", "_4"]
    text = stubs(spec)
    for name, made in zip(names, found, strict=True):
        assert f"name: Literal[{name!r}], /) -> {made}: ..." in text


def test_names_of_an_object_stay_within_their_strings() -> None:
    name = 'x"""\nimport os\n"""\\'
    built = BtfBuilder()
    value = built.struct(name, [(name, built.int("int", 4))])
    maps = {name: MapSpec(name, HASH, 4, 4, 10, value_type_id=value)}
    variables = {name: VariableSpec(name, ".bss", 0, 4, value)}
    spec = ObjectSpec(f"/tmp/{name}", "x", "little", "", {}, {}, maps, variables, btf=built.btf())
    imported = [node for node in ast.walk(ast.parse(stubs(spec))) if isinstance(node, ast.Import)]
    assert [each.name for node in imported for each in node.names] == ["purebpf"]


def test_a_record_is_not_called_like_the_class_of_a_map() -> None:
    built = BtfBuilder()
    value = built.struct("EventsMap", [("x", built.int("int", 4))])
    maps = {"events": MapSpec("events", HASH, 4, 4, 10, value_type_id=value)}
    spec = ObjectSpec("x", "x", "little", "", {}, {}, maps, {}, btf=built.btf())
    found = classes(spec)
    assert found["EventsMap"] == ["purebpf.Map"]
    assert found["EventsMap_"] == ["Record"]
