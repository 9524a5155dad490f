"""Packing and unpacking the kernel's structs."""

from __future__ import annotations

import struct

import pytest

from purebpf.abi.layout import Layout
from purebpf.abi.layouts import ATTR
from purebpf.abi.perf import PERF_EVENT_ATTR

SMALL = Layout("small", 24, {"a": (0, "I"), "name": (4, "4s"), "b": (8, "q")}, {"x": (129, 3)})


def test_what_is_not_given_is_zero():
    assert SMALL.pack() == bytes(24)


def test_fields_land_at_their_offsets():
    data = SMALL.pack(a=0x01020304, name=b"ab", b=-2, x=5)
    assert data == bytes.fromhex("04030201 61620000 feffffffffffffff 0a00000000000000")


def test_unpack_inverts_pack():
    values = {"a": 7, "name": b"abcd", "b": -9, "x": 6}
    assert SMALL.unpack(SMALL.pack(**values)) == values


def test_an_older_kernel_fills_fewer_fields():
    assert SMALL.unpack(SMALL.pack(a=7, b=1)[:10]) == {"a": 7, "name": bytes(4)}


def test_an_unknown_field_is_an_error():
    with pytest.raises(KeyError):
        SMALL.pack(nonsense=1)


@pytest.mark.parametrize("value", [-1, 1 << 32, b"1"])
def test_a_field_refuses_what_it_cannot_hold(value):
    with pytest.raises(ValueError, match=r"small\.a: .* does not fit in its 4 bytes"):
        SMALL.pack(a=value)


@pytest.mark.parametrize("value", [8, -1, b"1"])
def test_a_bit_field_refuses_what_it_cannot_hold(value):
    with pytest.raises(ValueError, match=r"small\.x holds 3 bit"):
        SMALL.pack(x=value)


def test_map_create_starts_as_the_manual_says():
    data = ATTR["map_create"].pack(map_type=1, key_size=4, value_size=8, max_entries=16)
    assert data[:16] == struct.pack("=4I", 1, 4, 8, 16)
    assert not any(data[16:])


def test_perf_event_attr_bits_follow_the_header():
    flags = PERF_EVENT_ATTR.pack(disabled=1, inherit=1, comm_exec=1)[40:48]
    assert int.from_bytes(flags, "little") == 1 << 0 | 1 << 1 | 1 << 24
