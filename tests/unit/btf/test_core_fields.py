"""CO-RE fields: paths through nested types, which types agree, and bit fields."""

from __future__ import annotations

import pytest

from purebpf.abi.bpf import bpf_core_relo_kind as K  # noqa: N812
from purebpf.btf.core.matching import match
from purebpf.errors import CoreRelocationError, FormatError
from purebpf.spec import CoreRelocation
from tests.support.builders.btf_builder import BtfBuilder
from tests.support.builders.core_questions import Maker, build, relocate

OFFSET = K.BPF_CORE_FIELD_BYTE_OFFSET
EXISTS = K.BPF_CORE_FIELD_EXISTS
SIZE = K.BPF_CORE_FIELD_BYTE_SIZE
SIGNED = K.BPF_CORE_FIELD_SIGNED
LSHIFT = K.BPF_CORE_FIELD_LSHIFT_U64
RSHIFT = K.BPF_CORE_FIELD_RSHIFT_U64


def member(make: Maker) -> Maker:
    """A struct `s` with a pad and a member `f`, of the last type made."""

    def both(b: BtfBuilder) -> None:
        type_id = make(b)
        b.struct("s", [("pad", b.int("long", 8)), ("f", type_id)])

    return both


def compatible(local: Maker, target: Maker) -> bool:
    return bool(relocate(member(local), "0:1", EXISTS, member(target)).value)


# Paths


def array_of_structs(inner: list[str], count: int, pad: int = 0) -> Maker:
    def make(b: BtfBuilder) -> None:
        integer = b.int("int", 4)
        element = b.struct("element", [(name, integer) for name in inner])
        members = [(f"pad{n}", integer) for n in range(pad)]
        b.struct("s", [*members, ("list", b.array(element, count))])

    return make


def test_an_index_of_the_root_counts_whole_roots() -> None:
    local, target = array_of_structs(["a"], 1), array_of_structs(["x", "a"], 3, pad=1)
    result = relocate(local, "2:0", OFFSET, target)
    assert (result.value, result.what) == (2 * 28 + 4, "struct s[2].list")


def test_a_path_goes_through_arrays_and_structs() -> None:
    local, target = array_of_structs(["a", "b"], 4), array_of_structs(["x", "b", "a"], 4, pad=2)
    result = relocate(local, "0:0:3:1", OFFSET, target)
    assert (result.value, result.what) == (8 + 3 * 12 + 4, "struct s.list[3].b")
    assert (result.local_value, result.local_size, result.size) == (28, 4, 4)


@pytest.mark.parametrize(("count", "value"), [(1, 0), (2, 0), (3, 1), (9, 1)])
def test_an_index_must_be_inside_the_target_array(count: int, value: int) -> None:
    local, target = array_of_structs(["a"], 3), array_of_structs(["a"], count)
    assert relocate(local, "0:0:2", EXISTS, target).value == value


def test_an_index_must_be_inside_the_local_array() -> None:
    local = array_of_structs(["a"], 3)
    with pytest.raises(FormatError, match="element 3 of 3"):
        relocate(local, "0:0:3", OFFSET, local)


def test_the_flexible_last_member_has_every_element() -> None:
    flexible = array_of_structs(["a"], 0, pad=1)
    assert relocate(flexible, "0:1:1000", OFFSET, flexible).value == 4 + 4000


def test_an_empty_array_in_the_middle_has_no_elements() -> None:
    def middle(b: BtfBuilder) -> None:
        integer = b.int("int", 4)
        b.struct("s", [("f", b.array(integer, 0)), ("after", integer)])

    def last(b: BtfBuilder) -> None:
        integer = b.int("int", 4)
        b.struct("s", [("after", integer), ("f", b.array(integer, 0))])

    assert relocate(last, "0:1:0", EXISTS, last).value == 1
    assert relocate(last, "0:1:0", EXISTS, middle).value == 0
    with pytest.raises(FormatError, match="element 0 of 0"):
        relocate(middle, "0:0:0", EXISTS, last)


