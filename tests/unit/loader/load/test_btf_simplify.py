"""BTF for older kernels: other kinds, the same ids."""

from __future__ import annotations

import pytest

from purebpf.btf.types.kinds import Kind, Linkage, Struct, Union
from purebpf.btf.types.parse import Btf
from purebpf.loader.load.btf_simplify import has_question_marks, kinds_of, simplify
from tests.support.builders.btf_builder import BtfBuilder


@pytest.fixture
def build() -> BtfBuilder:
    return BtfBuilder()


def simpler(build: BtfBuilder, *refused: Kind, global_functions: bool = True) -> Btf:
    return Btf(simplify(build.btf(), set(refused), global_functions=global_functions))


def test_nothing_refused_nothing_changed(build):
    build.struct("pair", [("a", build.int("int", 4)), ("b", 1)])
    assert simpler(build).data == build.bytes()


def test_kinds_of_are_the_kinds_that_occur(build):
    build.ptr(build.int("int", 4))
    assert kinds_of(build.btf()) == {Kind.INT, Kind.PTR}


def test_a_data_section_becomes_a_struct_of_its_variables(build):
    integer = build.int("int", 4)
    first, second = build.var("first", integer), build.var("second", integer)
    section = build.datasec(".data.mine", [(first, 0, 4), (second, 8, 4)], 12)
    btf = simpler(build, Kind.VAR, Kind.DATASEC)
    assert btf.kind(first) is btf.kind(second) is Kind.INT
    assert btf.sizeof(first) == 1
    found = btf.type(section)
    assert isinstance(found, Struct)
    assert (found.name, found.size) == ("_data_mine", 12)
    assert [(m.name, m.type_id, m.bit_offset) for m in found.members] == [
        ("first", first, 0),
        ("second", second, 64),
    ]


def test_a_64_bit_enum_becomes_a_union_of_its_size(build):
    before = build.enum64("huge", {"ONE": 1 << 40, "TWO": 2 << 40})
    after = build.ptr(before)
    btf = simpler(build, Kind.ENUM64)
    found = btf.type(before)
    assert isinstance(found, Union)
    assert (found.name, found.size) == ("huge", 8)
    assert [member.name for member in found.members] == ["ONE", "TWO"]
    assert {btf.sizeof(member.type_id) for member in found.members} == {8}
    assert btf.type(after).type_id == before
    assert btf.name(len(btf) - 1) == "enum64_placeholder"


def test_floats_tags_and_functions(build):
    real = build.float("double", 8)
    tag = build.type_tag("user", real)
    prototype = build.func_proto(real, [("x", real)])
    function = build.func("work", prototype)
    mark = build.decl_tag("mark", function)
    refused = Kind.FLOAT, Kind.TYPE_TAG, Kind.FUNC_PROTO, Kind.FUNC, Kind.DECL_TAG
    btf = simpler(build, *refused)
    assert [btf.kind(each) for each in (real, tag, prototype, function, mark)] == [
        Kind.STRUCT,
        Kind.CONST,
        Kind.ENUM,
        Kind.TYPEDEF,
        Kind.INT,
    ]
    assert btf.sizeof(real) == 8
    assert btf.name(tag) == ""
    assert btf.type(tag).type_id == real
    assert btf.type(function).type_id == prototype


def test_global_functions_become_static_and_others_stay(build):
    prototype = build.func_proto(0)
    one = build.func("one", prototype, Linkage.GLOBAL)
    two = build.func("two", prototype, Linkage.STATIC)
    btf = simpler(build, global_functions=False)
    assert btf.type(one).linkage is btf.type(two).linkage is Linkage.STATIC


def test_a_section_that_is_not_used_by_default_loses_its_question_mark(build):
    variable = build.var("ops", build.int("int", 4))
    section = build.datasec("?.struct_ops", [(variable, 0, 4)], 4)
    assert has_question_marks(build.btf())
    btf = Btf(simplify(build.btf(), set(), global_functions=True, question_marks=False))
    assert btf.name(section) == "_.struct_ops"
    assert not has_question_marks(btf)
