"""Parsing: every kind from hand-built bytes, names, split BTF, sizes."""

from __future__ import annotations

import pytest

from purebpf.btf.types import kinds
from purebpf.btf.types.kinds import Kind, Linkage
from purebpf.btf.types.parse import MAX_DEPTH, Btf, essential_name
from purebpf.errors import FormatError
from tests.support.builders.btf_builder import BtfBuilder

ORDERS = pytest.mark.parametrize("order", ["little", "big"])


@ORDERS
def test_every_kind_is_parsed_in_both_byte_orders(order):
    b = BtfBuilder(order)
    expected = {0: kinds.Void()}
    u32 = b.int("unsigned int", 4)
    expected[u32] = kinds.Int("unsigned int", 4, 32, 0, signed=False, is_char=False, is_bool=False)
    odd = b.int("odd", 8, signed=True, char=True, bits=7, offset=3)
    expected[odd] = kinds.Int("odd", 8, 7, 3, signed=True, is_char=True, is_bool=False)
    flag = b.int("_Bool", 1, boolean=True)
    expected[flag] = kinds.Int("_Bool", 1, 8, 0, signed=False, is_char=False, is_bool=True)
    expected[b.ptr(u32)] = kinds.Ptr(u32)
    expected[b.array(flag, 7, u32)] = kinds.Array(flag, u32, 7)
    plain = b.struct("plain", [("a", u32), ("b", odd)])
    expected[plain] = kinds.Struct(
        "plain", 16, (kinds.Member("a", u32, 0, 0), kinds.Member("b", odd, 64, 0))
    )
    expected[b.struct("bits", [("x", u32, 0, 3), ("y", u32, 3, 29)])] = kinds.Struct(
        "bits", 4, (kinds.Member("x", u32, 0, 3), kinds.Member("y", u32, 3, 29))
    )
    expected[b.union("either", [("a", u32), ("b", plain)])] = kinds.Union(
        "either", 16, (kinds.Member("a", u32, 0, 0), kinds.Member("b", plain, 0, 0))
    )
    expected[b.enum("state", {"LOW": -1, "HIGH": 1})] = kinds.Enum(
        "state", 4, True, (kinds.Enumerator("LOW", -1), kinds.Enumerator("HIGH", 1))
    )
    expected[b.enum("mask", {"ALL": 0xFFFFFFFF}, 1)] = kinds.Enum(
        "mask", 1, False, (kinds.Enumerator("ALL", 0xFFFFFFFF),)
    )
    expected[b.fwd("later")] = kinds.Fwd("later", is_union=False)
    expected[b.fwd("either_later", union=True)] = kinds.Fwd("either_later", is_union=True)
    word = b.typedef("word", u32)
    expected[word] = kinds.Typedef("word", u32)
    expected[b.volatile(word)] = kinds.Volatile(word)
    expected[b.const(word)] = kinds.Const(word)
    expected[b.restrict(word)] = kinds.Restrict(word)
    proto = b.func_proto(u32, [("first", word), ("", 0)])
    expected[proto] = kinds.FuncProto(u32, (kinds.Param("first", word), kinds.Param("", 0)))
    expected[b.func("run", proto, 2)] = kinds.Func("run", proto, Linkage.EXTERN)
    var = b.var("counter", u32, 0)
    expected[var] = kinds.Var("counter", u32, Linkage.STATIC)
    expected[b.datasec(".bss", [(var, 4, 4)], 8)] = kinds.Datasec(
        ".bss", 8, (kinds.DatasecEntry(var, 4, 4),)
    )
    expected[b.float("double", 8)] = kinds.Float("double", 8)
    expected[b.decl_tag("kfunc", plain, 1)] = kinds.DeclTag("kfunc", plain, 1)
    expected[b.decl_tag("all", plain)] = kinds.DeclTag("all", plain, -1)
    expected[b.type_tag("user", u32)] = kinds.TypeTag("user", u32)
    expected[b.enum64("wide", {"MIN": -(1 << 63), "MAX": (1 << 63) - 1})] = kinds.Enum64(
        "wide",
        8,
        True,
        (kinds.Enumerator("MIN", -(1 << 63)), kinds.Enumerator("MAX", (1 << 63) - 1)),
    )
    expected[b.enum64("unsigned wide", {"MAX": (1 << 64) - 1})] = kinds.Enum64(
        "unsigned wide", 8, False, (kinds.Enumerator("MAX", (1 << 64) - 1),)
    )

    btf = b.btf()

    assert btf.byteorder == order
    assert len(btf) == len(expected)
    assert {i: btf.type(i) for i in range(len(btf))} == expected
    assert {i: btf.kind(i) for i in range(len(btf))} == {i: t.kind for i, t in expected.items()}
    assert [btf.name(i) for i in range(len(btf))] == [expected[i].name for i in range(len(btf))]
    assert {expected[i].kind for i in expected} == set(Kind)


