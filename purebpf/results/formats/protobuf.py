"""The wire format of protocol buffers, as far as a writer needs it.

https://protobuf.dev/programming-guides/encoding/
"""

from __future__ import annotations

__all__ = ["field", "integer", "message", "varint"]

_VARINT = 0
_LENGTH = 2
_U64 = (1 << 64) - 1


def varint(value: int) -> bytes:
    """Seven bits a byte, least significant first; a negative number as its 64-bit complement."""
    value &= _U64
    if value < 0x80:
        return bytes((value,))
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def integer(number: int, value: int) -> bytes:
    """A field with a number, and nothing for zero, which is what a missing field means."""
    return varint(number << 3 | _VARINT) + varint(value) if value else b""


def field(number: int) -> bytes:
    """What comes before the length of a field with bytes: a message, a string, packed numbers."""
    return varint(number << 3 | _LENGTH)


def message(number: int, content: bytes) -> bytes:
    """A field with bytes."""
    return field(number) + varint(len(content)) + content
