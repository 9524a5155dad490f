"""Keys and values without BTF, per CPU, and as descriptors."""

from __future__ import annotations

import ipaddress
import struct
from typing import Annotated, NamedTuple

import pytest

from purebpf.abi.bpf import bpf_map_type as t
from purebpf.errors import SchemaError
from purebpf.loader.maps.map_codecs import PerCpu, Prefix, bound, key_codec, value_codec
from purebpf.loader.maps.map_plain_codecs import Bytes, Handle, Index
from purebpf.loader.maps.map_stacks import BuildIdStack, StackTrace, stack_codec
from tests.support.builders.btf_builder import BtfBuilder


def u32() -> tuple:
    builder = BtfBuilder()
    type_id = builder.int("unsigned int", 4)
    return builder.btf(), type_id


def test_bytes_are_copied_out_and_checked_in():
    codec = Bytes(3)
    buffer = bytearray(b"abcdef")
    first = codec.decode(buffer, 3)
    buffer[:] = bytes(6)
    assert first == b"def"
    assert codec.encode(memoryview(b"xyz")) == b"xyz"
    assert list(codec.iter_decode(b"abcdef")) == [b"abc", b"def"]
    with pytest.raises(SchemaError, match="expected 3 bytes, got 2"):
        codec.encode(b"xy")
    with pytest.raises(SchemaError, match="takes 3 bytes, not int"):
        codec.encode(7)


@pytest.mark.parametrize("value", [-1, 1 << 32, "0", None, 1.0], ids=repr)
def test_an_index_is_an_unsigned_word(value):
    assert Index().decode(Index().encode(2**32 - 1)) == 2**32 - 1
    with pytest.raises(SchemaError, match="0 to 2"):
        Index().encode(value)


class Opened:
    def fileno(self) -> int:
        return 9


@pytest.mark.parametrize("size", [4, 8])
def test_a_descriptor_is_a_number_or_something_that_has_one(size):
    codec = Handle(size)
    assert codec.encode(Opened()) == codec.encode(9) == (9).to_bytes(size, "little")
    assert codec.decode(codec.encode(9)) == 9
    assert codec.encode(bytes(size)) == bytes(size)
    with pytest.raises(SchemaError, match="expected a file descriptor, got 'nine'"):
        codec.encode("nine")


