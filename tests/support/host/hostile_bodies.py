"""Messages that cost a hub more than they have bytes, one for each field that it takes.

They are made as bytes, because `protobuf` would need gigabytes to build some of them.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from typing import Any

from opentelemetry.proto.collector.profiles.v1development.profiles_service_pb2 import (
    ExportProfilesServiceRequest,
)

__all__ = ["LONGEST", "bodies"]

LONGEST = 15 << 20


def bodies() -> Iterator[tuple[str, bytes, str]]:
    """A name, the bytes on the wire, and the content-encoding of each."""
    for name, message in _messages():
        yield name, message, "identity"
    yield "zeros", gzip.compress(bytes(LONGEST)), "gzip"
    yield "a gigabyte", gzip.compress(bytes(1 << 30), 1), "gzip"
    yield "gzip in gzip", gzip.compress(gzip.compress(bytes(1 << 26))), "gzip"
    yield "many gzip members", gzip.compress(b"") * 100_000, "gzip"
    yield "gzip without an end", gzip.compress(bytes(LONGEST))[:-9], "gzip"
    yield "a long gzip header", b"\x1f\x8b\x08\x08" + b"\0" * 6 + b"n" * LONGEST, "gzip"
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    blocks = b"".join(packer.flush(zlib.Z_FULL_FLUSH) + packer.compress(b"") for _ in range(2))
    yield "empty blocks", packer.compress(b"a") + blocks * 100_000 + packer.flush(), "gzip"
    yield "packed strings", gzip.compress(_field(2, b"\x2a\0" * (LONGEST // 2))), "gzip"


def _messages() -> Iterator[tuple[str, bytes]]:
    for top in ExportProfilesServiceRequest.DESCRIPTOR.fields:
        yield f"{top.name}, empty", _wrap(_number(top.number << 3 | 2) + b"\0", ())
        yield from _of_every_field(top.message_type, ((top.number, top.name),), set())
    value = b"\x0a\0" * (LONGEST // 4)
    for depth in (10, 45, 90, 5000):
        nested = value
        for _ in range(depth):
            nested = _field(5, _field(1, nested))
        yield f"arrays, {depth} deep", _label(nested)
    nested = value
    for _ in range(40):
        nested = _field(6, _field(1, _field(2, nested)))
    yield "lists of keys, 40 deep", _label(nested)
    yield "groups", _field(2, b"\xfb\x3f" * (LONGEST // 2))
    yield "a number without an end", b"\xff" * LONGEST
    yield "lengths beyond the end", b"\x12\xff\xff\xff\xff\x07" * (LONGEST // 6)
    yield "the largest length", b"\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"
    yield "unknown fields", _field(2, b"\xf8\x3f\x01" * (LONGEST // 3))
    yield "unknown texts", _field(2, b"\xfa\x3f\0" * (LONGEST // 3))
    yield "dictionaries", b"\x12\0" * (LONGEST // 2)


def _of_every_field(
    descriptor: Any, path: tuple[tuple[int, str], ...], seen: set[str]
) -> Iterator[tuple[str, bytes]]:
    """Messages of one kind of element, where elements of its type are first met."""
    if descriptor.full_name in seen:
        return
    seen.add(descriptor.full_name)
    for one in descriptor.fields:
        name = ".".join([*(step for _, step in path), one.name])
        tag = one.number << 3
        if one.message_type is not None:
            yield f"{name}, empty", _wrap(_number(tag | 2) + b"\0", path)
            yield from _of_every_field(one.message_type, (*path, (one.number, one.name)), seen)
        elif one.type in (one.TYPE_STRING, one.TYPE_BYTES):
            yield f"{name}, empty", _wrap(_number(tag | 2) + b"\0", path)
            yield f"{name}, long", _wrap(_field(one.number, b"\x7f" * (LONGEST - 200)), path, 1)
        elif one.type in (one.TYPE_FIXED64, one.TYPE_DOUBLE):
            yield f"{name}, many", _wrap(_number(tag | 1) + b"\xff" * 8, path)
            yield (
                f"{name}, packed",
                _wrap(_field(one.number, b"\xff" * (LONGEST // 8 * 8)), path, 1),
            )
        else:
            largest = b"\xff" * 9 + b"\x01"
            yield f"{name}, many", _wrap(_number(tag) + b"\x01", path)
            yield f"{name}, the largest", _wrap(_number(tag) + largest, path, 1)
            yield f"{name}, packed", _wrap(_field(one.number, b"\x01" * (LONGEST - 200)), path, 1)


def _wrap(unit: bytes, path: tuple[tuple[int, str], ...], count: int = 0) -> bytes:
    """An element many times, inside of the messages of a path."""
    message = unit * (count or (LONGEST - 200) // len(unit))
    for number, _ in reversed(path):
        message = _field(number, message)
    return message


def _label(value: bytes) -> bytes:
    """A message with one label of one service."""
    return _field(1, _field(1, _field(1, _field(1, b"k") + _field(2, value))))


def _field(number: int, data: bytes) -> bytes:
    return _number(number << 3 | 2) + _number(len(data)) + data


def _number(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)
