"""CO-RE questions about whole types and enumerators: shallow and deep agreement, and values."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from purebpf.abi.bpf import bpf_core_relo_kind as K  # noqa: N812
from purebpf.errors import CoreRelocationError, FormatError
from tests.support.builders.btf_builder import BtfBuilder
from tests.support.builders.core_questions import Maker, relocate

EXISTS = K.BPF_CORE_TYPE_EXISTS
MATCHES = K.BPF_CORE_TYPE_MATCHES
SIZE = K.BPF_CORE_TYPE_SIZE
ID = K.BPF_CORE_TYPE_ID_TARGET
VALUE = K.BPF_CORE_ENUMVAL_VALUE
VALUE_EXISTS = K.BPF_CORE_ENUMVAL_EXISTS


def typedef_of(make: Maker) -> Maker:
    """`typedef ... t`, so that types of any kind have a name in common."""

    def named(b: BtfBuilder) -> None:
        b.typedef("t", make(b))  # type: ignore[arg-type]

    return named


def agree(local: Maker, target: Maker) -> bool:
    return bool(relocate(typedef_of(local), "0", EXISTS, typedef_of(target)).value)


def matches(local: Maker, target: Maker) -> bool:
    return bool(relocate(typedef_of(local), "0", MATCHES, typedef_of(target)).value)


def integer(b: BtfBuilder) -> int:
    return b.int("int", 4, signed=True)


def nothing(_b: BtfBuilder) -> None:
    """No types at all."""


# Existence, sizes, ids


def test_a_missing_type_is_zero_and_never_poisons() -> None:
    local = lambda b: b.struct("s", [("x", integer(b))])  # noqa: E731
    for kind in (EXISTS, MATCHES, SIZE, ID):
        result = relocate(local, "0", kind, nothing)
        assert (result.value, result.problem) == (0, "")


def test_size_and_id_are_the_targets() -> None:
    local = lambda b: b.struct("s", [("x", integer(b))])  # noqa: E731

    def target(b: BtfBuilder) -> None:
        b.struct("s", [("x", b.int("long", 8))])

    assert relocate(local, "0", EXISTS, target).value == 1
    assert relocate(local, "0", SIZE, target).value == 8
    result = relocate(local, "0", ID, target)
    assert (result.value, result.is_checked) == (2, False)


def test_two_types_with_one_name_have_no_single_id() -> None:
    def twice(b: BtfBuilder) -> None:
        b.struct("s", [])
        b.struct("s", [])

    local = lambda b: b.struct("s", [])  # noqa: E731
    assert relocate(local, "0", EXISTS, twice).value == 1
    with pytest.raises(CoreRelocationError, match=r"gives 1.*gives 2"):
        relocate(local, "0", ID, twice)


def test_what_has_no_size_cannot_be_asked_for_it() -> None:
    with pytest.raises(FormatError, match="no size"):
        relocate(lambda b: b.fwd("s"), "0", SIZE, nothing)


# Shallow agreement


@pytest.mark.parametrize(
    ("local", "target", "expected"),
    [
        (integer, lambda b: b.int("u8", 1), True),
        (integer, lambda b: b.int("old", 4, bits=3, offset=5), False),
        (lambda b: b.struct("a", []), lambda b: b.struct("b", [("x", integer(b))]), True),
        (lambda b: b.struct("a", []), lambda b: b.union("a", []), False),
        (lambda b: b.enum("a", {}), lambda b: b.enum64("b", {"X": 1}), True),
        (lambda b: b.enum("a", {}), integer, False),
        (lambda b: b.fwd("a"), lambda b: b.fwd("b", union=True), True),
        (lambda b: b.fwd("a"), lambda b: b.struct("a", []), False),
        (lambda b: b.float("f", 4), lambda b: b.float("f", 4), False),
        (lambda b: 0, lambda b: 0, True),
        (lambda b: 0, integer, False),
        (lambda b: b.ptr(0), lambda b: b.ptr(0), True),
        (lambda b: b.ptr(integer(b)), lambda b: b.ptr(b.struct("x", [])), False),
        (lambda b: b.ptr(integer(b)), lambda b: b.ptr(b.const(b.int("u8", 1))), True),
        (lambda b: b.array(integer(b), 3), lambda b: b.array(b.int("u8", 1), 9), True),
        (lambda b: b.array(integer(b), 3), lambda b: b.array(b.ptr(0), 3), False),
    ],
)
def test_existence_compares_kinds(local: Maker, target: Maker, expected: bool) -> None:
    assert agree(local, target) is expected


def prototype(result: Maker, *params: Maker) -> Maker:
    def make(b: BtfBuilder) -> int:
        arguments = [("x", param(b)) for param in params]
        return b.ptr(b.func_proto(result(b), arguments))  # type: ignore[arg-type]

    return make


@pytest.mark.parametrize("compare", [agree, matches])
def test_prototypes_agree_by_parameters_and_result(
    compare: Callable[[Maker, Maker], bool],
) -> None:
    void, pointer = lambda b: 0, lambda b: b.ptr(0)
    assert compare(prototype(void, integer, pointer), prototype(void, integer, pointer))
    assert not compare(prototype(void, integer, pointer), prototype(void, pointer, integer))
    assert not compare(prototype(void, integer), prototype(void, integer, integer))
    assert not compare(prototype(void, integer), prototype(integer, integer))


@pytest.mark.parametrize("compare", [agree, matches])
def test_a_prototype_that_takes_itself_twice_ends(
    compare: Callable[[Maker, Maker], bool],
) -> None:
    def itself(b: BtfBuilder) -> int:
        pointer = b.ptr(b.next_id + 1)
        b.func_proto(0, [("x", pointer), ("y", pointer)])
        return pointer

    with pytest.raises(CoreRelocationError, match="32 deep"):
        compare(itself, itself)


@pytest.mark.parametrize("compare", [agree, matches])
def test_pointers_to_pointers_are_followed_for_32_levels(
    compare: Callable[[Maker, Maker], bool],
) -> None:
    def pointers(levels: int) -> Maker:
        def make(b: BtfBuilder) -> int:
            target = integer(b)
            for _ in range(levels):
                target = b.ptr(target)
            return target

        return make

    assert compare(pointers(31), pointers(31))
    with pytest.raises(CoreRelocationError, match="32 deep"):
        compare(pointers(32), pointers(32))


# Deep agreement


@pytest.mark.parametrize(
    ("local", "target", "expected"),
    [
        (integer, integer, True),
        (integer, lambda b: b.int("long", 8, signed=True), False),
        (integer, lambda b: b.int("int", 8, signed=True), False),
        (integer, lambda b: b.int("int", 4), False),
        (lambda b: b.array(integer(b), 3), lambda b: b.array(integer(b), 3), True),
        (lambda b: b.array(integer(b), 3), lambda b: b.array(integer(b), 4), False),
        (lambda b: b.struct("a", []), lambda b: b.struct("a___x", []), True),
        (lambda b: b.struct("a", []), lambda b: b.struct("b", []), False),
        (lambda b: b.struct("a", []), lambda b: b.union("a", []), False),
        (lambda b: b.fwd("a"), lambda b: b.fwd("a"), True),
        (lambda b: b.fwd("a"), lambda b: b.fwd("a", union=True), False),
        (lambda b: b.fwd("a"), lambda b: b.struct("a", []), False),
        (lambda b: b.struct("a", []), lambda b: b.fwd("a"), False),
        (lambda b: b.float("f", 4), lambda b: b.float("f", 4), False),
        (lambda b: b.enum("e", {"A": 1}), lambda b: b.enum("e", {"B": 5, "A": 2}), True),
        (lambda b: b.enum("e", {"A___x": 1}), lambda b: b.enum("e", {"A___y": 2}), True),
        (lambda b: b.enum("e", {"A": 1}), lambda b: b.enum("e", {"B": 1}), False),
        (lambda b: b.enum("e", {"A": 1, "B": 2}), lambda b: b.enum("e", {"A": 1}), False),
        (lambda b: b.enum("e", {"A": 1}), lambda b: b.enum("e", {"A": 1}, size=8), False),
        (lambda b: b.enum("e", {"A": 1}, 8), lambda b: b.enum64("e", {"A": 1}), True),
        (lambda b: b.enum("e", {}), integer, False),
        (lambda b: 0, lambda b: 0, True),
    ],
)
def test_matching_compares_names_sizes_and_signs(
    local: Maker, target: Maker, expected: bool
) -> None:
    assert matches(local, target) is expected


def struct_with(*members: tuple[str, Maker], name: str = "s") -> Maker:
    def make(b: BtfBuilder) -> int:
        placed = [(member, made(b), 64 * n) for n, (member, made) in enumerate(members)]
        return b.struct(name, placed, size=64)

    return make


def test_every_local_member_has_a_namesake_that_matches() -> None:
    wide = lambda b: b.int("long", 8, signed=True)  # noqa: E731
    local = struct_with(("a", integer), ("b", integer))
    assert matches(local, struct_with(("b", integer), ("c", wide), ("a", integer)))
    assert not matches(local, struct_with(("a", integer), ("c", integer)))
    assert not matches(local, struct_with(("a", integer), ("b", wide)))
    assert not matches(local, struct_with(("a", integer)))


def test_members_of_members_are_compared() -> None:
    def outer(*inner: tuple[str, Maker]) -> Maker:
        return struct_with(("x", struct_with(*inner, name="inner")))

    assert matches(outer(("a", integer)), outer(("a", integer), ("b", integer)))
    assert not matches(outer(("a", integer)), outer(("b", integer)))


def test_nameless_members_may_match_any_nameless_member() -> None:
    def outer(*names: str) -> Maker:
        return struct_with(*(("", struct_with((name, integer), name="")) for name in names))

    assert matches(outer("b"), outer("a", "b"))
    assert not matches(outer("c"), outer("a", "b"))


def test_behind_a_pointer_only_name_and_kind_count() -> None:
    def pointee(make: Maker) -> Maker:
        return struct_with(("p", lambda b: b.ptr(make(b))))  # type: ignore[arg-type]

    full = pointee(struct_with(("a", integer), name="x"))
    assert matches(full, pointee(struct_with(("b", integer), name="x")))
    assert matches(full, pointee(lambda b: b.fwd("x")))
    assert matches(pointee(lambda b: b.fwd("x")), full)
    assert not matches(full, pointee(lambda b: b.fwd("x", union=True)))
    assert not matches(pointee(lambda b: b.fwd("x", union=True)), full)
    assert not matches(full, pointee(lambda b: b.union("x", [])))
    assert not matches(full, pointee(struct_with(("a", integer), name="y")))
    assert not matches(full, pointee(integer))


def test_behind_a_pointer_unions_and_enumerators_count_as_before() -> None:
    def pointee(make: Maker) -> Maker:
        return lambda b: b.ptr(make(b))  # type: ignore[arg-type]

    union = pointee(lambda b: b.union("u", []))
    assert matches(union, pointee(lambda b: b.fwd("u", union=True)))
    enum = pointee(lambda b: b.enum("e", {"A": 1}))
    assert matches(enum, enum)
    assert not matches(enum, pointee(lambda b: b.enum("e", {"B": 1})))


def test_a_struct_that_points_at_itself_matches() -> None:
    def itself(b: BtfBuilder) -> int:
        return b.struct("s", [("next", b.ptr(b.next_id + 1))])

    assert matches(itself, itself)


def test_many_nameless_members_are_compared_once() -> None:
    def wide(b: BtfBuilder) -> int:
        inner = b.union("", [("x", integer(b))])
        for _ in range(28):
            inner = b.union("", [("", inner), ("", inner)])
        return inner

    assert matches(wide, wide)


def test_a_struct_inside_itself_is_refused() -> None:
    def itself(b: BtfBuilder) -> int:
        own = b.next_id
        return b.raw(4, "s", 1, 8, [b.string("x"), own, 0])

    with pytest.raises(CoreRelocationError, match="32 deep"):
        matches(itself, itself)


# Enumerators


def enum_of(values: dict[str, int], size: int = 4, signed: bool | None = None) -> Maker:
    return lambda b: b.enum("e", values, size, signed=signed)


def enum64_of(values: dict[str, int], signed: bool | None = None) -> Maker:
    return lambda b: b.enum64("e", values, signed=signed)


def test_an_enumerator_is_found_by_name() -> None:
    result = relocate(enum_of({"A": 1, "B": 2}), "1", VALUE, enum_of({"B": 20, "A": 10}))
    assert (result.value, result.local_value, result.what) == (20, 2, "enum e::B")


def test_an_enumerators_flavour_is_ignored_on_both_sides() -> None:
    local, target = enum_of({"A___mine": 1}), enum_of({"AB": 5, "A___theirs": 7})
    assert relocate(local, "0", VALUE, target).value == 7


def test_enum_and_enum64_are_candidates_for_each_other() -> None:
    big = 1 << 40
    assert relocate(enum_of({"A": 1}), "0", VALUE, enum64_of({"A": big})).value == big
    assert relocate(enum64_of({"A": big}), "0", VALUE, enum_of({"A": 1})).value == 1


def test_values_keep_their_sign() -> None:
    assert relocate(enum_of({"A": 1}), "0", VALUE, enum_of({"A": -1})).value == -1
    unsigned = enum_of({"A": 0xFFFFFFFF}, signed=False)
    assert relocate(enum_of({"A": 1}), "0", VALUE, unsigned).value == 0xFFFFFFFF
    assert relocate(enum_of({"A": 1}), "0", VALUE, enum64_of({"A": -5})).value == -5


def test_a_missing_enumerator_poisons_its_value_but_not_its_existence() -> None:
    local, target = enum_of({"A": 1}), enum_of({"B": 1})
    assert relocate(local, "0", VALUE_EXISTS, target).value == 0
    assert relocate(local, "0", VALUE_EXISTS, local).value == 1
    result = relocate(local, "0", VALUE, target)
    assert result.explain() == "enum e::A: no such enumerator on this kernel"


@pytest.mark.parametrize("access", ["2", "0:0"])
def test_an_enumerator_must_be_one(access: str) -> None:
    local = enum_of({"A": 1, "B": 2})
    with pytest.raises(FormatError, match="no such enumerator among 2"):
        relocate(local, access, VALUE, local)


def test_only_an_enum_has_enumerators() -> None:
    with pytest.raises(FormatError, match="an enumerator of a INT"):
        relocate(integer, "0", VALUE, integer)


def test_a_typedef_of_an_enum_is_one() -> None:
    local, target = typedef_of(enum_of({"A": 1})), typedef_of(enum_of({"A": 4}))
    assert relocate(local, "0", VALUE, target).value == 4
    assert relocate(local, "0", VALUE_EXISTS, typedef_of(integer)).value == 0