@pytest.mark.parametrize("size", [1, 4, 8, 12])
@pytest.mark.parametrize("cpus", [1, 2, 5])
def test_per_cpu_values_are_eight_bytes_apart(size, cpus):
    codec = PerCpu(Bytes(size), cpus)
    values = tuple(bytes([cpu + 1]) * size for cpu in range(cpus))
    raw = codec.encode(values)
    stride = -(-size // 8) * 8
    assert len(raw) == codec.size == stride * cpus
    assert raw == b"".join(value.ljust(stride, b"\0") for value in values)
    assert codec.decode(raw) == values
    assert codec.encode(list(values)) == codec.encode(raw) == raw
    assert list(codec.iter_decode(raw * 3)) == [values] * 3
    untold = PerCpu(Index(), cpus)
    assert list(untold.iter_decode(bytes(2 * untold.size))) == [(0,) * cpus] * 2


@pytest.mark.parametrize("value", [(1,), (1, 2, 3), 7, None], ids=repr)
def test_per_cpu_values_are_as_many_as_cpus(value):
    with pytest.raises(SchemaError, match="each of 2 CPUs"):
        PerCpu(Index(), 2).encode(value)


@pytest.mark.parametrize("network", ["10.1.0.0/16", "fd00:1::/32"])
def test_a_network_is_a_prefix(network):
    net = ipaddress.ip_network(network)
    codec = Prefix(Bytes(4 + len(net.network_address.packed)))
    raw = codec.encode(net)
    assert raw == struct.pack("=I", net.prefixlen) + net.network_address.packed
    assert codec.encode(raw) == raw
    with pytest.raises(SchemaError):
        Prefix(Bytes(9)).encode(net)


@pytest.mark.parametrize("network", ["10.1.0.0/16", "fd00:1::/32", "0.0.0.0/0", "::/0"])
def test_a_network_comes_back_as_it_was_given(network):
    net = ipaddress.ip_network(network)
    codec = Prefix(Bytes(4 + len(net.network_address.packed)))
    for cls, key in ((type(net), net), (str, network)):
        keys = bound(codec, cls)
        assert keys.encode(key) == codec.encode(net)
        assert keys.decode(keys.encode(key)) == key
        assert list(keys.iter_decode(2 * keys.encode(key))) == [key, key]
        assert keys.decode(b"??" + keys.encode(key), 2) == key
        with pytest.raises(SchemaError, match=r"not a network: .*10\.1\.2\.3/8 has host bits set"):
            keys.encode("10.1.2.3/8")
    other = {4: ipaddress.IPv6Network, 6: ipaddress.IPv4Network}[net.version]
    with pytest.raises(SchemaError, match=f"is not an {other.__name__}"):
        bound(codec, other)
    with pytest.raises(SchemaError, match="a key of 7 bytes is not an str"):
        bound(Prefix(Bytes(7)), str)


def test_a_key_of_a_trie_may_be_a_record_class():
    b = BtfBuilder()
    u32 = b.int("unsigned int", 4)
    type_id = b.struct("lpm", [("length", u32), ("tag", u32)])
    keys = bound(key_codec(t.BPF_MAP_TYPE_LPM_TRIE, 8, b.btf(), type_id), Lpm)
    assert keys.decode(keys.encode(Lpm(8, 10))) == Lpm(8, 10)
    assert type(keys.decode(bytes(8))) is Lpm
    assert keys.decode(keys.encode("1.0.0.0/8")) == (8, 1)


class Lpm(NamedTuple):
    length: Annotated[int, "u32"]
    tag: Annotated[int, "u32"]


def test_types_come_from_btf_when_they_fit_and_from_the_kernel_otherwise():
    btf, type_id = u32()
    assert key_codec(t.BPF_MAP_TYPE_HASH, 4, btf, type_id).encode(5) == b"\5\0\0\0"
    assert value_codec(t.BPF_MAP_TYPE_HASH, 4, btf, type_id, 1).encode(5) == b"\5\0\0\0"
    # A ring's records are not values of the map, and an object may be wrong about a pinned map.
    assert isinstance(value_codec(t.BPF_MAP_TYPE_HASH, 8, btf, type_id, 1), Bytes)
    assert isinstance(key_codec(t.BPF_MAP_TYPE_HASH, 4, None, 0), Bytes)
    assert isinstance(key_codec(t.BPF_MAP_TYPE_ARRAY, 4, None, 0), Index)
    assert isinstance(key_codec(t.BPF_MAP_TYPE_TASK_STORAGE, 4, btf, type_id), Handle)
    assert isinstance(value_codec(t.BPF_MAP_TYPE_PROG_ARRAY, 4, btf, type_id, 1), Handle)
    assert isinstance(value_codec(t.BPF_MAP_TYPE_SOCKMAP, 8, None, 0, 1), Handle)
    assert isinstance(value_codec(t.BPF_MAP_TYPE_DEVMAP, 4, None, 0, 1), Index)
    assert value_codec(t.BPF_MAP_TYPE_PERCPU_ARRAY, 4, btf, type_id, 3).size == 24


def test_a_stack_ends_at_its_first_zero():
    stack = StackTrace(32)
    raw = struct.pack("=4Q", 1, 2**64 - 1, 0, 0)
    assert stack.decode(b"?" + raw, 1) == (1, 2**64 - 1)
    assert stack.decode(struct.pack("=4Q", 1, 2, 3, 4)) == (1, 2, 3, 4)
    assert stack.decode(bytes(32)) == ()
    assert list(stack.iter_decode(raw * 2)) == [(1, 2**64 - 1)] * 2
    assert stack.size == 32
    for value in (raw, (1, 2**64 - 1), [1, 2**64 - 1]):
        assert stack.encode(value) == raw
    for value in ((1, 2, 3, 4, 5), (-1,), 5, "12", None):
        with pytest.raises(SchemaError, match="4 addresses"):
            stack.encode(value)


def test_a_stack_may_have_build_ids():
    stack = BuildIdStack(96)
    raw = struct.pack("=i20sQ", 1, b"ab" * 10, 0x1000) + struct.pack("=i20sQ", 2, b"", 0x7F00)
    raw += bytes(32)
    found = stack.decode(raw)
    assert found == ((1, b"ab" * 10, 0x1000), (2, bytes(20), 0x7F00))
    assert found[0].build_id == b"ab" * 10
    assert found[1].offset == 0x7F00
    assert list(stack.iter_decode(raw * 2)) == [found] * 2
    assert stack.encode(raw) == stack.encode(found) == raw
    with pytest.raises(SchemaError, match="3 frames"):
        stack.encode(((1, b"ab"),))


@pytest.mark.parametrize(
    ("flags", "size", "cls"),
    [(0, 1016, StackTrace), (32, 64, BuildIdStack), (0, 12, Bytes), (32, 40, Bytes)],
)
def test_the_flags_say_what_is_in_a_stack(flags, size, cls):
    assert type(stack_codec(size, flags)) is cls
