"""Classes that mirror C structs: bound once, or refused with both sides shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import pytest

from purebpf.btf.codec.codecs import codec
from purebpf.btf.codec.record_class import bind
from purebpf.errors import FormatError, SchemaError
from tests.support.builders.btf_builder import BtfBuilder


@pytest.fixture
def event():
    """struct event { u32 pid; s64 delta; char comm[16]; struct point { s16 x, y; } where; }"""
    b = BtfBuilder()
    u32, s64 = b.int("unsigned int", 4), b.int("long", 8, signed=True)
    s16, char = b.int("short", 2, signed=True), b.int("char", 1, signed=True)
    point = b.struct("point", [("x", s16), ("y", s16)])
    type_id = b.struct(
        "event", [("pid", u32), ("delta", s64), ("comm", b.array(char, 16)), ("where", point)]
    )
    return codec(b.btf(), type_id)


class Point(NamedTuple):
    x: int
    y: int


class Event(NamedTuple):
    pid: Annotated[int, "u32"]
    delta: Annotated[int, "s64"]
    comm: Annotated[str, 16]
    where: Point


@dataclass
class Plain:
    pid: int
    delta: int
    comm: str
    where: Point


RAW = b"\7\0\0\0" + bytes(4) + (-9).to_bytes(8, "little", signed=True)
RAW += b"sh".ljust(16, b"\0") + b"\1\0\2\0" + bytes(4)


@pytest.mark.parametrize("cls", [Event, Plain])
def test_values_are_of_the_class(event, cls):
    made = bind(event, cls)
    assert made.decode(RAW) == cls(7, -9, "sh", Point(1, 2))
    assert type(made.decode(RAW).where) is Point
    assert list(made.iter_decode(RAW * 2)) == [cls(7, -9, "sh", Point(1, 2))] * 2
    assert made.size == len(RAW)


class Flat(NamedTuple):
    comm: Annotated[str, 8]
    pid: Annotated[int, "u32"]


@dataclass
class FlatData:
    comm: str
    pid: int


class Derived(Flat):
    def __new__(cls, comm, pid):
        return super().__new__(cls, comm.upper(), pid)


@pytest.mark.parametrize("cls", [Flat, FlatData, Derived])
def test_many_are_what_one_by_one_gives(cls):
    b = BtfBuilder()
    char, u32 = b.int("char", 1, signed=True), b.int("unsigned int", 4)
    made = bind(codec_of(b, b.struct("flat", [("comm", b.array(char, 8)), ("pid", u32)])), cls)
    raw = b"".join(b"sh\0?%4d" % each + each.to_bytes(4, "little") for each in range(1000))
    expected = [made.decode(raw, at) for at in range(0, len(raw), 12)]
    found = list(made.iter_decode(raw))
    assert found == expected
    assert {type(each) for each in found} == {cls}
    assert (made.spaced(8, 4) is None) == (cls is not Flat)  # the others' code must run
    with pytest.raises(FormatError, match="not a whole number"):
        list(made.iter_decode(raw[:-1]))


def test_a_named_tuple_goes_in_as_it_came_out(event):
    made = bind(event, Event)
    assert made.encode(made.decode(RAW)) == RAW


def test_the_two_are_shown_side_by_side(event):
    class Event(NamedTuple):
        pid: Annotated[int, "u32"]
        delta: Annotated[int, "u64"]
        comm: Annotated[str, 8]
        x: int

    with pytest.raises(SchemaError) as caught:
        bind(event, Event)
    assert str(caught.value) == (
        "class Event does not mirror struct event:\n"
        "  class Event                    struct event (40 bytes)\n"
        "  pid: u32 at 0, 4 bytes         pid: unsigned int at 0, 4 bytes\n"
        "  delta: u64 at 8, 8 bytes    != delta: long at 8, 8 bytes\n"
        "  comm: str[8] at 16, 8 bytes != comm: char[16] at 16, 16 bytes\n"
        "  x: int                      != where: struct point at 32, 4 bytes"
    )


class TooShort(NamedTuple):
    pid: int


class OtherOrder(NamedTuple):
    delta: int
    pid: int
    comm: str
    where: Point


class OtherKind(NamedTuple):
    pid: int
    delta: int
    comm: bytes
    where: Point


class OtherInside(NamedTuple):
    pid: int
    delta: int
    comm: str
    where: TooShort


@pytest.mark.parametrize("cls", [TooShort, OtherOrder, OtherKind, OtherInside])
def test_what_does_not_mirror_is_refused(event, cls):
    with pytest.raises(SchemaError, match="does not mirror"):
        bind(event, cls)


def test_offsets_are_compared_where_all_sizes_are_said():
    b = BtfBuilder()
    u8, u32 = b.int("unsigned char", 1), b.int("unsigned int", 4)
    packed = codec_of(b, b.struct("packed", [("a", u8, 0), ("b", u32, 8)], size=5))

    class Natural(NamedTuple):
        a: Annotated[int, "u8"]
        b: Annotated[int, "u32"]

    with pytest.raises(SchemaError, match=r"b: u32 at 4, 4 bytes +!= b: unsigned int at 1"):
        bind(packed, Natural)


def codec_of(b, type_id):
    return codec(b.btf(), type_id)


def test_a_class_that_is_not_a_record_class_is_refused(event):
    with pytest.raises(SchemaError, match="neither a NamedTuple nor a dataclass"):
        bind(event, int)
    b = BtfBuilder()
    with pytest.raises(SchemaError, match="is not a struct"):
        bind(codec_of(b, b.int("int", 4, signed=True)), Event)
