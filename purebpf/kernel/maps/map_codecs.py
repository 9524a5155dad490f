"""Keys and values as Python sees them: by BTF type where there is one, else as the kernel defines.

Bytes of the right length always go in as they are.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from itertools import repeat
from operator import itemgetter
from typing import Any, Protocol

from purebpf.abi.bpf import bpf_map_type
from purebpf.btf.codec.codecs import codec
from purebpf.btf.codec.values import shown
from purebpf.btf.types.parse import Btf
from purebpf.errors import SchemaError
from purebpf.kernel.maps import map_traits
from purebpf.tuples import NamedTuple

__all__ = [
    "Bytes",
    "Codec",
    "Handle",
    "Index",
    "NoKeys",
    "PerCpu",
    "Prefix",
    "Redirect",
    "Redirects",
    "bound",
    "key_codec",
    "value_codec",
]

Readable = bytes | bytearray | memoryview
_Spaced = Callable[[int, int], Callable[[Readable], Iterator[Any]] | None]


class Codec(Protocol):
    """What `purebpf.btf.codec.codecs.codec` gives, too: values of `size` bytes."""

    @property
    def size(self) -> int:
        """Bytes of one value."""

    def decode(self, buffer: Readable, offset: int = 0, /) -> Any:
        """The value at `offset`."""

    def encode(self, value: Any, /) -> bytes:
        """The bytes of `value`; SchemaError when the type cannot hold it."""

    def iter_decode(self, buffer: Readable, /) -> Iterator[Any]:
        """Every value of `buffer`, which has a whole number of them."""


class Bytes:
    """Values without a type: bytes in, bytes out."""

    def __init__(self, size: int) -> None:
        self.size = size

    def decode(self, buffer: Readable, offset: int = 0, /) -> bytes:
        """A copy of the bytes."""
        if len(buffer) == self.size:
            return bytes(buffer)
        return bytes(buffer[offset : offset + self.size])

    def encode(self, value: Any, /) -> bytes:
        """The bytes, of exactly `size`.

        Raises:
            SchemaError: no bytes, or another number of them.
        """
        return _exactly(self.size, value)

    def iter_decode(self, buffer: Readable, /) -> Iterator[bytes]:
        """Copies, one after the other."""
        if not self.size:
            return iter(())
        return self.spaced(0, 0)(buffer)

    def spaced(self, before: int, after: int) -> Callable[[Readable], Iterator[bytes]]:
        """As `purebpf.btf.codec.codecs.Codec.spaced`."""
        unpack = struct.Struct(f"{before}x{self.size}s{after}x").iter_unpack
        return lambda buffer: map(itemgetter(0), unpack(buffer))


class NoKeys(Bytes):
    """The keys of a map without keys: accepts only b""."""

    def __init__(self, map_type: int) -> None:
        super().__init__(0)
        self._map_type = map_type

    def encode(self, value: Any, /) -> bytes:
        """b"".

        Raises:
            SchemaError: anything else; says what there is instead.
        """
        if isinstance(value, bytes | bytearray | memoryview) and not len(value):
            return b""
        kind = map_traits.type_name(self._map_type)
        instead = _INSTEAD_OF_KEYS.get(self._map_type)
        raise SchemaError(f"a {kind} does not have keys" + (f": use {instead}" if instead else ""))


_INSTEAD_OF_KEYS: dict[int, str] = {
    bpf_map_type.BPF_MAP_TYPE_QUEUE: "push(value), pop() and peek()",
    bpf_map_type.BPF_MAP_TYPE_STACK: "push(value), pop() and peek()",
    bpf_map_type.BPF_MAP_TYPE_BLOOM_FILTER: "push(value) and `value in map`",
    bpf_map_type.BPF_MAP_TYPE_RINGBUF: "read()",
    bpf_map_type.BPF_MAP_TYPE_USER_RINGBUF: "writer()",
    bpf_map_type.BPF_MAP_TYPE_ARENA: "arena",
}


def _exactly(size: int, value: Any) -> bytes:
    if type(value) is bytes and len(value) == size:
        return value
    if not isinstance(value, bytes | bytearray | memoryview):
        raise SchemaError(f"a map without BTF takes {size} bytes, not {type(value).__name__}")
    if len(data := bytes(value)) != size:
        raise SchemaError(f"expected {size} bytes, got {len(data)}")
    return data


class Index:
    """An unsigned number of 4 bytes: the index of an array, or the id of a kernel object."""

    size = 4
    _U32 = struct.Struct("=I")

    def decode(self, buffer: Readable, offset: int = 0, /) -> int:
        """The number."""
        number: int = self._U32.unpack_from(buffer, offset)[0]
        return number

    def encode(self, value: Any, /) -> bytes:
        """The bytes of an int from 0 to 2**32 - 1.

        Raises:
            SchemaError: anything else.
        """
        if isinstance(value, bytes | bytearray | memoryview):
            return _exactly(self.size, value)
        try:
            return self._U32.pack(value)
        except struct.error:
            raise SchemaError(f"an index must be 0 to 2**32 - 1, not {shown(value)}") from None

    def iter_decode(self, buffer: Readable, /) -> Iterator[int]:
        """The numbers."""
        return iter(memoryview(buffer).cast("I"))


class Handle:
    """Something with `fileno()`, or a descriptor's number: 4 or 8 bytes. Comes out as a number."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._format = struct.Struct({4: "=i", 8: "=q"}[size])

    def decode(self, buffer: Readable, offset: int = 0, /) -> int:
        """The number."""
        number: int = self._format.unpack_from(buffer, offset)[0]
        return number

    def encode(self, value: Any, /) -> bytes:
        """The bytes of the descriptor.

        Raises:
            SchemaError: neither an int nor something with `fileno()`.
        """
        if isinstance(value, bytes | bytearray | memoryview):
            return _exactly(self.size, value)
        fileno: Callable[[], int] | None = getattr(value, "fileno", None)
        try:
            return self._format.pack(value if fileno is None else fileno())
        except struct.error:
            raise SchemaError(f"expected a file descriptor, got {shown(value)}") from None

    def iter_decode(self, buffer: Readable, /) -> Iterator[int]:
        """The numbers."""
        return (number for (number,) in self._format.iter_unpack(buffer))