def test_a_type_is_decoded_once():
    b = BtfBuilder()
    u8 = b.int("u8", 1)
    btf = b.btf()
    assert btf.type(u8) is btf.type(u8)


def test_types_of_other_kinds_with_equal_fields_differ():
    assert kinds.Ptr(1) != kinds.Const(1)


def test_equality_is_by_data_and_base():
    b = BtfBuilder()
    b.int("int", 4, signed=True)
    split = BtfBuilder(base=b)
    split.fwd("x")
    other = BtfBuilder()
    other.int("int", 8, signed=True)
    assert b.btf() == Btf(bytearray(b.bytes()), source="elsewhere")
    assert hash(b.btf()) == hash(b.btf())
    assert b.btf() != other.btf()
    assert split.btf() == split.btf()
    assert Btf(split.bytes(), b.btf()) != Btf(split.bytes(), other.btf())
    assert b.btf() != b.bytes()


def test_btf_without_types_has_void():
    btf = BtfBuilder().btf()
    assert len(btf) == 1
    assert btf.type(0) == kinds.Void()
    assert btf.find("void") == ()


# Names


@pytest.mark.parametrize(
    ("name", "essential"),
    [
        ("task_struct", "task_struct"),
        ("task_struct___old", "task_struct"),
        ("a___b___c", "a___b"),
        ("a____b", "a____b"),
        ("___b", "___b"),
        ("a___", "a___"),
        ("a___b_", "a"),
        ("", ""),
        ("a", "a"),
    ],
)
def test_the_essential_name_is_without_its_flavour(name, essential):
    assert essential_name(name) == essential


def flavoured():
    b = BtfBuilder()
    u32 = b.int("unsigned int", 4)
    ids = {
        "task": b.struct("task", [("pid", u32)]),
        "v2": b.struct("task___v2", [("pid", u32)]),
        "again": b.struct("task___v2", [("tgid", u32)]),
        "typedef": b.typedef("task", u32),
        "longer": b.struct("task_struct", [("task", u32)]),
        "inner": b.struct("my_task", []),
        "nested": b.struct("task___a___b", []),
    }
    return b.btf(), ids


def test_find_by_exact_name():
    btf, ids = flavoured()
    assert btf.find("task") == (ids["task"], ids["typedef"])
    assert btf.find("task", Kind.STRUCT) == (ids["task"],)
    assert btf.find("task", Kind.UNION, Kind.TYPEDEF) == (ids["typedef"],)
    assert btf.find("task___v2") == (ids["v2"], ids["again"])
    assert btf.find("tas") == btf.find("ask") == btf.find("pid") == btf.find("") == ()
    assert btf.find("task\0") == btf.find("no such") == ()


def test_find_by_essential_name():
    btf, ids = flavoured()
    assert btf.find_essential("task", Kind.STRUCT) == (ids["task"], ids["v2"], ids["again"])
    assert btf.find_essential("task___other", Kind.TYPEDEF) == (ids["typedef"],)
    assert btf.find_essential("task___a") == btf.find_essential("task")
    assert btf.find_essential("task___a___b") == (ids["nested"],)


