"""The wire format of protocol buffers, as far as profiles need it.

https://protobuf.dev/programming-guides/encoding/
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

__all__ = [
    "Message",
    "ProtobufError",
    "each_field",
    "field",
    "fields",
    "integer",
    "message",
    "varint",
    "varints",
]

_VARINT = 0
_LENGTH = 2
_FIXED = {1: 8, 5: 4}
_LONGEST_VARINT = 10
_MOST = 1 << 22
"""Fields of a message that are held: each takes 200 bytes of memory."""

Message = dict[int, list[int | memoryview]]
"""The values of each field by its number, in their order."""


class ProtobufError(Exception):
    """Bytes that are not a message."""


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
    """Encode a number in a field; zero becomes nothing, as a missing field means zero."""
    return varint(number << 3 | _VARINT) + varint(value) if value else b""


def field(number: int) -> bytes:
    """Encode the tag of a field with bytes, which precedes its length: a message, a string,
    packed numbers.
    """
    return varint(number << 3 | _LENGTH)


def message(number: int, content: bytes) -> bytes:
    """A field with bytes."""
    return field(number) + varint(len(content)) + content


def fields(data: bytes | memoryview | int, *, but: int = 0) -> Message:
    """The fields of a message.

    Args:
        data: the message.
        but: leave out the fields of this number.

    Raises:
        ProtobufError: it is not a message, or one of too many fields.
    """
    parsed: Message = {}
    left = _MOST
    for number, value in each_field(data):
        if number != but:
            parsed.setdefault(number, []).append(value)
            left -= 1
            if left < 0:
                raise ProtobufError(f"more than {_MOST} fields")
    return parsed


def each_field(data: bytes | memoryview | int) -> Iterator[tuple[int, int | memoryview]]:
    """Number and value of each field of a message; those with a fixed size as unsigned numbers.

    Raises:
        ProtobufError: it is not a message.
    """
    if isinstance(data, int):
        raise ProtobufError("a number where a message is expected")
    view = memoryview(data)
    at = 0
    while at < len(view):
        key, at = (view[at], at + 1) if view[at] < 0x80 else _varint_at(view, at)
        kind = key & 7
        if kind == _VARINT:
            value, at = _varint_at(view, at)
            yield key >> 3, value
            continue
        if kind == _LENGTH:
            is_small = at < len(view) and view[at] < 0x80
            size, at = (view[at], at + 1) if is_small else _varint_at(view, at)
        elif kind in _FIXED:
            size = _FIXED[kind]
        else:
            raise ProtobufError(f"wire type {kind}")
        if size > len(view) - at:
            raise ProtobufError(f"a field of {size} bytes, where {len(view) - at} are left")
        content = view[at : at + size]
        yield key >> 3, content if kind == _LENGTH else int.from_bytes(content, "little")
        at += size


def varints(data: memoryview) -> Sequence[int]:
    """Packed numbers."""
    raw = bytes(data)
    if raw.isascii():  # each a byte: the numbers of small files, and most weights
        return raw
    numbers = []
    value = shift = 0
    for byte in raw:
        if byte < 0x80:
            numbers.append((value | byte << shift) & _U64)
            value = shift = 0
        else:
            value |= (byte & 0x7F) << shift
            shift += 7
            if shift >= 7 * _LONGEST_VARINT:
                raise ProtobufError("a number without an end")
    if shift:
        raise ProtobufError("a number without an end")
    return numbers


def _varint_at(data: memoryview, at: int) -> tuple[int, int]:
    """An unsigned number, and where it ends."""
    value = shift = 0
    for byte in data[at : at + _LONGEST_VARINT]:
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & _U64, at
        shift += 7
    raise ProtobufError("a number without an end")