class Redirect(NamedTuple):
    """Where a map sends XDP frames: an interface's index or a CPU's queue, and a program there.

    `program` goes in as a program or its descriptor, and comes out as its id; 0: there is none.
    """

    target: int
    program: Any = 0


class Redirects:
    """`struct bpf_devmap_val` and `struct bpf_cpumap_val`: a `Redirect`, or its number alone."""

    size = 8
    _FORMAT = struct.Struct("=Ii")

    def decode(self, buffer: Readable, offset: int = 0, /) -> Redirect:
        """The redirection; its program is an id."""
        return Redirect._make(self._FORMAT.unpack_from(buffer, offset))

    def encode(self, value: Any, /) -> bytes:
        """The bytes of a number, or of a pair of a number and a program.

        Raises:
            SchemaError: anything else.
        """
        if isinstance(value, bytes | bytearray | memoryview):
            return _exactly(self.size, value)
        target, *rest = value if isinstance(value, tuple) and value else (value,)
        program = rest.pop(0) if rest else 0
        fileno: Callable[[], int] | None = getattr(program, "fileno", None)
        try:
            return self._FORMAT.pack(target, program if fileno is None else fileno(), *rest)
        except struct.error:
            reason = f"expected a number, or a number and a program, got {shown(value)}"
            raise SchemaError(reason) from None

    def iter_decode(self, buffer: Readable, /) -> Iterator[Redirect]:
        """The redirections."""
        return map(Redirect._make, self._FORMAT.iter_unpack(buffer))


class Prefix:
    """The key of an LPM trie, which may also be given as an `ipaddress` network or address.

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
        """The bytes of a network, of an address (all its bits), or of what the inner codec takes.

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
        return _exactly(self.size, _LENGTH.pack(length) + packed)

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
            made = network((packed, length), strict=False)
            return made if cls is network else str(made)

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
    position i belongs to `purebpf.kernel.host.cpus.possible()[i]`.
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
            return _exactly(self.size, value)
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
    """How the keys of a map go in and out; without `text`, char arrays are bytes."""
    if not size:
        return NoKeys(map_type)
    if map_type in map_traits.FD_KEYS and size == Index.size:
        return Handle(size)
    typed = _codec_of_type(btf, type_id, size, key=True, text=text)
    if typed is None:
        typed = Index() if map_type in map_traits.INDEXED and size == Index.size else Bytes(size)
    return Prefix(typed) if map_type == bpf_map_type.BPF_MAP_TYPE_LPM_TRIE else typed


def value_codec(
    map_type: int, size: int, btf: Btf | None, type_id: int, cpus: int, *, text: bool = True
) -> Codec:
    """How the values of a map go in and out; `size` is that of one CPU's value."""
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
