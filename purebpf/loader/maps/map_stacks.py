"""The values of stack trace maps: the kernel defines their type, without BTF."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from itertools import takewhile
from typing import Any

from purebpf.abi.bpf import BPF_F_STACK_BUILD_ID
from purebpf.btf.codec.values import shown
from purebpf.errors import SchemaError
from purebpf.loader.maps.map_plain_codecs import Bytes, Codec, Readable
from purebpf.tuples import NamedTuple

__all__ = ["BuildIdFrame", "BuildIdStack", "StackTrace", "stack_codec"]


class StackTrace:
    """A stack as a tuple of addresses, the innermost first; zeros behind the last are dropped."""

    _FRAME = struct.Struct("=Q")
    _WHAT = "addresses"

    def __init__(self, size: int) -> None:
        self.size = size
        self._most = size // self._FRAME.size

    def decode(self, buffer: Readable, offset: int = 0, /) -> tuple[Any, ...]:
        """The frames."""
        data = memoryview(buffer)[offset : offset + self.size]
        return tuple(self._frames(self._FRAME.iter_unpack(data)))

    def _frames(self, rows: Iterator[tuple[Any, ...]]) -> Iterator[Any]:
        return takewhile(bool, (address for (address,) in rows))

    def encode(self, value: Any, /) -> bytes:
        """The bytes of a stack that has as many frames or fewer.

        Raises:
            SchemaError: anything else.
        """
        if isinstance(value, bytes | bytearray | memoryview):
            return Bytes(self.size).encode(value)
        try:
            raw = b"".join(self._FRAME.pack(*self._row(frame)) for frame in value)
        except (TypeError, struct.error):
            raw = None
        if raw is None or len(raw) > self.size:
            raise SchemaError(f"expected at most {self._most} {self._WHAT}, got {shown(value)}")
        return raw.ljust(self.size, b"\0")

    def _row(self, frame: Any) -> tuple[Any, ...]:
        return (frame,)

    def iter_decode(self, buffer: Readable, /) -> Iterator[tuple[Any, ...]]:
        """The stacks."""
        return (self.decode(buffer, start) for start in range(0, len(buffer), self.size))


class BuildIdFrame(NamedTuple):
    """A frame as `struct bpf_stack_build_id`.

    With status 1 (BPF_STACK_BUILD_ID_VALID), `offset` is in the file of that build id; with 2
    (BPF_STACK_BUILD_ID_IP), the file was not found and `offset` is an address.
    """

    status: int
    build_id: bytes
    offset: int


class BuildIdStack(StackTrace):
    """A stack of a map with BPF_F_STACK_BUILD_ID, as a tuple of `BuildIdFrame`."""

    _FRAME = struct.Struct("=i20sQ")
    _WHAT = "frames"

    def _frames(self, rows: Iterator[tuple[Any, ...]]) -> Iterator[Any]:
        return takewhile(lambda frame: frame.status, map(BuildIdFrame._make, rows))

    def _row(self, frame: Any) -> tuple[Any, ...]:
        return tuple(frame)


def stack_codec(size: int, flags: int) -> Codec:
    """Return the codec of the stacks of a map with these flags."""
    kind = BuildIdStack if flags & BPF_F_STACK_BUILD_ID else StackTrace
    return Bytes(size) if size % kind._FRAME.size else kind(size)  # noqa: SLF001 - of this module
