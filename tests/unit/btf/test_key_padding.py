"""Padding in keys: what was read goes back in as it came out, and stays apart from other keys."""

from __future__ import annotations

import copy
import pickle
from collections import Counter
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import pytest

from purebpf.btf.codec.codecs import codec
from purebpf.btf.codec.record_class import bind
from purebpf.btf.codec.records import Record, record_class
from purebpf.btf.codec.structs import StructCodec
from tests.support.builders.btf_builder import BtfBuilder

ORDERS = pytest.mark.parametrize("order", ["little", "big"])


class Types(BtfBuilder):
    def __init__(self, order="little"):
        super().__init__(order)
        self.u8 = self.int("unsigned char", 1)
        self.u16 = self.int("unsigned short", 2)
        self.u32 = self.int("unsigned int", 4)
        self.conn = self.struct("conn", [("proto", self.u8), ("pid", self.u32)])

    def key(self, type_id):
        return codec(self.btf(), type_id, key=True)


def raw(proto, padding, pid, order="little"):
    return bytes([proto]) + padding + pid.to_bytes(4, order)


@ORDERS
def test_a_key_goes_back_in_as_it_came_out(order):
    t = Types(order)
    c = t.key(t.conn)
    dirty = raw(6, b"\xaa\xbb\xcc", 17, order)
    key = c.decode(b"?" + dirty, 1)
    assert (key.proto, key.pid) == tuple(key) == (6, 17)
    assert len(key) == 2
    assert isinstance(key, c.record)
    assert c.encode(key) == dirty
    assert [c.encode(each) for each in c.iter_decode(dirty * 3)] == [dirty] * 3
    assert c.encode((6, 17)) == c.encode(key._asdict()) == raw(6, bytes(3), 17, order)


def test_keys_that_differ_in_padding_only_are_different():
    t = Types()
    c = t.key(t.conn)
    clean, one, other = c.iter_decode(
        raw(6, bytes(3), 17) + raw(6, b"\1\0\0", 17) + raw(6, b"\0\0\1", 17)
    )
    assert type(clean) is c.record
    assert clean == (6, 17) == c.record(6, 17)
    assert len({clean, one, other, (6, 17)}) == 3
    for key in (one, other):
        assert key == c.decode(c.encode(key))
        assert hash(key) == hash(c.decode(c.encode(key)))
        for stranger in (clean, (6, 17), c.record(6, 17), None, 5):
            assert key != stranger
            assert stranger != key
            assert not key == stranger  # noqa: SIM201 - the other operator
    assert one != other
    assert sorted([one, clean]) == [one, clean]


def test_a_value_that_the_caller_made_has_no_padding():
    t = Types()
    c = t.key(t.conn)
    key = c.decode(raw(6, b"\1\2\3", 17))
    for made in (type(key)(6, 17), type(key)(pid=17, proto=6), key._replace()):
        assert made == (6, 17) == made
        assert hash(made) == hash((6, 17))
        assert repr(made) == "conn(proto=6, pid=17)"
        assert c.encode(made) == raw(6, bytes(3), 17)
    assert Counter(map(tuple, c.iter_decode(raw(6, b"\1\2\3", 17) + raw(6, b"\1\2\4", 17)))) == {
        (6, 17): 2
    }


def test_padding_is_seen_in_the_repr():
    t = Types()
    key = t.key(t.conn).decode(raw(6, b"\xaa\xbb\xcc", 17))
    assert repr(key) == "<conn(proto=6, pid=17) with padding 00aabbcc00000000>"


def test_copies_keep_padding():
    t = Types()
    key = t.key(t.conn).decode(raw(6, b"\xaa\xbb\xcc", 17))
    for copied in (copy.copy(key), copy.deepcopy(key)):
        assert copied == key
        assert type(copied) is type(key)


def test_without_padding_nothing_is_different():
    t = Types()
    pair = t.struct("pair", [("a", t.u32), ("b", t.u32)])
    assert type(t.key(pair)) is StructCodec
    assert type(codec(t.btf(), t.conn)) is StructCodec  # a value


@ORDERS
def test_padding_is_kept_wherever_it_is(order):
    t = Types(order)
    inner = t.union("", [("byte", t.u8), ("", t.struct("", [("low", t.u8), ("high", t.u16)]))])
    named = t.union("either", [("conn", t.conn), ("word", t.u32)])
    bits = t.struct("bits", [("a", t.u32, 3, 5), ("b", t.u32, 9, 15)], size=4)
    whole = t.struct(
        "whole",
        [("c", t.array(t.conn, 2)), ("", inner), ("u", named), ("f", bits), ("end", t.u8)],
    )
    c = t.key(whole)
    dirty = bytes(range(1, c.size + 1))
    key = c.decode(dirty)
    assert c.encode(key) == dirty
    assert c.encode(tuple(key)) != dirty
    assert next(c.iter_decode(dirty)) == key
    for bit in range(8 * c.size):
        number = int.from_bytes(dirty, "little") ^ 1 << bit
        other = number.to_bytes(c.size, "little")
        assert c.decode(other) != key
        assert c.encode(c.decode(other)) == other


def test_a_key_of_another_btf_keeps_its_padding():
    t, other = Types(), Types()
    dirty = raw(6, b"\xaa\xbb\xcc", 17)
    assert other.key(other.conn).encode(t.key(t.conn).decode(dirty)) == dirty


class Conn(NamedTuple):
    proto: Annotated[int, "u8"]
    pid: Annotated[int, "u32"]


@dataclass(frozen=True)
class Frozen:
    proto: int
    pid: int


@dataclass
class Open:
    proto: int
    pid: int


class Outer(NamedTuple):
    conn: Conn


@pytest.mark.parametrize("cls", [Conn, Frozen])
def test_classes_of_the_users_keep_padding(cls):
    t = Types()
    c = bind(t.key(t.conn), cls)
    dirty = raw(6, b"\1\0\0", 17)
    keys = list(c.iter_decode(raw(6, bytes(3), 17) + dirty + raw(6, b"\2\0\0", 17)))
    assert keys[0] == cls(6, 17)
    assert len(set(keys)) == 3
    assert c.decode(dirty) == keys[1] == copy.copy(keys[1])
    assert all(isinstance(key, cls) for key in keys)
    assert repr(keys[1]).endswith("(proto=6, pid=17) with padding 0001000000000000>")


def test_bound_keys_go_back_in():
    t = Types()
    outer = t.struct("outer", [("conn", t.conn)])
    dirty = raw(6, b"\1\0\0", 17)
    for made in (bind(t.key(t.conn), Conn), bind(t.key(outer), Outer)):
        assert made.encode(made.decode(dirty)) == dirty


def test_a_class_that_cannot_be_hashed_stays_so():
    t = Types()
    key = bind(t.key(t.conn), Open).decode(raw(6, b"\1\0\0", 17))
    assert key != Open(6, 17)
    with pytest.raises(TypeError, match="unhashable"):
        hash(key)


def rebuilt(name, fields, values):
    return record_class(name, fields)(*values)


def test_padding_is_pickled_however_records_are(monkeypatch):
    def reduce(self):
        return rebuilt, (type(self).__name__, self._fields, tuple(self))

    monkeypatch.setattr(Record, "__reduce__", reduce, raising=False)
    t = Types()
    key = t.key(t.conn).decode(raw(6, b"\1\2\3", 17))
    again = pickle.loads(pickle.dumps(key))
    assert again == key
    assert (repr(again), hash(again)) == (repr(key), hash(key))
    assert t.key(t.conn).encode(again) == raw(6, b"\1\2\3", 17)
