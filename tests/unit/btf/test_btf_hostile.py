"""BTF that lies: whatever the bytes, the answer is a value or a FormatError, and it comes soon."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from purebpf.btf.codec.codecs import codec
from purebpf.btf.types.kinds import Kind
from purebpf.btf.types.parse import Btf
from purebpf.btf.types.spelling import spell
from purebpf.errors import FormatError
from tests.support.builders.btf_builder import BtfBuilder

pytestmark = pytest.mark.slow


def refuses(data, problem, base=None):
    with pytest.raises(FormatError, match=problem) as caught:
        Btf(data, base, source="evil")
    assert caught.value.source == "evil"


def header(*, magic=0xEB9F, version=1, size=24, types=(0, 0), strings=(0, 1), tail=b"\0"):
    return struct.pack("<HBBIIIII", magic, version, 0, size, *types, *strings) + tail


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "header: 0 bytes are too short"),
        (header()[:23], "header: 23 bytes are too short"),
        (header(magic=0xEB9E), "header: 9eeb0100 is not BTF version 1"),
        (header(version=2), "header: 9feb0200 is not BTF version 1"),
        (header(size=23), "header: it cannot be 23 bytes long"),
        (header(types=(0, 8)), "type section: 8 bytes at 24 do not fit the 25 bytes"),
        (header(types=(0xFFFFFFFF, 0)), "type section: 0 bytes at 4294967319"),
        (header(types=(0, 1)), "type section: 1 bytes at 24"),
        (header(strings=(0, 2)), "string section: 2 bytes at 24 are truncated"),
        (header(strings=(0, 0)), "string section: does not start with NUL"),
        (header(tail=b"a"), "string section: 1 bytes at 24 are truncated, or do not end"),
        (header(strings=(0, 2), tail=b"a\0"), "string section: does not start with NUL"),
    ],
)
def test_damaged_headers_are_refused(data, problem):
    refuses(data, problem)


def test_a_longer_header_is_skipped():
    assert len(Btf(header(size=40, tail=bytes(8) + b"new here\0"))) == 1


@pytest.mark.parametrize("layout", [(0, 5), (0, 3), (9, 4), (0xFFFFFFFF, 0xFFFFFFFC)])
def test_a_layout_that_is_cut_short(layout):
    problem = f"layout section: {layout[1]} bytes at {32 + layout[0]} are truncated, or not whole"
    refuses(header(size=32, tail=struct.pack("<II", *layout) + bytes(9)), problem)


@pytest.mark.parametrize("entry", [(1, 0), (0, 6)])
def test_a_layout_of_parts_of_words(entry):
    b = BtfBuilder(layout={20: entry})
    b.raw(20)
    refuses(b.bytes(), "type 1 at word 0: kind 20 is not one of BTF version 1")


@pytest.mark.parametrize("kind", [0, 20, 31, 32, 127])
def test_unknown_kinds_are_refused(kind):
    b = BtfBuilder()
    b.int("int", 4)
    b.raw(kind)
    refuses(b.bytes(), rf"type 2 at word 4: kind {kind} is not one of BTF version 1")


@pytest.mark.parametrize("tail", [[], [0], [0, 0]])
@pytest.mark.parametrize("kind", [Kind.STRUCT, Kind.DATASEC, Kind.ENUM64])
def test_more_elements_than_bytes(kind, tail):
    b = BtfBuilder()
    b.raw(kind, "x", 65535, 4, tail)
    refuses(b.bytes(), "type 1 at word 0: runs over the end of the type section")


def test_a_lone_word_after_the_last_type():
    b = BtfBuilder()
    b.fwd("x")
    b._words.append(0)
    refuses(b.bytes(), "type 2 at word 3: runs over the end")


def bad_type(kind, *args, **kwargs):
    b = BtfBuilder()
    b.int("int", 4)
    type_id = b.raw(kind, *args, **kwargs)
    return b.btf(), type_id


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ((Kind.PTR, "", 0, 9), "refers to type 9 of 3"),
        ((Kind.ARRAY, "", 0, 0, [1, 3, 1]), "refers to type 3 of 3"),
        ((Kind.ARRAY, "", 0, 0, [0xFFFFFFFF, 1, 1]), "refers to type 4294967295 of 3"),
        ((Kind.STRUCT, "s", 1, 4, [0, 3, 0]), "refers to type 3 of 3"),
        ((Kind.FUNC_PROTO, "", 1, 0, [0, 3]), "refers to type 3 of 3"),
        ((Kind.DATASEC, "d", 1, 4, [3, 0, 4]), "refers to type 3 of 3"),
        ((Kind.STRUCT, "s", 1, 4, [99, 1, 0]), "string offset 99 is outside of 7 bytes"),
        ((Kind.ENUM, "e", 1, 4, [99, 1]), "string offset 99 is outside"),
        ((Kind.FWD, 99), "string offset 99 is outside"),
        ((Kind.INT, "i", 0, 0, [8]), "an int of 0 bytes cannot use 8 bits at bit 0"),
        ((Kind.INT, "i", 0, 4, [33]), "an int of 4 bytes cannot use 33 bits at bit 0"),
        ((Kind.INT, "i", 0, 4, [20 << 16 | 20]), "an int of 4 bytes cannot use 20 bits at bit 20"),
        ((Kind.INT, "i", 0, 17, [8]), "an int of 17 bytes"),
        ((Kind.ENUM, "e", 0, 3), "has a size of 3 bytes, not one of"),
        ((Kind.FLOAT, "f", 0, 5), "has a size of 5 bytes, not one of"),
        ((Kind.FUNC, "f", 3, 1), "has an unknown linkage 3"),
        ((Kind.VAR, "v", 0, 1, [7]), "has an unknown linkage 7"),
    ],
)
def test_a_malformed_type_is_found_when_it_is_decoded(arguments, problem):
    btf, type_id = bad_type(*arguments)
    assert btf.kind(type_id) is arguments[0]
    with pytest.raises(FormatError, match=f"built: type 2: {problem}"):
        btf.type(type_id)


@pytest.mark.parametrize("type_id", [-1, 3, 1 << 40])
def test_ids_that_are_not_there(type_id):
    btf, _ = bad_type(Kind.FWD, "x")
    for method in (btf.type, btf.kind, btf.name, btf.resolve, btf.sizeof):
        with pytest.raises(FormatError, match=f"type {type_id}: there are 3 types"):
            method(type_id)


def test_a_name_outside_the_strings_is_refused():
    btf, type_id = bad_type(Kind.FWD, 99)
    with pytest.raises(FormatError, match="type 2: string offset 99"):
        btf.name(type_id)
    with pytest.raises(FormatError, match="a type's name is at 99, outside of 5 bytes"):
        btf.find("int")


def test_a_name_has_a_limit():
    b = BtfBuilder()
    fits, long = b.fwd("x" * 4095), b.fwd("x" * 4096)
    b.string("after")
    btf = b.btf()
    assert btf.name(fits) == "x" * 4095
    with pytest.raises(FormatError, match="longer than 4096 bytes"):
        btf.type(long)


@pytest.mark.parametrize("kind", [Kind.TYPEDEF, Kind.CONST, Kind.TYPE_TAG, Kind.VOLATILE])
def test_cycles_of_aliases_end(kind):
    b = BtfBuilder()
    b.raw(kind, "a", size_or_type=2)
    b.raw(kind, "b", size_or_type=1)
    btf = b.btf()
    for call in (btf.resolve, btf.sizeof, lambda i: codec(btf, i)):
        with pytest.raises(FormatError, match="or a cycle"):
            call(1)
    assert spell(btf, 1)


def test_a_function_of_itself_ends():
    b = BtfBuilder()
    b.raw(Kind.FUNC_PROTO, size_or_type=1, vlen=1, tail=[0, 1])
    assert spell(b.btf(), 1) == "function (function)"


def test_an_array_of_itself_ends():
    b = BtfBuilder()
    b.raw(Kind.ARRAY, tail=[1, 1, 1])
    btf = b.btf()
    for call in (btf.sizeof, lambda i: codec(btf, i)):
        with pytest.raises(FormatError, match="or a cycle"):
            call(1)
    assert "..." in spell(btf, 1)


def test_a_pointer_to_itself_is_a_pointer():
    b = BtfBuilder()
    b.ptr(1)
    assert b.btf().sizeof(1) == 8
    assert codec(b.btf(), 1).decode(bytes(8)) == 0


@pytest.mark.parametrize("name", ["", "named"])
@pytest.mark.parametrize("kind", [Kind.STRUCT, Kind.UNION])
def test_a_struct_in_itself_ends(kind, name):
    b = BtfBuilder()
    b.raw(kind, "self", 1, 8, [b.string(name), 1, 0])
    with pytest.raises(FormatError, match="contains itself"):
        codec(b.btf(), 1)


def doubling(kind, leaf_members, member, size):
    """A type of which every level contains the one below twice."""
    b = BtfBuilder()
    u8 = b.int("unsigned char", 1)
    top = b.struct("leaf", [("x", u8)] * leaf_members)
    for _ in range(25):
        name = b.string(member)
        top = b.raw(kind, "level", 2, size, [name, top, 0, name, top, 0])
    return b.btf(), top


@pytest.mark.parametrize("kind", [Kind.STRUCT, Kind.UNION])
@pytest.mark.parametrize("leaf_members", [0, 1])
def test_anonymous_members_that_double_with_every_level_end(kind, leaf_members):
    btf, top = doubling(kind, leaf_members, "", 8)
    with pytest.raises(FormatError, match="contains more than 65536 members"):
        codec(btf, top)


@pytest.mark.parametrize(("kind", "size"), [(Kind.STRUCT, 0), (Kind.UNION, 8)])
def test_named_members_that_double_with_every_level_end(kind, size):
    btf, top = doubling(kind, size // 8, "m", size)
    with pytest.raises(FormatError, match=rf"level.* is \d+ values in {size} bytes"):
        codec(btf, top)


def test_a_huge_array_of_nothing_is_refused():
    b = BtfBuilder()
    empty = b.struct("empty", [])
    fine, huge = b.array(empty, 3), b.array(empty, 1 << 20)
    assert codec(b.btf(), fine).decode(b"") == ((), (), ())
    with pytest.raises(FormatError, match="1048576 elements without size"):
        codec(b.btf(), huge)


def test_a_huge_array_costs_nothing_until_there_are_bytes():
    b = BtfBuilder()
    huge = b.array(b.int("unsigned int", 4), (1 << 30) - 1)
    with pytest.raises(FormatError, match="takes 4294967292 bytes, but 16 are left"):
        codec(b.btf(), huge).decode(bytes(16))


@pytest.mark.parametrize(
    ("members", "problem"),
    [
        ([("a", 1), ("b", 1, 16)], "member 'b' overlaps another"),
        ([("a", 1, 40)], "member 'a' overlaps another, or the end of its 8 bytes"),
        ([("a", 1, 4)], "member 'a' starts at bit 4"),
        ([("a", 1, 0, 5), ("b", 1, 4, 5)], "member 'b' overlaps another"),
        ([("a", 1, 60, 5)], "member 'a' overlaps another, or the end"),
        ([("a", 1, 0, 33)], "bit field 'a' has 33 bits of 32"),
        ([("a", 2, 0, 3)], "bit field 'a' is a PTR"),
        ([("a", 3)], "has no size"),
    ],
)
def test_members_that_cannot_be(members, problem):
    b = BtfBuilder()
    b.int("int", 4)
    b.ptr()
    b.fwd("later")
    bad = b.struct("bad", members, 8)
    with pytest.raises(FormatError, match=problem):
        codec(b.btf(), bad)


def test_a_table_of_underscores_is_searched_in_linear_time():
    b = BtfBuilder()
    b.fwd("_" * 500_000)
    assert b.btf().find_essential("x") == ()


def small():
    b = BtfBuilder()
    u32 = b.int("unsigned int", 4)
    char = b.int("char", 1, signed=True)
    name = b.array(char, 8)
    state = b.enum("state", {"OFF": 0, "ON": 1})
    wide = b.enum64("wide", {"MAX": 1 << 40})
    inner = b.union("", [("raw", u32), ("flag", b.struct("", [("x", u32, 0, 3)]))])
    event = b.struct(
        "event___v2",
        [("pid", b.typedef("pid_t", u32)), ("", inner), ("name", name), ("state", state)],
    )
    pointer = b.const(b.ptr(event))
    proto = b.func_proto(u32, [("p", pointer)])
    b.func("run", proto)
    var = b.var("v", event)
    b.datasec(".bss", [(var, 0, 20)], 20)
    b.float("double", 8)
    b.decl_tag("t", event)
    b.type_tag("u", u32)
    b.struct("flexible", [("n", wide), ("rest", b.array(event, 0))])
    return b.bytes()


SMALL = small()


def exercise(data, base=None):
    """Call everything on everything; only FormatError may come out."""
    try:
        btf = Btf(data, base)
    except FormatError:
        return
    calls = [btf.type, btf.kind, btf.name, btf.resolve, btf.sizeof, lambda i: spell(btf, i)]
    calls.append(lambda i: codec(btf, i).decode(bytes(256)))
    calls.append(lambda i: codec(btf, i, key=True))
    for type_id in range(len(btf)):
        for call in calls:
            try:
                call(type_id)
            except FormatError:
                pass
    for name in ("event", "state", "t", ""):
        try:
            btf.find(name)
            btf.find_essential(name, Kind.STRUCT)
        except FormatError:
            pass


def test_every_truncation_is_refused():
    for length in range(len(SMALL)):
        with pytest.raises(FormatError):
            Btf(SMALL[:length])


@pytest.mark.parametrize("byte", [0x00, 0x01, 0x7F, 0xFF])
def test_every_byte_replaced(byte):
    for place in range(len(SMALL)):
        exercise(SMALL[:place] + bytes([byte]) + SMALL[place + 1 :])


@settings(max_examples=150)
@given(st.data())
def test_random_damage_is_a_format_error_at_most(data):
    blob = bytearray(SMALL)
    for _ in range(data.draw(st.integers(1, 6))):
        place = data.draw(st.integers(0, len(blob) - 1))
        blob[place] = data.draw(st.integers(0, 255))
    exercise(bytes(blob))


@settings(max_examples=100)
@given(st.binary(max_size=200), st.binary(max_size=60))
def test_random_sections_behind_a_good_header(types, strings):
    types = types[: len(types) & ~3]
    strings = b"\0" + strings + b"\0"
    blob = header(types=(0, len(types)), strings=(len(types), len(strings)), tail=types + strings)
    exercise(blob)
    exercise(blob, Btf(SMALL))
