"""The classes of a typed module: all with names of their own."""

from __future__ import annotations

import ast
import struct
from typing import Any

from purebpf.abi.bpf import bpf_map_type
from purebpf.btf.codec.codecs import codec, variable_codec
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


def test_a_type_that_is_reached_by_several_ways_has_one_class() -> None:
    built = BtfBuilder()
    u16, u32 = built.int("__u16", 2), built.int("__u32", 4)
    proto = built.enum("proto", {"TCP": 6, "UDP": 17})
    flow = built.struct("flow", [("source", u32), ("port", u16)])  # padded: another codec as a key
    packed = built.struct("pair", [("first", u32), ("second", u32)])
    event = built.struct("event", [("flow", flow), ("proto", proto), ("pair", packed)])
    nested = built.struct("nested", [("flows", built.array(flow, 2)), ("event", event)])
    maps = {
        "a": MapSpec("a", HASH, 8, 4, 10, key_type_id=flow, value_type_id=proto),
        "b": MapSpec("b", HASH, 4, 8, 10, key_type_id=proto, value_type_id=flow),
        "c": MapSpec("c", HASH, 8, 20, 10, key_type_id=packed, value_type_id=event),
        "d": MapSpec("d", HASH, 20, 8, 10, key_type_id=event, value_type_id=packed),
        "e": MapSpec("e", HASH, 36, 36, 10, key_type_id=nested, value_type_id=nested),
    }
    variables = {"last": VariableSpec("last", ".bss", 0, 8, flow)}
    made = classes(ObjectSpec("x", "x", "little", "", {}, {}, maps, variables, btf=built.btf()))
    records = [name for name, bases in made.items() if bases in (["Record"], ["IntEnum"])]
    assert records == ["flow", "proto", "pair", "event", "nested"]
    assert made["AMap"] == ["purebpf.Map[flow, proto]"]


def test_types_that_differ_and_are_called_the_same_have_a_class_each() -> None:
    built = BtfBuilder()
    u32 = built.int("__u32", 4)
    one, other = (built.struct("same", [("field", of)]) for of in (u32, built.array(u32, 2)))
    maps = {"a": MapSpec("a", HASH, 4, 8, 10, key_type_id=one, value_type_id=other)}
    made = classes(ObjectSpec("x", "x", "little", "", {}, {}, maps, {}, btf=built.btf()))
    assert made["AMap"] == ["purebpf.Map[same, same_2]"]


def test_a_variable_of_a_struct_without_name_has_a_class_of_its_name() -> None:
    built = BtfBuilder()
    u32 = built.int("__u32", 4)
    variables = {}
    for name, field in (("settings", "z"), ("limits", "most")):
        anonymous = built.struct("", [(field, u32)])
        variables[name] = VariableSpec(name, ".bss", 0, 4, anonymous)
    spec = ObjectSpec("x", "x", "little", "", {}, {}, {}, variables, btf=built.btf())
    made = classes(spec)
    assert [name for name, bases in made.items() if bases == ["Record"]] == ["settings", "limits"]
    assert spec.btf
    for name, variable in variables.items():
        of: Any = variable_codec(spec.btf, variable.type_id, name)
        assert of.record.__name__ == name
