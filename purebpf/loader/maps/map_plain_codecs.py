"""Keys and values without a BTF type: bytes, and the kernel's definitions for kinds of maps.

Bytes of the right length always go in as they are.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from operator import itemgetter
from typing import Any, Protocol

from purebpf.abi.bpf import bpf_map_type
from purebpf.btf.codec.values import shown
from purebpf.errors import SchemaError
from purebpf.loader.maps import map_traits
from purebpf.tuples import NamedTuple

__all__ = [
    "Bytes",
    "Codec",
    "Handle",
    "Index",
    "NoKeys",
    "Readable",
    "Redirect",
    "Redirects",
    "exactly",
]

Readable = bytes | bytearray | memoryview


class Codec(Protocol):
    """The interface of `purebpf.btf.codec.codecs.codec`: values of `size` bytes."""

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
        return exactly(self.size, value)

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
            SchemaError: anything else; the message names the methods to use instead.
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


def exactly(size: int, value: Any) -> bytes:
    """Bytes of that length, as they are; SchemaError for anything else."""
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
            return exactly(self.size, value)
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
            SchemaError: it is not an int and has no `fileno()`.
        """
        if isinstance(value, bytes | bytearray | memoryview):
            return exactly(self.size, value)
        fileno: Callable[[], int] | None = getattr(value, "fileno", None)
        try:
            return self._format.pack(value if fileno is None else fileno())
        except struct.error:
            raise SchemaError(f"expected a file descriptor, got {shown(value)}") from None

    def iter_decode(self, buffer: Readable, /) -> Iterator[int]:
        """The numbers."""
        return (number for (number,) in self._format.iter_unpack(buffer))


class Redirect(NamedTuple):
    """The target of redirected XDP frames: an interface's index or a CPU's queue, and a program
    there.

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
            return exactly(self.size, value)
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