def test_an_empty_array_within_an_array_has_no_elements() -> None:
    def nested(b: BtfBuilder) -> None:
        b.struct("s", [("f", b.array(b.array(b.int("int", 4), 0), 2))])

    with pytest.raises(FormatError, match="element 0 of 0"):
        relocate(nested, "0:0:1:0", EXISTS, nested)


def test_dimensions_are_followed_one_by_one() -> None:
    def matrix(rows: int, columns: int) -> Maker:
        return lambda b: b.struct("s", [("f", b.array(b.array(b.int("int", 4), columns), rows))])

    result = relocate(matrix(2, 3), "0:0:1:2", OFFSET, matrix(4, 5))
    assert (result.value, result.local_value) == (5 * 4 + 2 * 4, 3 * 4 + 2 * 4)


def test_a_load_of_an_array_is_one_of_its_elements() -> None:
    result = relocate(array_of_structs(["a"], 3), "0:0", OFFSET, array_of_structs(["a", "b"], 3))
    assert (result.local_size, result.size) == (4, 8)


def test_nameless_structs_and_unions_are_searched_in_the_target() -> None:
    def target(b: BtfBuilder) -> None:
        integer = b.int("int", 4)
        inner = b.struct("", [("x", integer), ("f", integer)])
        choice = b.union("", [("other", integer), ("", inner)])
        b.struct("s", [("pad", integer), ("", choice)])

    result = relocate(lambda b: b.struct("s", [("f", b.int("int", 4))]), "0:0", OFFSET, target)

    assert result.value == 8


def test_nameless_structs_on_the_local_path_have_no_counterpart() -> None:
    def local(b: BtfBuilder) -> None:
        integer = b.int("int", 4)
        b.struct("s", [("", b.union("", [("pad", integer), ("f", integer)]))])

    def target(b: BtfBuilder) -> None:
        integer = b.int("int", 4)
        b.struct("s", [("pad", integer), ("f", integer)])

    result = relocate(local, "0:0:1", OFFSET, target)
    assert (result.value, result.what) == (4, "struct s.f")


def test_nameless_members_may_be_behind_typedefs() -> None:
    def target(b: BtfBuilder) -> None:
        integer = b.int("int", 4)
        inner = b.const(b.typedef("inner", b.struct("", [("pad", integer), ("f", integer)])))
        b.struct("s", [("", inner)])

    result = relocate(lambda b: b.struct("s", [("f", b.int("int", 4))]), "0:0", OFFSET, target)
    assert result.value == 4


def test_the_search_goes_on_after_a_nameless_struct_with_the_wrong_type() -> None:
    def target(b: BtfBuilder) -> None:
        integer = b.int("int", 4)
        wrong = b.struct("", [("f", b.ptr(0))])
        b.struct("s", [("", wrong), ("", b.struct("", [("pad", integer), ("f", integer)]))])

    result = relocate(lambda b: b.struct("s", [("f", b.int("int", 4))]), "0:0", OFFSET, target)
    assert result.value == 12


def test_a_name_is_compared_in_full() -> None:
    local = lambda b: b.struct("s", [("f___old", b.int("int", 4))])  # noqa: E731
    target = lambda b: b.struct("s", [("f", b.int("int", 4))])  # noqa: E731
    assert relocate(local, "0:0", EXISTS, target).value == 0


def nest(depth: int) -> Maker:
    """`f` below `depth` nameless structs."""

    def make(b: BtfBuilder) -> None:
        inner = b.struct("", [("f", b.int("int", 4))])
        for _ in range(depth - 1):
            inner = b.struct("", [("", inner)])
        b.struct("s", [("", inner)])

    return make


def test_a_path_has_at_most_64_levels() -> None:
    flat = lambda b: b.struct("s", [("f", b.int("int", 4))])  # noqa: E731
    assert relocate(flat, "0:0", EXISTS, nest(62)).value == 1
    with pytest.raises(CoreRelocationError, match="64 levels"):
        relocate(flat, "0:0", EXISTS, nest(63))


