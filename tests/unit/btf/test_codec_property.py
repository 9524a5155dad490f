"""Codecs: random types, laid out as C does, with random values and random bytes."""

from __future__ import annotations

from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from purebpf.btf.codec.codecs import codec
from purebpf.btf.codec.layout import Layout
from purebpf.errors import SchemaError
from tests.support.builders.btf_builder import BtfBuilder

pytestmark = pytest.mark.slow


class Sample:
    """A type in the making and a strategy for its values."""

    def __init__(self, type_id, values, *, octet=False):
        self.type_id = type_id
        self.values = values
        self.octet = octet  # an unsigned char: its arrays are bytes


def integer(draw, b):
    size = draw(st.sampled_from([1, 2, 4, 8, 16]))
    signed = draw(st.booleans())
    bits = 8 * size
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    type_id = b.int(f"{'s' if signed else 'u'}{bits}", size, signed=signed)
    return Sample(type_id, st.integers(low, high), octet=(low, high) == (0, 255))


def boolean(draw, b):
    return Sample(b.int("_Bool", 1, boolean=True), st.booleans())


def text(draw, b):
    size = draw(st.integers(1, 12))
    values = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=size).filter(
        lambda value: len(value.encode("utf-8", "surrogateescape")) <= size
    )
    return Sample(b.array(b.int("char", 1, signed=True), size), values)


def octets(draw, b):
    size = draw(st.integers(1, 12))
    values = st.binary(min_size=size, max_size=size)
    return Sample(b.array(b.int("unsigned char", 1), size), values)


def double(draw, b):
    return Sample(b.float("double", 8), st.floats(allow_nan=False))


def enum(draw, b):
    values = draw(
        st.dictionaries(
            st.text("ABC_", min_size=1, max_size=5), st.integers(-(1 << 31), (1 << 31) - 1)
        )
    )
    return Sample(b.enum("e", values, signed=True), st.integers(-(1 << 31), (1 << 31) - 1))


def array(draw, b, depth):
    element = sample(draw, b, depth - 1)
    count = draw(st.integers(1, 4))
    values = st.tuples(*[element.values] * count)
    return Sample(b.array(element.type_id, count), values.map(bytes) if element.octet else values)


def record(draw, b, depth):
    members = [sample(draw, b, depth - 1) for _ in range(draw(st.integers(0, 5)))]
    pairs = [(f"m{place}", member.type_id) for place, member in enumerate(members)]
    return Sample(b.struct("s", pairs), st.tuples(*(member.values for member in members)))


def bit_fields(draw, b):
    base = b.int("u32", 4)
    widths = draw(st.lists(st.integers(1, 31), min_size=1, max_size=5))
    members, at = [], 0
    for place, width in enumerate(widths):
        members.append((f"b{place}", base, at, width))
        at += width
    values = st.tuples(*(st.integers(0, (1 << width) - 1) for width in widths))
    return Sample(b.struct("bits", members), values)


LEAVES = [integer, boolean, text, octets, double, enum, bit_fields]


def sample(draw, b, depth):
    makers = LEAVES if depth == 0 else [*LEAVES, array, record]
    make = draw(st.sampled_from(makers))
    return make(draw, b) if make in LEAVES else make(draw, b, depth)


@st.composite
def cases(draw):
    b = BtfBuilder(draw(st.sampled_from(["little", "big"])))
    made = sample(draw, b, 3)
    return b.btf(), made.type_id, draw(made.values)


@settings(max_examples=200)
@given(cases())
def test_a_value_comes_back(case):
    btf, type_id, value = case
    for key in (False, True):
        c = codec(btf, type_id, key=key)
        raw = c.encode(value)
        assert len(raw) == c.size == btf.sizeof(type_id)
        assert c.encode(raw) == raw
        if not key:
            assert c.decode(b"?" + raw, 1) == value
            assert list(c.iter_decode(raw * 2)) == ([value, value] if raw else [])
        assert c.encode(c.decode(raw)) == raw


@settings(max_examples=200)
@given(cases(), st.integers(0, 20), st.integers(0, 20), st.data())
def test_many_at_once_are_what_one_by_one_gives(case, before, after, data):
    btf, type_id, _ = case
    for key in (False, True):
        c = codec(btf, type_id, key=key)
        each = st.binary(min_size=c.size, max_size=c.size)
        raws = data.draw(st.lists(each, max_size=4)) * data.draw(st.sampled_from([1, 300]))
        expected = [c.decode(raw) for raw in raws] if c.size else []
        assert repr(list(c.iter_decode(b"".join(raws)))) == repr(expected)  # a NaN is not itself
        many = c.spaced(before, after)
        assert (many is None) == (not c.size)
        if many is not None:
            apart = b"".join(b"<" * before + raw + b">" * after for raw in raws)
            found = list(many(apart))
            assert repr(found) == repr(expected)
            assert list(map(type, found)) == list(map(type, expected))


@settings(max_examples=200)
@given(cases(), st.data())
def test_any_bytes_decode_as_a_key_and_come_back(case, data):
    btf, type_id, _ = case
    c = codec(btf, type_id, key=True)
    raw = data.draw(st.binary(min_size=c.size, max_size=c.size))
    assert c.encode(c.decode(raw)) == raw
    assert hash(c.decode(raw)) == hash(c.decode(raw))


ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(1 << 65), 1 << 65),
    st.floats(),
    st.text(max_size=4),
    st.binary(max_size=9),
    st.tuples(),
    st.dictionaries(st.integers(0, 3), st.integers(0, 3), max_size=2),
)


def written(c, value):
    """The bytes by the long way, part by part, or the error's text."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Layout, "write_at_once", lambda *_: b"")
        patch.setattr(type(c), "plain", None)
        return outcome(c.encode, value)


def outcome(encode, value):
    try:
        return encode(value)
    except SchemaError as error:
        return str(error)


@settings(max_examples=300)
@given(cases(), ODD, st.data())
def test_every_way_to_write_gives_the_same_bytes_or_the_same_error(case, odd, data):
    btf, type_id, value = case
    for key in (False, True):
        c = codec(btf, type_id, key=key)
        values = [value, odd, c.decode(c.encode(value))]
        if isinstance(value, tuple) and value:
            place = data.draw(st.integers(0, len(value) - 1))
            values += [(*value[:place], odd, *value[place + 1 :]), list(value), value[1:]]
        for candidate in values:
            expected = written(c, candidate)
            assert outcome(c.encode, candidate) == expected
            buffer = bytearray(b"\xff" * c.size)
            write = partial(c.writer(), buffer)
            if outcome(write, candidate) is None:
                assert buffer == expected
            else:
                assert isinstance(expected, str)
            many = outcome(c.encode_many, [candidate] * 3)
            assert many == (expected if isinstance(expected, str) else expected * 3)
