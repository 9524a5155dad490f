"""A reader of protocol buffers' wire format, to check what our writer writes."""

from __future__ import annotations

from collections.abc import Iterator


def varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def varints(data: bytes) -> Iterator[int]:
    at = 0
    while at < len(data):
        value, at = varint(data, at)
        yield value


def fields(data: bytes) -> dict[int, list[int | bytes]]:
    """Every field of a message by number, in order."""
    found: dict[int, list[int | bytes]] = {}
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        number, wire_type = key >> 3, key & 7
        value: int | bytes
        if wire_type == 0:
            value, at = varint(data, at)
        elif wire_type == 2:
            length, at = varint(data, at)
            assert at + length <= len(data), "a field ends behind its message"
            value, at = data[at : at + length], at + length
        else:
            raise AssertionError(f"wire type {wire_type}")
        found.setdefault(number, []).append(value)
    return found