def test_a_struct_in_itself_is_searched_once() -> None:
    def target(b: BtfBuilder) -> None:
        integer = b.int("int", 4)
        itself = b.next_id
        b.raw(4, "s", 3, 12, [0, itself, 0, 0, itself, 0, b.string("x"), integer, 0])

    flat = lambda b: b.struct("s", [("f", b.int("int", 4))])  # noqa: E731
    assert relocate(flat, "0:0", EXISTS, target).value == 0


def test_many_equal_nameless_structs_are_searched_once() -> None:
    def target(b: BtfBuilder) -> None:
        inner = b.struct("", [("x", b.int("int", 4))])
        for _ in range(60):
            inner = b.union("", [("", inner), ("", inner)])
        b.struct("s", [("", inner)])

    flat = lambda b: b.struct("s", [("f", b.int("int", 4))])  # noqa: E731
    assert relocate(flat, "0:0", EXISTS, target).value == 0


def test_a_typedef_is_a_root_of_its_own_kind() -> None:
    def typedef(b: BtfBuilder) -> None:
        integer = b.int("int", 4)
        b.typedef("alias", b.const(b.struct("", [("x", integer), ("f", integer)])))

    def struct(b: BtfBuilder) -> None:
        b.struct("alias", [("f", b.int("int", 4))])

    assert relocate(typedef, "0:1", OFFSET, typedef).value == 4
    assert relocate(typedef, "0:1", EXISTS, struct).value == 0


@pytest.mark.parametrize("kind", [SIGNED, LSHIFT, RSHIFT])
def test_an_element_has_neither_sign_nor_shifts(kind: int) -> None:
    local = array_of_structs(["a"], 3)
    with pytest.raises(FormatError, match="cannot answer kind"):
        relocate(local, "0:0:1", kind, local)


def test_the_root_has_an_offset_and_a_size() -> None:
    local, target = array_of_structs(["a"], 3), array_of_structs(["a"], 5)
    assert relocate(local, "0", SIZE, target).value == 20
    assert relocate(local, "0", OFFSET, target).value == 0
    assert relocate(local, "0", EXISTS, target).value == 1


# Which members may stand for each other


def test_any_two_integers_agree() -> None:
    assert compatible(lambda b: b.int("int", 4, signed=True), lambda b: b.int("u8", 1))


def test_integers_with_a_bit_offset_do_not_agree() -> None:
    old = lambda b: b.int("old", 4, bits=3, offset=5)  # noqa: E731
    assert not compatible(lambda b: b.int("int", 4), old)
    assert not compatible(old, lambda b: b.int("int", 4))


def test_any_two_pointers_agree() -> None:
    assert compatible(lambda b: b.ptr(b.int("int", 4)), lambda b: b.ptr(b.struct("x", [])))


def test_any_two_floats_agree() -> None:
    assert compatible(lambda b: b.float("float", 4), lambda b: b.float("double", 8))


def test_structs_and_unions_agree_whatever_their_names() -> None:
    assert compatible(lambda b: b.struct("a", []), lambda b: b.union("b", []))


@pytest.mark.parametrize(
    ("local", "target", "agree"),
    [
        ("color", "color", True),
        ("color___old", "color___2", True),
        ("", "color", True),
        ("color", "", True),
        ("color", "colour", False),
    ],
)
def test_enums_agree_by_name(local: str, target: str, agree: bool) -> None:
    assert compatible(lambda b: b.enum(local, {}), lambda b: b.enum(target, {})) is agree
    assert compatible(lambda b: b.enum(local, {}), lambda b: b.enum64(target, {})) is agree


