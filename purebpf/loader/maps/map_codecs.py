"""Keys and values as Python sees them: by BTF type where there is one, else as the kernel defines.

Bytes of the right length always go in as they are.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from itertools import repeat
from typing import Any

from purebpf.abi.bpf import bpf_map_type
from purebpf.btf.codec.codecs import codec
from purebpf.btf.codec.values import shown
from purebpf.btf.types.parse import Btf
from purebpf.errors import SchemaError
from purebpf.loader.maps import map_traits
from purebpf.loader.maps.map_plain_codecs import (
    Bytes,
    Codec,
    Handle,
    Index,
    NoKeys,
    Readable,
    Redirects,
    exactly,
)

__all__ = ["PerCpu", "Prefix", "bound", "key_codec", "value_codec"]

_Spaced = Callable[[int, int], Callable[[Readable], Iterator[Any]] | None]


class Prefix:
    """The key of an LPM trie; an `ipaddress` network or address also encodes as one.

    `struct bpf_lpm_trie_key`: the prefix length in the host's byte order, then the data, most
    significant byte first. Text is a network, too: "10.0.0.0/8". Keys come out as the inner codec
    has them, or as networks once they are `bound` to that.
    """

    def __init__(self, inner: Codec) -> None:
        self.size = inner.size
        self._inner = inner
        self.decode = inner.decode
        self.iter_decode = inner.iter_decode

    def encode(self, value: Any, /) -> bytes:
        """Return the bytes of a network, of an address (all its bits), or of any value of the inner
        codec.

        Raises:
            SchemaError: an address of another size, or as the inner codec.
        """
        if isinstance(value, str):
            value = _network(value)
        address = getattr(value, "network_address", value)
        packed = getattr(address, "packed", None)
        if packed is None:
            return self._inner.encode(value)
        length = value.max_prefixlen if address is value else value.prefixlen
        return exactly(self.size, _LENGTH.pack(length) + packed)

    def bound(self, cls: type) -> Prefix:
        """The same with keys that come out as text, networks, or instances of a record class.

        Raises:
            SchemaError: networks of another size, or as `bound`.
        """
        if cls is not str and not hasattr(cls, "with_prefixlen"):
            return Prefix(bound(self._inner, cls))
        return _Networks(self._inner, cls)


class _Networks(Prefix):
    """The key of an LPM trie that comes out as a network of `ipaddress`, or its text."""

    def __init__(self, inner: Codec, cls: type) -> None:
        from ipaddress import IPv4Network, IPv6Network

        super().__init__(inner)
        network = {8: IPv4Network, 20: IPv6Network}.get(inner.size)
        if network is None or cls not in (str, network):
            raise SchemaError(f"a key of {inner.size} bytes is not an {cls.__name__} (8 or 20)")

        def decode(buffer: Readable, offset: int = 0, /) -> Any:
            (length,) = _LENGTH.unpack_from(buffer, offset)
            packed = bytes(buffer[offset + _LENGTH.size : offset + inner.size])
            if length > 8 * len(packed):  # the kernel refuses such a key, and an error shows it
                return bytes(buffer[offset : offset + inner.size])
            prefix = network((packed, length), strict=False)
            return prefix if cls is network else str(prefix)

        self.decode = decode
        self.iter_decode = lambda buffer: map(
            decode, repeat(buffer), range(0, len(buffer), inner.size)
        )


_LENGTH = struct.Struct("=I")


def _network(text: str) -> Any:
    """The network of a text; an address is one of all its bits."""
    from ipaddress import ip_network

    try:
        return ip_network(text)
    except ValueError as error:
        raise SchemaError(f"not a network: {error}") from None


class PerCpu:
    """A tuple with one value for each possible CPU, in the order of their numbers.

    The kernel rounds each up to 8 bytes and leaves no room for holes in the numbering, so
    position i belongs to `purebpf.loader.host.cpus.possible()[i]`.
    """

    def __init__(self, inner: Codec, cpus: int) -> None:
        self._inner = inner
        self._cpus = cpus
        self._stride = -(-inner.size // 8) * 8
        self._padding = bytes(self._stride - inner.size)
        self.size = self._stride * cpus

    def bound(self, cls: type) -> PerCpu:
        """The same with instances of a class."""
        return PerCpu(bound(self._inner, cls), self._cpus)

    def decode(self, buffer: Readable, offset: int = 0, /) -> tuple[Any, ...]:
        """The values."""
        decode, stride = self._inner.decode, self._stride
        return tuple([decode(buffer, offset + cpu * stride) for cpu in range(self._cpus)])

    def encode(self, value: Any, /) -> bytes:
        """The bytes of a list or tuple with a value for each possible CPU.

        Raises:
            SchemaError: another number of values, or as the inner codec.
        """
        if isinstance(value, bytes | bytearray | memoryview):
            return exactly(self.size, value)
        if not isinstance(value, Sequence) or len(value) != self._cpus:
            raise SchemaError(f"expected a value for each of {self._cpus} CPUs, got {shown(value)}")
        encode = self._inner.encode
        return b"".join([encode(item) + self._padding for item in value])

    def iter_decode(self, buffer: Readable, /) -> Iterator[tuple[Any, ...]]:
        """The tuples."""
        spaced: _Spaced | None = getattr(self._inner, "spaced", None)
        if spaced is None or (many := spaced(0, len(self._padding))) is None:
            return (self.decode(buffer, start) for start in range(0, len(buffer), self.size))
        return zip(*[many(buffer)] * self._cpus, strict=True)


def bound(codec: Codec, cls: type) -> Codec:
    """The codec with a struct's records as instances of `cls`; of a per-CPU map, each CPU's.

    Raises:
        SchemaError: there is no struct, or the class does not mirror it.
    """
    from purebpf.btf.codec.record_class import BoundCodec, bind
    from purebpf.btf.codec.values import Codec as OfBtf

    if isinstance(codec, PerCpu | Prefix):
        return codec.bound(cls)
    if not isinstance(codec, OfBtf | BoundCodec):
        raise SchemaError(f"class {cls.__name__}: the map's BTF does not have a struct for it")
    return bind(codec, cls)


def _codec_of_type(
    btf: Btf | None, type_id: int, size: int, *, key: bool = False, text: bool
) -> Codec | None:
    """The codec of a BTF type, if there is one and it has the size the kernel moves."""
    if btf is None or not type_id or btf.sizeof(type_id) != size:
        return None
    return codec(btf, type_id, key=key, text=text)


def key_codec(
    map_type: int, size: int, btf: Btf | None, type_id: int, *, text: bool = True
) -> Codec:
    """Return the codec of a map's keys; without `text`, char arrays are bytes."""
    if not size:
        return NoKeys(map_type)
    if map_type in map_traits.FD_KEYS and size == Index.size:
        from purebpf.loader.maps.map_owners import Owners

        return Owners(map_type)
    typed = _codec_of_type(btf, type_id, size, key=True, text=text)
    if typed is None:
        typed = Index() if map_type in map_traits.INDEXED and size == Index.size else Bytes(size)
    return Prefix(typed) if map_type == bpf_map_type.BPF_MAP_TYPE_LPM_TRIE else typed


def value_codec(
    map_type: int, size: int, btf: Btf | None, type_id: int, cpus: int, *, text: bool = True
) -> Codec:
    """Return the codec of a map's values; `size` is one CPU's value."""
    if map_type in map_traits.FD_VALUES:
        return Handle(map_traits.FD_SIZE)
    if map_type in map_traits.SOCKETS:
        return Handle(size)
    if map_type in map_traits.REDIRECTS and size == Index.size:
        return Index()
    if map_type in map_traits.REDIRECTS and size == Redirects.size:
        return Redirects()
    one = _codec_of_type(btf, type_id, size, text=text) or Bytes(size)
    return PerCpu(one, cpus) if map_type in map_traits.PER_CPU else one
