"""The classes of a typed module: all with names of their own."""

from __future__ import annotations

import ast
import struct
from typing import Any

from purebpf.abi.bpf import bpf_map_type
from purebpf.btf.codec.codecs import codec
from purebpf.build.stubs import stubs
from purebpf.spec import MapSpec, ObjectSpec, VariableSpec
from tests.support.builders.btf_builder import BtfBuilder

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
    found = [
        name for name, bases in classes(spec).items() if bases == ["purebpf.Map[bytes, bytes]"]
    ]
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
    assert [each.name for node in imported for each in node.names] == ["purebpf", "os"]


def test_a_record_is_not_called_like_the_class_of_a_map() -> None:
    built = BtfBuilder()
    value = built.struct("EventsMap", [("x", built.int("int", 4))])
    maps = {"events": MapSpec("events", HASH, 4, 4, 10, value_type_id=value)}
    spec = ObjectSpec("x", "x", "little", "", {}, {}, maps, {}, btf=built.btf())
    found = classes(spec)
    assert found["EventsMap"] == ["purebpf.Map[bytes, EventsMap_]"]
    assert found["EventsMap_"] == ["Record"]


def test_a_variable_that_python_cannot_name_does_not_hide_the_others() -> None:
    built = BtfBuilder()
    u32 = built.int("__u32", 4)
    variables = {
        name: VariableSpec(name, ".data", 0, 4, u32) for name in ("limit", "from", "is$odd")
    }
    text = stubs(ObjectSpec("x", "x", "little", "", {}, {}, {}, variables, btf=built.btf()))
    start = text.index("def set(")
    assert "limit: int | bytes = ...,\n            **others: Any,\n" in text[start:]
    ast.parse(text)


def test_records_and_enums_are_those_that_values_have() -> None:
    built = BtfBuilder()
    state = built.enum("state", {"IDLE": 0, "BUSY": 1})
    value = built.struct("event", [("from", built.int("__u32", 4)), ("state", state)])
    maps = {"events": MapSpec("events", HASH, 4, 8, 10, value_type_id=value)}
    btf = built.btf()
    module: dict[str, Any] = {}
    exec(stubs(ObjectSpec("x", "x", "little", "", {}, {}, maps, {}, btf=btf)), module)
    made = codec(btf, value).decode(struct.pack("<II", 3, 1))
    assert type(made) is module["event"]
    assert type(made.state) is module["state"]
    assert made == module["event"](3, module["state"].BUSY)
    assert module["__all__"] == ["load", "read_object", "state", "event", "EventsMap"]