def test_a_name_that_is_in_the_strings_twice_is_found_at_both():
    b = BtfBuilder()
    b._strings += b"twin\0twin\0"
    first, second = b.raw(Kind.FWD, 1), b.raw(Kind.FWD, 6)
    assert b.btf().find("twin") == (first, second)


def test_names_that_share_their_tails_are_found():
    b = BtfBuilder()
    whole = b.fwd("my_task___v2")
    task = b.raw(Kind.FWD, b.string("my_task___v2") + 3)
    btf = b.btf()
    assert btf.name(task) == "task___v2"
    assert btf.find("task___v2") == (task,)
    assert btf.find_essential("task") == (task,)
    assert btf.find("my_task___v2") == (whole,)


def test_a_name_need_not_be_utf8():
    b = BtfBuilder()
    odd = b.fwd("caf\udce9")
    assert b.btf().name(odd) == "caf\udce9"
    assert b.btf().find("caf\udce9") == (odd,)


def test_a_string_is_found_by_its_offset():
    b = BtfBuilder()
    offset = b.string("int main(void)")
    btf = b.btf()
    assert btf.string(offset) == "int main(void)"
    assert btf.string(offset + 4) == "main(void)"
    assert btf.string(0) == ""
    with pytest.raises(FormatError, match="string offset 99 is outside of 16 bytes"):
        btf.string(99)


# Split BTF


@ORDERS
def test_split_btf_continues_ids_and_strings(order):
    base = BtfBuilder(order)
    u32 = base.int("unsigned int", 4)
    shared = base.struct("shared", [("a", u32)])
    module = BtfBuilder(order, base=base)
    own = module.struct("own", [("a", u32), ("s", shared), ("mine", u32)])
    second = module.struct("shared", [])
    flavour = module.struct("shared___m", [])
    btf = module.btf()

    assert own == 3
    assert len(btf) == 6
    assert btf.type(own).members == (
        kinds.Member("a", u32, 0, 0),
        kinds.Member("s", shared, 32, 0),
        kinds.Member("mine", u32, 64, 0),
    )
    assert btf.type(shared) is btf.base.type(shared)
    assert btf.name(u32) == "unsigned int"
    assert btf.kind(second) is Kind.STRUCT
    assert btf.find("shared") == (shared, second)
    assert btf.find("own") == (own,)
    assert btf.find_essential("shared") == (shared, second, flavour)
    assert btf.base.find_essential("shared") == (shared,)
    assert btf.sizeof(own) == 12


def test_strings_of_split_btf():
    base = BtfBuilder()
    first = base.string("first")
    module = BtfBuilder(base=base)
    own = module.fwd("own")
    btf = module.btf()
    assert btf.string(first) == "first"
    assert btf.string(module.string("own")) == "own"
    assert btf.find("own") == (own,)
    with pytest.raises(FormatError, match="string offset 11 is outside of 11 bytes"):
        btf.string(11)


def test_split_names_may_share_tails_with_the_base():
    base = BtfBuilder()
    base.fwd("my_task")
    module = BtfBuilder(base=base)
    task = module.raw(Kind.FWD, base.string("my_task") + 3)
    assert module.btf().find("task") == (task,)


# Sizes and aliases


def test_resolve_and_sizeof():
    b = BtfBuilder()
    u32 = b.int("unsigned int", 4)
    alias = b.typedef("alias", b.const(b.volatile(b.typedef("u32", u32))))
    tag = b.type_tag("user", alias)
    matrix = b.array(b.array(alias, 3), 5)
    pointer = b.ptr(b.ptr(0))
    var = b.var("v", matrix)
    sec = b.datasec(".bss", [(var, 0, 60)], 64)
    btf = b.btf()
    assert btf.resolve(tag) == btf.resolve(u32) == u32
    assert btf.resolve(0) == 0
    assert btf.sizeof(tag) == 4
    assert btf.sizeof(matrix) == btf.sizeof(var) == 60
    assert btf.sizeof(pointer) == 8
    assert btf.sizeof(sec) == 64


