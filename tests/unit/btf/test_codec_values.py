"""Codecs: what each type decodes to, and what may be encoded."""

from __future__ import annotations

import math
import struct
from enum import IntEnum
from typing import NamedTuple

import pytest

from purebpf.btf.codec.codecs import codec
from purebpf.btf.codec.values import Integer
from purebpf.errors import FormatError, SchemaError
from tests.support.builders.btf_builder import BtfBuilder

ORDERS = pytest.mark.parametrize("order", ["little", "big"])


class Types(BtfBuilder):
    """A builder with the usual types in it."""

    def __init__(self, order="little"):
        super().__init__(order)
        self.u8 = self.int("unsigned char", 1)
        self.s8 = self.int("signed char", 1, signed=True)
        self.char = self.int("char", 1, signed=True)
        self.u16 = self.int("unsigned short", 2)
        self.s32 = self.int("int", 4, signed=True)
        self.u32 = self.int("unsigned int", 4)
        self.u64 = self.int("unsigned long", 8)
        self.bool = self.int("_Bool", 1, boolean=True)

    def codec(self, type_id, *, key=False):
        return codec(self.btf(), type_id, key=key)


# Single values


@ORDERS
@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("size", [1, 2, 3, 4, 8, 16])
def test_integers_of_each_size_keep_their_value(order, size, signed):
    b = BtfBuilder(order)
    type_id = b.int("n", size, signed=signed)
    c = codec(b.btf(), type_id)
    low = -(1 << 8 * size - 1) if signed else 0
    high = (1 << 8 * size - signed) - 1
    for number in (low, 0, 1, high // 3, high):
        raw = number.to_bytes(size, order, signed=signed)
        assert c.encode(number) == raw
        assert c.decode(raw) == number
        assert c.encode(raw) == raw
    for number in (low - 1, high + 1):
        with pytest.raises(SchemaError, match=f"n: {number} is out of range, {low} to {high}"):
            c.encode(number)
    assert c.size == size


def test_a_value_that_is_not_an_integer_is_refused():
    t = Types()
    for value in ("1", 1.0, None, b"12", [1]):
        with pytest.raises(SchemaError, match="unsigned int: "):
            t.codec(t.u32).encode(value)


def test_booleans_are_bool_where_they_are_0_or_1():
    t = Types()
    c = t.codec(t.bool)
    assert [c.decode(bytes([byte])) for byte in (0, 1, 2)] == [False, True, 2]
    assert c.decode(b"\1") is True
    assert c.decode(b"\0") is False
    assert [c.encode(value) for value in (False, True, 0, 1, 2)] == [
        b"\0", b"\1", b"\0", b"\1", b"\2",
    ]  # fmt: skip
    with pytest.raises(SchemaError, match="_Bool: 256 is out of range"):
        c.encode(256)


@ORDERS
@pytest.mark.parametrize(("size", "code"), [(2, "e"), (4, "f"), (8, "d")])
def test_floats_of_each_size_keep_their_value(order, size, code):
    b = BtfBuilder(order)
    type_id = b.float("f", size)
    c = codec(b.btf(), type_id)
    for value in (0.0, -1.5, math.inf):
        raw = struct.pack((">" if order == "big" else "<") + code, value)
        assert c.encode(value) == raw
        assert c.decode(raw) == value
    assert c.encode(3) == c.encode(3.0)
    with pytest.raises(SchemaError, match="f: 'x' does not fit"):
        c.encode("x")


def test_floats_out_of_range_and_long_doubles():
    b = BtfBuilder()
    single, extended = b.float("float", 4), b.float("long double", 16)
    with pytest.raises(SchemaError, match=r"float: 1e\+300 does not fit"):
        codec(b.btf(), single).encode(1e300)
    assert codec(b.btf(), extended).decode(bytes(range(16))) == bytes(range(16))


@ORDERS
def test_pointers_and_aliases(order):
    t = Types(order)
    pointer = t.const(t.typedef("handle", t.volatile(t.ptr(t.func_proto(0)))))
    c = t.codec(pointer)
    assert c.decode((0xFFFF_8000_0000_1234).to_bytes(8, order)) == 0xFFFF_8000_0000_1234
    assert c.encode(1) == (1).to_bytes(8, order)


@ORDERS
@pytest.mark.parametrize("size", [1, 2, 4, 8])
@pytest.mark.parametrize("kind", ["enum", "enum64"])
def test_enums_are_members_by_number(order, kind, size):
    b = BtfBuilder(order)
    make = getattr(b, kind)
    signed = make("state", {"LOW": -2, "NONE": 0, "HIGH": 3, "ALSO_HIGH": 3}, size)
    unsigned = make("mask", {"ALL": (1 << 8 * min(size, 4)) - 1}, size)
    c = codec(b.btf(), signed)
    low = c.decode((-2).to_bytes(size, order, signed=True))
    assert isinstance(low, IntEnum)
    assert (low.name, low.value, type(low).__name__) == ("LOW", -2, "state")
    assert c.decode((3).to_bytes(size, order)).name == "HIGH"
    assert type(c.decode((7).to_bytes(size, order))) is int
    for value in (low, -2, "LOW"):
        assert c.encode(value) == (-2).to_bytes(size, order, signed=True)
    assert c.encode(7) == (7).to_bytes(size, order)
    with pytest.raises(SchemaError, match="enum state: does not have a value 'MISSING'"):
        c.encode("MISSING")
    with pytest.raises(SchemaError, match=r"enum state: .* is out of range"):
        c.encode(1 << 8 * size - 1)
    full = (1 << 8 * min(size, 4)) - 1
    assert codec(b.btf(), unsigned).decode(full.to_bytes(size, order)).name == "ALL"


def test_an_enum_is_made_once():
    b = BtfBuilder()
    state = b.enum("state", {"ON": 1})
    btf = b.btf()
    assert codec(btf, state) is codec(btf, state)
    assert codec(btf, state).decode(b"\1\0\0\0") is codec(btf, state).decode(b"\1\0\0\0")


def test_enum_names_that_python_keeps_for_itself():
    b = BtfBuilder()
    names = ["mro", "None", "__init__", "_sunder_", "_odd__private", "a b", "", "name", "value"]
    odd = b.enum("odd", {name: place for place, name in enumerate(names)})
    c = codec(b.btf(), odd)
    got = [c.decode(bytes([place, 0, 0, 0])) for place in range(len(names))]
    assert got == list(range(len(names)))
    assert [member.name for member in got if isinstance(member, IntEnum)][:4] == [
        "mro_", "None_", "__init___", "_sunder__",
    ]  # fmt: skip
    assert c.encode("a b") == b"\5\0\0\0"


# Arrays


def test_char_arrays_are_text_up_to_the_first_nul():
    t = Types()
    c = t.codec(t.typedef("comm_t", t.array(t.char, 8)))
    assert c.decode(b"bash\0\0\0\0") == "bash"
    assert c.decode(b"bash\0jnk") == "bash"
    assert c.decode(b"12345678") == "12345678"
    assert c.decode("é\0".encode().ljust(8, b"x")) == "é"
    assert c.decode(b"\xff\0\0\0\0\0\0\0") == "\udcff"
    assert c.encode("bash") == b"bash\0\0\0\0"
    assert c.encode("\udcff") == b"\xff\0\0\0\0\0\0\0"
    assert c.encode("12345678") == c.encode(b"12345678") == b"12345678"
    assert c.encode(b"bash\0jnk") == b"bash\0jnk"
    assert c.encode(bytearray(b"ab")) == b"ab\0\0\0\0\0\0"


def test_text_as_a_key_keeps_what_follows_a_nul():
    t = Types()
    c = t.codec(t.array(t.char, 8), key=True)
    for raw in (b"bash\0\0\0\0", b"bash\0jnk", b"\0\0\0\0\0\0\0x", b"\xff\0\0\xfe\0\0\0\0"):
        assert c.encode(c.decode(raw)) == raw
    assert c.decode(b"bash\0jnk") == "bash\0jnk"
    assert c.decode(b"bash\0\0\0\0") == "bash"


def test_text_that_does_not_fit():
    t = Types()
    c = t.codec(t.array(t.char, 4))
    with pytest.raises(SchemaError, match=r"char\[4\]: 'ééé' takes 6 bytes, but there are 4"):
        c.encode("ééé")
    with pytest.raises(SchemaError, match=r"char\[4\]: 7 is neither str nor bytes"):
        c.encode(7)


def test_unsigned_char_arrays_are_bytes():
    t = Types()
    c = t.codec(t.array(t.typedef("__u8", t.u8), 4))
    assert c.decode(b"\0\1\2\xff") == b"\0\1\2\xff"
    assert c.encode(b"\0\1\2\xff") == c.encode([0, 1, 2, 255]) == b"\0\1\2\xff"
    with pytest.raises(SchemaError, match=r"__u8\[4\]: b'ab' has 2 bytes, not 4"):
        c.encode(b"ab")
    for value in ([0, 1, 2, 256], "abcd", 4, [None] * 4):
        with pytest.raises(SchemaError, match="is neither bytes nor integers from 0 to 255"):
            c.encode(value)


@ORDERS
def test_other_arrays_are_tuples(order):
    t = Types(order)
    sign = ">" if order == "big" else "<"
    numbers = t.codec(t.array(t.s32, 3))
    raw = struct.pack(sign + "3i", 1, -2, 3)
    assert numbers.decode(raw) == (1, -2, 3)
    assert numbers.encode([1, -2, 3]) == numbers.encode(iter((1, -2, 3))) == raw
    flags = t.codec(t.array(t.bool, 2))
    assert flags.decode(b"\1\0") == (True, False)
    signed = t.codec(t.array(t.s8, 2))
    assert signed.decode(b"\xff\1") == (-1, 1)
    states = t.codec(t.array(t.enum("state", {"ON": 1}), 2))
    assert [str(value.name) for value in states.decode(states.encode(["ON", 1]))] == ["ON", "ON"]
    wide = t.codec(t.array(t.int("__int128", 16, signed=True), 2))
    assert wide.decode(wide.encode((-1, 1 << 100))) == (-1, 1 << 100)


def test_arrays_of_arrays():
    t = Types()
    matrix = t.codec(t.array(t.array(t.u16, 3), 2))
    assert matrix.decode(struct.pack("<6H", *range(6))) == ((0, 1, 2), (3, 4, 5))
    assert matrix.encode([(0, 1, 2), [3, 4, 5]]) == struct.pack("<6H", *range(6))
    assert matrix.encode([bytes(6), (3, 4, 5)]) == struct.pack("<6H", 0, 0, 0, 3, 4, 5)
    words = t.codec(t.array(t.array(t.char, 4), 2))
    assert words.decode(b"ab\0xcd\0\0") == ("ab", "cd")
    assert words.encode(("ab", "cd")) == b"ab\0\0cd\0\0"
    with pytest.raises(
        SchemaError, match=r"unsigned short\[2\]\[3\]\[1\]\[2\]: unsigned short: -1 is out"
    ):
        matrix.encode([(0, 1, 2), (3, 4, -1)])


def test_arrays_of_another_length_are_refused():
    t = Types()
    c = t.codec(t.array(t.u32, 3))
    with pytest.raises(SchemaError, match=r"unsigned int\[3\]: \(1, 2\) has 2 elements, not 3"):
        c.encode((1, 2))
    for value in ("abc", 3, {1: 2}):
        with pytest.raises(SchemaError, match="is not a sequence of 3"):
            c.encode(value)
    with pytest.raises(SchemaError, match=r"b'short' has 5 bytes, not 12"):
        c.encode(b"short")


# Structs


@ORDERS
def test_a_struct_is_a_record(order):
    t = Types(order)
    event = t.struct("event", [("pid", t.u32), ("ts", t.u64), ("comm", t.array(t.char, 6))])
    c = t.codec(event)
    sign = ">" if order == "big" else "<"
    raw = struct.pack(sign + "I4xQ6s2x", 7, 9, b"bash\0j")
    record = c.decode(b"\xee" * 3 + raw, 3)
    assert repr(record) == "event(pid=7, ts=9, comm='bash')"
    assert (record.pid, record.ts, record.comm) == tuple(record) == (7, 9, "bash")
    assert record == c.record(7, 9, "bash") == c.record(7, comm="bash", ts=9)
    assert hash(record) == hash((7, 9, "bash"))
    assert record._replace(pid=1) == (1, 9, "bash")
    assert record._asdict() == {"pid": 7, "ts": 9, "comm": "bash"}
    clean = struct.pack(sign + "I4xQ6s2x", 7, 9, b"bash")
    for value in (record, (7, 9, "bash"), [7, 9, b"bash"], record._asdict(), clean):
        assert c.encode(value) == clean


def test_padding_is_zero_and_ignored():
    t = Types()
    c = t.codec(t.struct("s", [("a", t.u8), ("b", t.u64), ("c", t.u16)]))
    raw = b"\1" + b"\xaa" * 7 + struct.pack("<QH", 2, 3) + b"\xaa" * 6
    assert c.decode(raw) == (1, 2, 3)
    assert c.encode((1, 2, 3)) == b"\1" + bytes(7) + struct.pack("<QH", 2, 3) + bytes(6)


def test_other_tuples_with_names_are_taken_by_name():
    class Point(NamedTuple):
        y: int
        x: int

    t = Types()
    c = t.codec(t.struct("point", [("x", t.u8), ("y", t.u8)]))
    assert c.encode(Point(y=2, x=1)) == b"\1\2"


def test_nested_structs_arrays_of_structs_and_their_paths():
    t = Types()
    point = t.struct("point", [("x", t.s8), ("y", t.s8)])
    line = t.struct("line", [("ends", t.array(point, 2)), ("color", t.struct("", [("r", t.u8)]))])
    c = t.codec(line)
    value = c.decode(b"\1\2\3\4\5")
    assert repr(value) == ("line(ends=(point(x=1, y=2), point(x=3, y=4)), color=color(r=5))")
    assert value.ends[1].y == 4
    assert c.encode(value) == b"\1\2\3\4\5"
    assert c.encode({"ends": [(1, 2), {"x": 3, "y": 4}], "color": b"\5"}) == b"\1\2\3\4\5"
    with pytest.raises(
        SchemaError, match=r"struct line\.ends\[1\]\.y: signed char: 200 is out of range, -128 to"
    ):
        c.encode({"ends": [(1, 2), (3, 200)], "color": (5,)})


@pytest.mark.parametrize("name", ["bpf_spin_lock", "bpf_timer", "bpf_list_head", "bpf_rb_root"])
def test_what_the_kernel_keeps_in_a_value_is_zero_where_it_is_not_given(name):
    t = Types()
    own = t.struct(name, [("hidden", t.u32)])
    c = t.codec(t.struct("value", [("own", own), ("count", t.u32)]))
    raw = c.encode({"own": {"hidden": 1}, "count": 2})
    assert c.encode({"count": 2}) == c.encode((None, 2)) == c.encode((2,)) == bytes(4) + raw[4:]
    assert c.encode_many([{"count": 2}, (None, 2), (2,)]) == 3 * (bytes(4) + raw[4:])
    written = bytearray(8)
    c.writer()(written, (2,))
    assert written == bytes(4) + raw[4:]
    with pytest.raises(SchemaError, match=r"struct value\.count: unsigned int: is missing"):
        c.encode({})


@pytest.mark.parametrize("tag", ["kptr", "kptr_untrusted", "percpu_kptr"])
def test_a_reference_of_the_kernel_is_zero_where_it_is_not_given(tag):
    t = Types()
    task = t.ptr(t.type_tag(tag, t.struct("task_struct", [])))
    c = t.codec(t.struct("value", [("task", task), ("count", t.u32)]))
    raw = c.encode((0, 2))
    assert c.encode({"count": 2}) == c.encode((2,)) == raw
    assert c.encode_many([{"count": 2}, (2,), (0, 2)]) == 3 * raw
    with pytest.raises(SchemaError, match=r"\(\) has 0 values for 2 fields"):
        c.encode(())
    other = t.ptr(t.type_tag("uptr", t.struct("page", [])))
    c = t.codec(t.struct("value", [("page", other), ("count", t.u32)]))
    with pytest.raises(SchemaError, match=r"struct value\.page: struct page \*: is missing"):
        c.encode({"count": 2})


def test_unknown_and_wrong_fields_are_refused():
    t = Types()
    c = t.codec(t.struct("point", [("x", t.u8), ("y", t.u8)]))
    with pytest.raises(SchemaError, match="struct point: does not have a field 'z'; it has x, y"):
        c.encode({"x": 1, "z": 1})
    with pytest.raises(SchemaError, match=r"struct point\.y: unsigned char: is missing"):
        c.encode({"x": 1})
    with pytest.raises(SchemaError, match=r"\(1,\) has 1 values for 2 fields: x, y"):
        c.encode((1,))
    with pytest.raises(SchemaError, match="struct point: 7 is neither a record, mapping"):
        c.encode(7)
    with pytest.raises(TypeError, match="point does not take 'z'"):
        c.record(z=1)
    with pytest.raises(TypeError, match="point does not take 'x'"):
        c.record(1, x=1)
    with pytest.raises(TypeError, match="point has 2 fields, got 3"):
        c.record(1, 2, 3)


def test_names_that_python_cannot_have():
    t = Types()
    names = ["from", "_state", "__class__", "count", "index", "_replace", "cls", "self", "a b"]
    c = t.codec(t.struct("odd", [(name, t.u8) for name in names]))
    value = c.decode(bytes(range(9)))
    assert (value.from_, value._state, value.__class___, value._replace_) == (0, 1, 2, 5)
    assert (value.count, value.index, value.cls, value.self, value._8) == (3, 4, 6, 7, 8)
    assert type(value) is c.record
    assert c.names == tuple(names)
    assert c.encode(dict(zip(names, range(9), strict=True))) == bytes(range(9))
    assert c.encode(value._asdict()) == bytes(range(9))
    assert value._replace(self=1, cls=2) == (0, 1, 2, 3, 4, 5, 2, 1, 8)


def test_equal_names_become_different():
    t = Types()
    c = t.codec(t.struct("twice", [("a", t.u8), ("a", t.u8), ("a_2", t.u8)]))
    assert c.decode(b"\1\2\3")._asdict() == {"a": 1, "a_2": 2, "a_2_2": 3}


def test_a_record_class_is_named_after_the_typedef_when_the_struct_has_no_name():
    t = Types()
    c = t.codec(t.typedef("point_t", t.struct("", [("x", t.u8)])))
    assert repr(c.decode(b"\1")) == "point_t(x=1)"
    assert repr(t.codec(t.struct("", [])).decode(b"")) == "anonymous()"


def test_the_order_of_use_changes_no_name():
    t = Types()
    event = t.struct("event", [("when", t.typedef("time_t", t.u64)), ("n", t.u64)])
    alias = t.typedef("event_t", event)
    first = t.codec(alias)
    assert (first.c_type, first.record.__name__) == ("struct event", "event")
    with pytest.raises(SchemaError, match=r"struct event\.when: time_t: -1 is out of range"):
        first.encode((-1, 0))
    with pytest.raises(SchemaError, match=r"struct event\.n: unsigned long: -1 is out of range"):
        first.encode((0, -1))


def test_members_need_not_be_in_the_order_of_their_offsets():
    t = Types()
    c = t.codec(t.struct("reordered", [("b", t.u8, 32), ("a", t.u32, 0)], 8))
    value = c.decode(bytes(range(8)))
    assert (value.a, value.b) == (0x03020100, 4)
    assert c.encode(value) == bytes(range(5)) + bytes(3)


def test_packed_structs_have_their_own_offsets():
    t = Types()
    c = t.codec(t.struct("packed", [("a", t.u8, 0), ("b", t.u32, 8), ("c", t.u16, 40)], 7))
    assert c.decode(b"\1\2\0\0\0\3\0") == (1, 2, 3)


def test_anonymous_members_belong_to_the_parent():
    t = Types()
    inside = t.struct("", [("b", t.u8), ("c", t.u16)])
    c = t.codec(t.struct("outer", [("a", t.u32), ("", inside), ("d", t.u8)]))
    assert c.decode(bytes(range(12)))._asdict() == {"a": 0x03020100, "b": 4, "c": 0x0706, "d": 8}
    assert c.encode({"a": 1, "b": 2, "c": 3, "d": 4}) == b"\1\0\0\0\2\0\3\0\4\0\0\0"
    with pytest.raises(SchemaError, match=r"struct outer\.c: unsigned short: is missing"):
        c.encode({"a": 1, "b": 2, "d": 4})


def test_a_variable_and_a_data_section():
    t = Types()
    first, second = t.var("limit", t.u32), t.var("names", t.array(t.char, 4))
    section = t.codec(t.datasec(".data", [(first, 0, 4), (second, 8, 4)], 16))
    assert repr(section.decode(b"\1\0\0\0....abc\0....")) == ".data(limit=1, names='abc')"
    assert section.encode({"limit": 2, "names": "xy"}) == b"\2\0\0\0\0\0\0\0xy\0\0\0\0\0\0"
    assert t.codec(first).encode(3) == b"\3\0\0\0"


# Bit fields


@ORDERS
def test_bit_fields_keep_their_values(order):
    t = Types(order)
    state = t.enum("state", {"ON": 2})
    members = [
        ("a", t.u32, 0, 3),
        ("b", t.s32, 3, 7),
        ("flag", t.bool, 10, 1),
        ("state", state, 11, 5),
        ("rest", t.u32, 16, 16),
        ("after", t.u8, 32),
    ]
    c = t.codec(t.struct("bits", members, 8))
    fields = {"a": 5, "b": -3, "flag": True, "state": 2, "rest": 0xBEEF}
    widths = [3, 7, 1, 5, 16]
    word = 0
    for value, width in zip(fields.values(), widths, strict=True):
        start = {3: 0, 7: 3, 1: 10, 5: 11, 16: 16}[width]
        shift = start if order == "little" else 32 - start - width
        word |= (int(value) & (1 << width) - 1) << shift
    raw = word.to_bytes(4, order) + b"\x09" + bytes(3)
    assert c.encode({**fields, "after": 9}) == raw
    value = c.decode(raw)
    assert value._asdict() == {**fields, "after": 9}
    assert value.flag is True
    assert value.state.name == "ON"
    assert c.encode({**fields, "state": "ON", "after": 9}) == raw


@ORDERS
def test_bit_fields_over_odd_numbers_of_bytes(order):
    t = Types(order)
    c = t.codec(t.struct("bits", [("a", t.u64, 4, 60), ("b", t.u64, 64, 17)], 16))
    value = (0x0ABC_DEF0_1234_567, 0x1_2345)
    assert c.decode(c.encode(value)) == value
    number = value[0] << 4 if order == "little" else value[0]
    assert c.encode(value)[:8] == number.to_bytes(8, order)


def test_bit_fields_of_the_old_encoding():
    b = BtfBuilder()
    three = b.int("unsigned int", 4, bits=3, offset=2)
    five = b.int("int", 4, bits=5, signed=True)
    old = b.struct("old", [("a", three, 0), ("b", five, 5)], 4)
    c = codec(b.btf(), old)
    assert c.decode((0b11101_101_00).to_bytes(4, "little")) == (5, -3)
    assert c.encode((5, -3)) == (0b11101_101_00).to_bytes(4, "little")


def test_bit_fields_out_of_range():
    t = Types()
    c = t.codec(t.struct("bits", [("a", t.u32, 0, 3), ("b", t.s32, 3, 3)], 4))
    with pytest.raises(SchemaError, match=r"bits\.a: unsigned int : 3: 8 is out of range, 0 to 7"):
        c.encode((8, 0))
    with pytest.raises(SchemaError, match=r"bits\.b: int : 3: 4 is out of range, -4 to 3"):
        c.encode((0, 4))
    with pytest.raises(SchemaError, match=r"bits\.b: int : 3: is missing"):
        c.encode({"a": 1})
    with pytest.raises(SchemaError, match=r"bits\.a: .*'x' is not an integer"):
        c.encode(("x", 1))


# Unions


def test_a_union_shows_every_member():
    t = Types()
    pair = t.struct("pair", [("low", t.u16), ("high", t.u16)])
    c = t.codec(t.union("either", [("word", t.u32), ("pair", pair), ("byte", t.u8)]))
    value = c.decode(b"\1\2\3\4")
    assert repr(value) == "either(word=67305985, pair=pair(low=513, high=1027), byte=1)"
    assert c.encode(value) == b"\1\2\3\4"
    assert c.encode({"word": 5}) == c.encode(c.record(word=5)) == b"\5\0\0\0"
    assert c.encode({"pair": (1, 2)}) == b"\1\0\2\0"
    assert c.encode({"byte": 9}) == b"\x09\0\0\0"
    assert c.encode(b"\1\2\3\4") == b"\1\2\3\4"
    assert c.encode({"pair": (0x0201, 7), "byte": 1}) == b"\1\2\7\0"


def test_members_of_a_union_must_agree():
    t = Types()
    c = t.codec(t.union("either", [("word", t.u32), ("byte", t.u8)]))
    with pytest.raises(SchemaError, match="union either: word, byte do not describe the same"):
        c.encode(c.decode(b"\1\0\0\0")._replace(byte=2))
    with pytest.raises(SchemaError, match="union either: choose one of word, byte"):
        c.encode({})
    with pytest.raises(SchemaError, match=r"either\.byte: unsigned char: 256 is out"):
        c.encode({"byte": 256})


def test_a_union_keeps_what_one_member_does_not_show():
    t = Types()
    text, raw = t.array(t.char, 4), t.array(t.u8, 4)
    padded = t.struct("padded", [("a", t.u8), ("b", t.u16)])
    c = t.codec(t.union("u", [("text", text), ("raw", raw), ("padded", padded), ("on", t.bool)]))
    for blob in (b"a\0jk", b"\4\1\2\3", b"\0\0\0\0"):
        assert c.encode(c.decode(blob)) == blob


def test_an_anonymous_union_belongs_to_the_parent():
    t = Types()
    v4 = t.array(t.u8, 4)
    inside = t.union("", [("v4", v4), ("", t.struct("", [("net", t.u16), ("host", t.u16)]))])
    c = t.codec(t.struct("address", [("family", t.u16), ("", inside), ("port", t.u16)]))
    value = c.decode(b"\2\0\x0a\0\0\1\x50\0")
    assert value._asdict() == {
        "family": 2, "v4": b"\x0a\0\0\1", "net": 10, "host": 256, "port": 80,
    }  # fmt: skip
    raw = b"\2\0\x0a\0\0\1\x50\0"
    assert c.encode(value) == raw
    assert c.encode({"family": 2, "v4": b"\x0a\0\0\1", "port": 80}) == raw
    assert c.encode({"family": 2, "net": 10, "host": 256, "port": 80}) == raw
    with pytest.raises(SchemaError, match=r"address\.host: unsigned short: is missing"):
        c.encode({"family": 2, "net": 10, "port": 80})
    with pytest.raises(SchemaError, match="choose one of v4, net, host"):
        c.encode({"family": 2, "port": 80})


def test_bit_fields_in_a_union():
    t = Types()
    bits = t.struct("", [("low", t.u8, 0, 4), ("high", t.u8, 4, 4)])
    c = t.codec(t.union("u", [("byte", t.u8), ("", bits), ("top", t.u8, 0, 2)]))
    assert c.decode(b"\x5a")._asdict() == {"byte": 0x5A, "low": 10, "high": 5, "top": 2}
    assert c.encode({"low": 10, "high": 5}) == b"\x5a"


# Flexible arrays


def test_a_flexible_array_takes_the_rest():
    t = Types()
    c = t.codec(t.struct("message", [("n", t.u32), ("rest", t.array(t.u16, 0))]))
    assert c.size == 4
    assert c.decode(b"\2\0\0\0\1\0\2\0\3") == (2, (1, 2))
    assert c.decode(b"\2\0\0\0") == (2, ())
    assert c.decode(b"....\2\0\0\0\1\0", 4) == (2, (1,))
    assert c.encode({"n": 2, "rest": [1, 2]}) == b"\2\0\0\0\1\0\2\0"
    assert c.encode({"n": 2}) == c.encode((2, ())) == b"\2\0\0\0"
    assert c.encode((2, b"\1\0\2\0")) == b"\2\0\0\0\1\0\2\0"
    assert c.encode(b"\2\0\0\0\1\0") == b"\2\0\0\0\1\0"
    with pytest.raises(SchemaError, match=r"message\.rest\[1\]: unsigned short: 65536 is out"):
        c.encode((2, [1, 65536]))
    with pytest.raises(SchemaError, match="has fewer than 4 bytes"):
        c.encode(b"\2\0\0")
    for value in (7, b"odd", {1}):
        with pytest.raises(SchemaError, match=r"message\.rest: "):
            c.encode((2, value))


def test_flexible_text_and_bytes():
    t = Types()
    text = t.codec(t.struct("text", [("n", t.u8), ("s", t.array(t.char, 0))]))
    assert text.decode(b"\1path\0junk") == (1, "path")
    assert text.encode((1, "päth")) == "\1päth".encode()
    octets = t.codec(t.struct("octets", [("n", t.u8), ("s", t.array(t.u8, 0))]))
    assert octets.decode(b"\1path\0junk") == (1, b"path\0junk")
    assert octets.encode((1, b"\0\1")) == octets.encode((1, [0, 1])) == b"\1\0\1"


def test_a_flexible_array_may_start_in_the_padding():
    t = Types()
    c = t.codec(t.struct("m", [("n", t.u32), ("k", t.u8), ("s", t.array(t.char, 0))]))
    assert c.size == 8
    assert c.encode((1, 2, "ab")) == b"\1\0\0\0\2ab\0"
    assert c.encode((1, 2, "abcdef")) == b"\1\0\0\0\2abcdef"
    assert c.decode(b"\1\0\0\0\2abcdef") == (1, 2, "abcdef")


def test_a_flexible_array_inside_another_type_is_empty():
    t = Types()
    message = t.struct("message", [("n", t.u8), ("rest", t.array(t.u8, 0))])
    c = t.codec(t.array(message, 2))
    assert c.decode(b"\1\2") == ((1, b""), (2, b""))
    assert c.encode([(1, b""), (2, None)]) == b"\1\2"
    with pytest.raises(SchemaError, match=r"\[1\]: struct message: its rest does not fit in here"):
        c.encode([(1, b""), (2, b"x")])
    with pytest.raises(SchemaError, match="ends with rest, an array of any length"):
        t.codec(message).iter_decode(b"\1\2")


# Buffers


def test_iter_decode_yields_each_record():
    t = Types()
    plain = t.struct("plain", [("a", t.u8), ("b", t.u16)])
    text = t.struct("text", [("a", t.u8), ("s", t.array(t.char, 3))])
    assert list(t.codec(plain).iter_decode(b"\1.\2\0\3.\4\0")) == [(1, 2), (3, 4)]
    assert list(t.codec(text).iter_decode(b"\1ab\0\2cd\0")) == [(1, "ab"), (2, "cd")]
    assert list(t.codec(t.u16).iter_decode(memoryview(b"\1\0\2\0"))) == [1, 2]
    assert list(t.codec(t.bool).iter_decode(b"\1\0")) == [True, False]
    assert list(t.codec(plain).iter_decode(b"")) == []
    assert type(next(t.codec(plain).iter_decode(bytes(4)))).__name__ == "plain"
    for type_id in (plain, text, t.u16):
        with pytest.raises(FormatError, match="9 bytes: is not a whole number of"):
            t.codec(type_id).iter_decode(bytes(9))
    empty = t.codec(t.struct("empty", []))
    assert list(empty.iter_decode(b"")) == []
    with pytest.raises(FormatError, match="is not a whole number of struct empty of 0 bytes"):
        empty.iter_decode(b"x")


def test_short_buffers_are_refused():
    t = Types()
    c = t.codec(t.struct("event", [("a", t.u32), ("b", t.u32)]))
    with pytest.raises(
        FormatError, match="record: offset 4: struct event takes 8 bytes, but 4 are left"
    ):
        c.decode(bytes(8), 4)
    with pytest.raises(FormatError, match="unsigned int takes 4 bytes, but 0 are left"):
        t.codec(t.u32).decode(bytearray(8), 9)


def test_codecs_are_made_once_and_through_aliases():
    t = Types()
    event = t.struct("event", [("a", t.u32)])
    alias = t.typedef("event_t", t.const(event))
    btf = t.btf()
    assert codec(btf, alias) is codec(btf, event)
    assert codec(btf, event, key=True) is not codec(btf, event)


@pytest.mark.parametrize("which", ["fwd", "func_proto", "void"])
def test_what_has_no_size_has_no_codec(which):
    t = Types()
    type_id = {"fwd": t.fwd("later"), "func_proto": t.func_proto(0), "void": 0}[which]
    with pytest.raises(FormatError, match="has no size"):
        t.codec(type_id)


# Errors


def _codecs():
    t = Types()
    point = t.struct("point", [("x", t.u32), ("y", t.u32)])
    kinds = [t.u32, t.bool, t.float("float", 4), t.enum("e", {"A": 1}), point]
    kinds += [t.array(t.char, 4), t.array(t.u8, 4), t.array(t.u32, 4)]
    return [t.codec(kind) for kind in kinds]


@pytest.mark.parametrize("value", ["x" * 10**5, b"x" * 10**5, [-1] * 10**5, {"x" * 10**5: 1}])
def test_a_long_value_is_shown_cut_short(value):
    for c in _codecs():
        with pytest.raises(SchemaError) as caught:
            c.encode(value)
        assert len(str(caught.value)) < 300
        assert "…" in str(caught.value)


def test_a_number_too_long_to_print_is_refused_as_any_other():
    for c in _codecs():
        with pytest.raises(SchemaError):
            c.encode(10**5000)


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("code", "bBhHiIqQ")
def test_many_integers_are_decoded_like_each_of_them(code: str, order: str) -> None:
    layout = struct.Struct(order + code)
    integers = Integer("int", layout.size, order, signed=code.islower())
    numbers = [integers.low, -1 if code.islower() else 1, 0, 7, integers.high]
    data = bytearray(b"".join(map(layout.pack, numbers)))
    for buffer in (bytes(data), data, memoryview(bytes(layout.size) + data)[layout.size :]):
        assert list(integers.iter_decode(buffer)) == numbers
    if layout.size > 1:
        with pytest.raises(FormatError):
            integers.iter_decode(bytes(data) + b"x")