def test_forward_declarations_agree_by_name() -> None:
    def pointer_free(name: str) -> Maker:
        return lambda b: b.fwd(name)

    def exists(local: str, target: str) -> int:
        def make(name: str) -> Maker:
            return lambda b: b.struct("s", [("f", b.fwd(name), 0)], size=8)

        return relocate(make(local), "0:0", EXISTS, make(target)).value

    assert exists("a", "a___x") == 1
    assert exists("a", "b") == 0


def test_arrays_agree_when_their_elements_do() -> None:
    ints = lambda b: b.array(b.int("int", 4), 2)  # noqa: E731
    assert compatible(ints, lambda b: b.array(b.array(b.int("u8", 1), 1), 1)) is False
    assert compatible(ints, lambda b: b.array(b.int("u8", 1), 9))
    assert not compatible(ints, lambda b: b.array(b.ptr(0), 2))


@pytest.mark.parametrize("wrap", ["typedef", "const", "volatile", "restrict", "type_tag"])
def test_typedefs_and_modifiers_do_not_matter(wrap: str) -> None:
    def wrapped(b: BtfBuilder) -> int:
        inner = b.int("int", 4)
        named = wrap in ("typedef", "type_tag")
        return getattr(b, wrap)(*(("name", inner) if named else (inner,)))

    assert compatible(lambda b: b.int("int", 4), wrapped)
    assert compatible(wrapped, lambda b: b.int("int", 4))


def test_different_kinds_do_not_agree() -> None:
    assert not compatible(lambda b: b.int("int", 8), lambda b: b.ptr(0))
    assert not compatible(lambda b: b.enum("e", {}), lambda b: b.int("int", 4))


def test_members_that_are_not_data_do_not_agree() -> None:
    def function(b: BtfBuilder) -> None:
        b.struct("s", [("f", b.func_proto(0), 0)], size=8)

    assert relocate(function, "0:0", EXISTS, function).value == 0


def test_an_array_of_itself_is_refused() -> None:
    def cycle(b: BtfBuilder) -> None:
        itself = b.next_id
        b.raw(3, tail=[itself, itself, 1])
        b.struct("s", [("f", itself, 0)], size=8)

    with pytest.raises(CoreRelocationError, match="32 deep"):
        relocate(cycle, "0:0", EXISTS, cycle)


# Numbers


def test_sizes_are_those_of_each_side() -> None:
    result = relocate(
        member(lambda b: b.int("u32", 4)), "0:1", SIZE, member(lambda b: b.int("u8", 1))
    )
    assert (result.value, result.local_value) == (1, 4)


@pytest.mark.parametrize(
    ("make", "signed"),
    [
        (lambda b: b.int("int", 4, signed=True), 1),
        (lambda b: b.int("unsigned int", 4), 0),
        (lambda b: b.enum("e", {"A": -1}), 1),
        (lambda b: b.enum("e", {"A": 1}), 0),
        (lambda b: b.enum64("e", {"A": -1}), 1),
        (lambda b: b.ptr(0), 0),
        (lambda b: b.struct("x", [], size=8), 0),
    ],
)
def test_signedness_is_that_of_the_integer_or_enum(make: Maker, signed: int) -> None:
    assert relocate(member(make), "0:1", SIGNED, member(make)).value == signed


def bit_field(size: int, bit_offset: int, bits: int, *, signed: bool = False) -> Maker:
    def make(b: BtfBuilder) -> None:
        integer = b.int(f"int{size}", size, signed=signed)
        b.struct("s", [("f", integer, bit_offset, bits)], size=64)

    return make


def bits_of(make: Maker, byteorder: str = "little") -> tuple[int, ...]:
    """Offset, size, left and right shift."""
    btf = build(make, byteorder)
    kinds = (OFFSET, SIZE, LSHIFT, RSHIFT)
    relocations = [CoreRelocation(0, len(btf) - 1, "0:0", kind) for kind in kinds]
    return tuple(result.value for result in match(btf, relocations, [btf]))


