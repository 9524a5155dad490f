"""`View`: a call as its record says, for those who write its arguments. Pure."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping

from purebpf.tools.trace.capture import AT, RESULT, piece_id
from purebpf.tools.trace.quoting import quote_path
from purebpf.tuples import NamedTuple

__all__ = ["LONG", "View", "pieces"]

LONG = 8
"""Bytes of a long of 64-bit programs."""

_HEAD = struct.Struct("<II")
_SIGN = 1 << 31
_WORD = 1 << 32


class View(NamedTuple):
    """A call.

    Attributes:
        name: of the call.
        arguments: six words of 64 bits.
        result: its return value; None: it did not return.
        pieces: the copied memory, by `purebpf.tools.trace.capture.piece_id`.
        string_size: bytes that were copied of strings and buffers.
        path_of: returns the path of a descriptor; None: without paths.
        word: bytes of a long, or an address: 4 in 32-bit programs.
    """

    name: str
    arguments: tuple[int, ...]
    result: int | None
    pieces: Mapping[int, bytes]
    string_size: int
    path_of: Callable[[int], str | None] | None = None
    word: int = LONG

    def descriptor(self, number: int) -> str:
        """`3`, or `3</etc/passwd>`."""
        path = self.path_of(number) if self.path_of and number >= 0 else None
        return str(number) if path is None else f"{number}<{quote_path(path)}>"

    @property
    def failed(self) -> bool:
        """True if it returned an error."""
        return self.result is not None and -4096 < self.result < 0  # noqa: PLR2004 - MAX_ERRNO

    def piece(self, argument: int, part: int = 0, *, end: bool = False) -> bytes | None:
        """Return a copied piece; None: it was not there."""
        return self.pieces.get(piece_id(argument, part, end=end))

    @property
    def path(self) -> str | None:
        """The first string that is copied, if one is: the path of open(2) and openat(2)."""
        for argument in (0, 1):
            if (data := self.piece(argument)) is not None:
                return data.partition(b"\0")[0].decode("utf-8", "surrogateescape")
        return None

    def int32(self, argument: int) -> int:
        """An argument as an int."""
        value = self.arguments[argument] & (_WORD - 1)
        return value - _WORD if value & _SIGN else value

    def uint32(self, argument: int) -> int:
        """An argument as an unsigned int."""
        return self.arguments[argument] & (_WORD - 1)

    def int64(self, argument: int) -> int:
        """An argument as a long."""
        value, bits = self.arguments[argument], 8 * self.word
        return value - (1 << bits) if value >> bits - 1 else value

    def length(self, extent: int, *, end: bool = False) -> int | None:
        """The number that `Kind.extent` means."""
        if extent == RESULT:
            return self.result
        if extent < AT:
            return self.int64(extent)
        data = self.piece(extent - AT, end=end)
        return None if data is None else int.from_bytes(data[:4], "little")


def pieces(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The pieces behind a record: id and bytes."""
    at = 0
    while at + _HEAD.size <= len(data):
        identity, size = _HEAD.unpack_from(data, at)
        at += _HEAD.size
        yield identity, data[at : at + size]
        at += -(-size // 8) * 8
