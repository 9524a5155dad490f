"""Unpacks and decodes bodies in threads, so that no sender waits long for the messages of another.

A small message takes milliseconds, a large one a second. Each kind has a thread, and each sender
has one message in them. A message that turns out to be costly goes to the thread of the large ones.
"""

from __future__ import annotations

import asyncio
import zlib
from collections import Counter
from typing import Any, NamedTuple

from purebpf.services.fleet.charging import FREE_SIZE
from purebpf.services.fleet.decode import (
    ALL_MEMORY,
    LITTLE_MEMORY,
    CostlyError,
    RefusedError,
    decode,
)
from purebpf.services.fleet.rows import Delivery

__all__ = ["MOST_BYTES", "Body", "Reading", "TooLargeError"]

MOST_BYTES = 16 << 20
"""Of a message, packed or not."""
_PART = 1 << 18


class TooLargeError(Exception):
    """A message of more bytes than it may have."""


class Body(NamedTuple):
    """A body as it was sent, and its content-encoding."""

    data: bytes
    encoding: str

    def unpack(self, most: int) -> bytes:
        """Return the message, at most so many bytes of it.

        Raises:
            TooLargeError: it has more.
            RefusedError: it is not in that encoding, or the encoding is not known.
        """
        if self.encoding in ("identity", ""):
            if len(self.data) > most:
                raise TooLargeError
            return self.data
        if self.encoding != "gzip":
            raise RefusedError(
                f"content-encoding {self.encoding[:20]!r}: gzip and identity are known"
            )
        unpacker = zlib.decompressobj(31)
        message = bytearray()
        packed = self.data
        while packed and not unpacker.eof:
            try:
                message += unpacker.decompress(packed, min(_PART, most + 1 - len(message)))
            except zlib.error as error:
                raise RefusedError(f"the body is not gzip: {error}") from None
            if len(message) > most:
                raise TooLargeError
            packed = unpacker.unconsumed_tail
        if not unpacker.eof:
            raise RefusedError("the body is gzip that was cut off")
        return bytes(message)


class Reading:
    """Reads messages, for a server whose loop must not wait."""

    def __init__(self) -> None:
        self._small, self._large = asyncio.Lock(), asyncio.Lock()
        self._senders: dict[str, asyncio.Lock] = {}
        self._waiting: Counter[str] = Counter()

    async def read(self, body: Body, sender: str, **about: Any) -> list[Delivery]:
        """The windows of a message; `about` as in `decode`.

        Raises:
            TooLargeError, RefusedError: as `Body.unpack` and `decode`.
        """
        lock = self._senders.setdefault(sender, asyncio.Lock())
        self._waiting[sender] += 1
        try:
            async with lock:
                return await self._read(body, about)
        finally:
            self._waiting[sender] -= 1
            if not self._waiting[sender]:
                del self._waiting[sender], self._senders[sender]

    async def _read(self, body: Body, about: dict[str, Any]) -> list[Delivery]:
        try:
            async with self._small:
                return await asyncio.to_thread(_decode, body, FREE_SIZE, LITTLE_MEMORY, about)
        except (TooLargeError, CostlyError):
            async with self._large:
                return await asyncio.to_thread(_decode, body, MOST_BYTES, ALL_MEMORY, about)


def _decode(body: Body, most: int, memory: int, about: dict[str, Any]) -> list[Delivery]:
    return decode(body.unpack(most), memory=memory, **about)