@pytest.mark.parametrize(
    ("size", "bit_offset", "bits", "expected"),
    [
        (4, 0, 3, (0, 4, 61, 61)),
        (4, 29, 3, (0, 4, 32, 61)),
        (4, 32, 3, (4, 4, 61, 61)),
        (4, 30, 3, (0, 8, 31, 61)),  # grows: two words
        (1, 7, 2, (0, 2, 55, 62)),
        (1, 15, 2, (0, 4, 47, 62)),
        (1, 31, 2, (0, 8, 31, 62)),
        (8, 65, 50, (8, 8, 13, 14)),
        (2, 100, 12, (12, 2, 48, 52)),
        (3, 20, 8, (0, 6, 36, 56)),  # no power of two, as libbpf
    ],
)
def test_a_bit_field_is_an_aligned_load_that_holds_it(
    size: int, bit_offset: int, bits: int, expected: tuple[int, ...]
) -> None:
    assert bits_of(bit_field(size, bit_offset, bits)) == expected


def test_the_left_shift_of_big_endian_counts_from_the_other_end() -> None:
    assert bits_of(bit_field(4, 5, 3), "big") == (0, 4, 32 + 5, 61)
    assert bits_of(member_of_two_bytes, "big") == (0, 2, 48, 48)


def member_of_two_bytes(b: BtfBuilder) -> None:
    b.struct("s", [("f", b.int("short", 2))])


def test_a_bit_field_over_the_edge_of_64_bits_cannot_be_read() -> None:
    with pytest.raises(CoreRelocationError, match="no aligned 64-bit load"):
        bits_of(bit_field(8, 63, 2))


def test_only_the_sign_and_the_right_shift_of_a_bit_field_are_checked() -> None:
    def is_checked(kind: int, bits: int) -> bool:
        make = bit_field(4, 0, bits)
        return relocate(make, "0:0", kind, make).is_checked

    kinds = (OFFSET, SIZE, LSHIFT, RSHIFT, SIGNED)
    assert [is_checked(kind, 3) for kind in kinds] == [False, False, False, True, True]
    assert [is_checked(kind, 0) for kind in kinds] == [True] * 5


def test_a_load_of_a_bit_field_keeps_its_width() -> None:
    result = relocate(bit_field(4, 0, 3), "0:0", OFFSET, bit_field(8, 0, 3))
    assert (result.local_size, result.size, result.misfit) == (0, 0, "")


@pytest.mark.parametrize(
    ("local", "target", "fits"),
    [
        (lambda b: b.int("u32", 4), lambda b: b.int("u64", 8), True),
        (lambda b: b.int("bool", 1, boolean=True), lambda b: b.int("u32", 4), True),
        (lambda b: b.int("s32", 4, signed=True), lambda b: b.int("s64", 8, signed=True), False),
        (lambda b: b.int("u32", 4), lambda b: b.int("s64", 8, signed=True), False),
        (lambda b: b.int("s32", 4, signed=True), lambda b: b.int("u64", 8), False),
        (lambda b: b.int("s32", 4, signed=True), lambda b: b.int("s32", 4, signed=True), True),
        (lambda b: b.enum("e", {}, 4), lambda b: b.enum("e", {}, 8), False),
        (lambda b: b.struct("x", [], size=4), lambda b: b.struct("x", [], size=8), False),
    ],
)
def test_only_unsigned_integers_change_the_width_of_a_load(
    local: Maker, target: Maker, fits: bool
) -> None:
    result = relocate(member(local), "0:1", OFFSET, member(target))
    assert (not result.misfit) is fits
    assert not result.problem


def test_pointers_change_the_width_of_a_load() -> None:
    def with_long(size: int) -> Maker:
        def make(b: BtfBuilder) -> None:
            b.int("long", size, signed=True)
            b.struct("s", [("f", b.ptr(0), 0)], size=8)

        return make

    result = relocate(with_long(8), "0:0", OFFSET, with_long(4))
    assert (result.local_size, result.size, result.misfit) == (8, 4, "")
