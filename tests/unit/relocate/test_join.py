"""A library joined to an object: nothing of either changes its meaning."""

from __future__ import annotations

from pathlib import Path

import pytest

import purebpf
from purebpf import objects
from purebpf.btf.types.join import join as join_btf
from purebpf.btf.types.kinds import Kind
from purebpf.errors import FormatError, LinkError
from purebpf.relocate.join import call_library, calls_of, join
from purebpf.spec import ObjectSpec, RelocationKind

DATA = Path(__file__).parents[2] / "data"
ROOT = "user_stack_by_task"
PREFIX = "library."


@pytest.fixture(scope="module")
def spec() -> ObjectSpec:
    return purebpf.read_object(DATA / "stacks_of_others.bpf.o")


@pytest.fixture(scope="module")
def library() -> ObjectSpec:
    return objects.spec("stack_library")


@pytest.fixture(scope="module")
def joined(spec: ObjectSpec, library: ObjectSpec) -> ObjectSpec:
    return join(spec, library, (ROOT,), PREFIX)


def declaration(btf: purebpf.Btf, type_id: int) -> str:
    """The C of a type and of what it needs; its description where there is no C of it."""
    kind = btf.kind(type_id)
    if kind in (Kind.STRUCT, Kind.UNION, Kind.ENUM, Kind.ENUM64, Kind.TYPEDEF):
        return btf.dump_c(type_id)
    return f"{kind.name} {btf.name(type_id)}"


def test_types_are_the_same_behind_each_other(spec: ObjectSpec, library: ObjectSpec) -> None:
    assert spec.btf is not None
    assert library.btf is not None
    both = join_btf(spec.btf, library.btf)
    assert len(both.btf) == len(spec.btf) + len(library.btf) - 1
    for type_id in range(1, len(spec.btf)):
        assert both.btf.type(type_id) == spec.btf.type(type_id)
    for type_id in range(1, len(library.btf)):
        moved = type_id + both.types
        assert declaration(both.btf, moved) == declaration(library.btf, type_id)


def test_every_kind_of_type_is_moved(library: ObjectSpec) -> None:
    """A BTF behind itself: each id of a type is one of the second half, or void."""
    btf = purebpf.Btf(library.btf.data) if library.btf else pytest.fail("no BTF")
    both = join_btf(btf, btf)
    for type_id in range(1, len(btf)):
        first, second = btf.type(type_id), both.btf.type(type_id + both.types)
        assert first.name == second.name
        for name in ("type_id", "element", "index"):
            own = getattr(first, name, None)
            if isinstance(own, int):
                assert getattr(second, name) == (own and own + both.types)


def test_byte_orders_do_not_mix(library: ObjectSpec) -> None:
    big = purebpf.read_object(DATA / "elf_big_endian.bpf.o")
    assert big.btf is not None
    assert library.btf is not None
    with pytest.raises(FormatError, match="byte order"):
        join_btf(big.btf, library.btf)


def test_an_object_without_types_is_refused(library: ObjectSpec) -> None:
    with pytest.raises(LinkError, match="-g"):
        join(purebpf.read_object(DATA / "elf_no_btf.bpf.o"), library, (ROOT,), PREFIX)


def test_the_object_stays_as_it_is(spec: ObjectSpec, joined: ObjectSpec) -> None:
    for kept in ("functions", "maps", "variables", "programs"):
        before, after = getattr(spec, kept), getattr(joined, kept)
        assert {name: after[name] for name in before} == dict(before)
        assert all(name.startswith(PREFIX) for name in after.keys() - before.keys())


def test_functions_bring_all_that_they_refer_to(joined: ObjectSpec) -> None:
    for key, function in joined.functions.items():
        if not key.startswith(PREFIX):
            continue
        for relocation in function.relocations:
            if relocation.kind in (RelocationKind.CALL, RelocationKind.FUNCTION):
                assert relocation.target in joined.functions
            else:
                assert relocation.target in joined.maps


def test_lines_and_relocations_name_the_same(library: ObjectSpec, joined: ObjectSpec) -> None:
    assert library.btf is not None
    assert joined.btf is not None
    for key, function in joined.functions.items():
        if not key.startswith(PREFIX):
            continue
        before = library.functions[key.removeprefix(PREFIX)]
        assert joined.btf.name(function.type_id) == library.btf.name(before.type_id)
        for old, new in zip(before.line_info, function.line_info, strict=True):
            assert joined.btf.string(new.line) == library.btf.string(old.line)
            assert joined.btf.string(new.file_name) == library.btf.string(old.file_name)
        for old_core, new_core in zip(
            before.core_relocations, function.core_relocations, strict=True
        ):
            assert joined.btf.type(new_core.type_id).name == (
                library.btf.type(old_core.type_id).name
            )


def test_variables_have_their_first_values(library: ObjectSpec, joined: ObjectSpec) -> None:
    for name in library.variables:
        assert joined.get(PREFIX + name) == library.get(name)


def test_calls_lead_to_the_chosen_function(spec: ObjectSpec, joined: ObjectSpec) -> None:
    callers = calls_of(spec, ("user_stack",))["user_stack"]
    assert set(callers) == {program.function for program in spec.programs.values()}
    called = call_library(joined, "user_stack", lambda _program: ROOT, PREFIX)
    assert not calls_of(called, ("user_stack",))["user_stack"]
    assert "user_stack" not in called.externs
    for key in callers:
        targets = [relocation.target for relocation in called.functions[key].relocations]
        assert PREFIX + ROOT in targets


def test_a_call_from_another_function_is_refused(spec: ObjectSpec) -> None:
    """As if the compiler had not inlined what a program calls."""
    name, program = next(iter(spec.programs.items()))
    outer = spec.functions[program.function]
    inner = outer._replace(name="inner")
    call = next(each for each in outer.relocations if each.kind is RelocationKind.EXTERN)
    calls_inner = outer._replace(
        relocations=(call._replace(kind=RelocationKind.CALL, target="inner"),)
    )
    nested = spec.only(name)._replace(
        functions={**spec.functions, program.function: calls_inner, "inner": inner}
    )
    with pytest.raises(LinkError, match="inner calls it, and is no program"):
        call_library(nested, "user_stack", lambda _program: ROOT, PREFIX)