@pytest.mark.parametrize(
    ("name", "size", "expected"),
    [("long int", 4, 4), ("unsigned long", 8, 8), ("int", 4, 8), ("long", 2, 8)],
)
def test_a_pointer_is_as_long_as_a_long(name, size, expected):
    b = BtfBuilder()
    b.int(name, size)
    pointer = b.ptr()
    assert b.btf().sizeof(pointer) == b.btf().pointer_size == expected


def test_what_has_no_size_says_so():
    b = BtfBuilder()
    ids = [b.fwd("later"), b.func_proto(0), b.array(0, 3)]
    ids += [0, b.func("f", ids[1]), b.decl_tag("t", ids[0])]
    for type_id in ids:
        with pytest.raises(FormatError, match=rf"built: type {type_id}: .* has no size"):
            b.btf().sizeof(type_id)


def test_sizes_of_4_gib_and_more_are_refused():
    b = BtfBuilder()
    u32 = b.int("unsigned int", 4)
    biggest = b.array(u32, (1 << 30) - 1)
    big = b.array(u32, 1 << 30)
    top = u32
    for _ in range(MAX_DEPTH - 1):
        top = b.array(top, 0xFFFFFFFF)
    assert b.btf().sizeof(biggest) == (1 << 32) - 4
    for type_id in (big, top):
        with pytest.raises(FormatError, match="takes 4 GiB or more"):
            b.btf().sizeof(type_id)


@ORDERS
def test_more_elements_than_16_bits_count(order):
    b = BtfBuilder(order)
    values = {f"V{number}": number for number in range(70_000)}
    wide = b.enum("wide", values)
    last = b.int("int", 4)

    btf = b.btf()

    assert btf.type(wide).values[-1] == kinds.Enumerator("V69999", 69_999)
    assert btf.find("int") == (last,)


@ORDERS
def test_types_of_a_kind_that_only_the_layout_knows(order):
    """Of no use, but harmless: in a kernel's BTF, and in that of its modules."""
    b = BtfBuilder(order, layout={Kind.INT: (4, 0), 20: (4, 8), 100: (0, 0)})
    newer = b.raw(20, "newer", 2, tail=range(5))
    b.raw(100, "newest")
    u32 = b.int("unsigned int", 4)
    module = BtfBuilder(order, b)
    module.raw(20, "again", 1, tail=range(3))
    pointer = module.ptr(newer)

    btf = module.btf()

    assert btf.find("unsigned int", Kind.INT) == (u32,)
    assert btf.type(pointer) == kinds.Ptr(newer)
    assert btf.kind(newer) is Kind.VOID
    assert btf.type(newer) == kinds.Void("newer")
    with pytest.raises(FormatError, match="VOID newer has no size"):
        btf.sizeof(newer)


@ORDERS
def test_names_in_distant_places_are_found(order):
    """The index keeps 15 bits of a name's place: these share them, in pairs and with nameless."""
    b = BtfBuilder(order)
    nameless = b.raw(Kind.CONST, size_or_type=0)
    places = [at | begin for at in range(0, 1 << 18, 1 << 15) for begin in (0, 0xFFF, 0x5800)]
    ids = {}
    for place in places[1:]:
        b.string(f"{place:x}".ljust(place - b.strings_size - 1, "_"))
        ids[f"at_{place:x}"] = b.fwd(f"at_{place:x}")
    btf = b.btf()
    assert {name: btf.find(name) for name in ids} == {name: (found,) for name, found in ids.items()}
    assert nameless not in ids.values()
    assert btf.find("at_") == ()


def test_a_member_with_too_long_a_name_is_refused():
    b = BtfBuilder()
    word = b.int("int", 4)
    good = b.struct("good", [("y" * 4095, word), ("z", word)])
    bad = b.struct("bad", [("a", word), ("x" * 4096, word)])
    outside = b.raw(Kind.STRUCT, "outside", 1, 4, [1 << 20, word, 0])
    b.string("after")
    btf = b.btf()
    assert [member.name for member in btf.type(good).members] == ["y" * 4095, "z"]
    with pytest.raises(FormatError, match="longer than 4096 bytes"):
        btf.type(bad)
    with pytest.raises(FormatError, match="string offset 1048576"):
        btf.type(outside)
