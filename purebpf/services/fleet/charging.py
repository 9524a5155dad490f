"""The memory that an OTLP message will take when `protobuf` parses it, added up beforehand.

An empty message inside another one has two bytes on the wire and up to 130 in memory, and gzip
makes a thousandth of the first: 8 kB became 660 MB. So the lengths and tags of a large message are
walked over first, and the walk ends where the message would cost too much. The parser itself holds
the lock of the interpreter (GIL) all the time, so that the bound is one of time, too.

The layout comes from the descriptors of opentelemetry-proto; the wire format is in
https://protobuf.dev/programming-guides/encoding/.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

__all__ = ["FREE_SIZE", "WalkError", "charge"]

FREE_SIZE = 1 << 20
"""Bytes of a message that need no walk: even the worst one takes 70 MB."""
_MESSAGE, _FIELD, _TEXT, _SCALAR, _FIXED = 48, 8, 48, 16, 2
"""Bytes of memory, measured with protobuf (upb) on messages that have one kind of element only."""
_FIXED_TYPES = frozenset({1, 2, 6, 7, 15, 16})
"""Numbers of four or eight bytes on the wire, too: double, float, fixed64, fixed32, and signed."""
_MOST_DEPTH = 100
"""As protobuf has it."""


class WalkError(ValueError):
    """A message that is malformed, or costs more than the limit; says which."""


class _Field(NamedTuple):
    """A field of a known message.

    `fields` are the fields of a message inside; `cost` is the cost of an element, and
    `cost_per_byte` the cost of each byte of packed numbers.
    """

    cost: int
    cost_per_byte: int = 0
    fields: dict[int, _Field] | None = None


_UNKNOWN = _Field(2 * _TEXT)
"""Fields of later versions are kept as bytes; they take time."""


def charge(data: bytes, descriptor: Any, limit: int) -> int:
    """Return an upper bound of the bytes of memory that a message takes.

    Args:
        data: the message.
        descriptor: of its type.
        limit: the most bytes that it may take.

    Raises:
        WalkError: it would take more, or it is not such a message.
    """
    try:
        return _walk(data, _fields_of(descriptor), limit)
    except IndexError:
        raise WalkError("it is cut off") from None


def _walk(data: bytes, fields: dict[int, _Field], limit: int) -> int:
    total = at = 0
    end = len(data)
    outer: list[tuple[int, dict[int, _Field]]] = []
    while True:
        while at >= end:
            if at > end:
                raise WalkError("an element is longer than its message")
            if not outer:
                return total
            end, fields = outer.pop()
        tag, size = data[at], data[at + 1]
        at += 2
        if tag > 127:
            tag, at = _varint(data, at - 1, tag)
            size = data[at]
            at += 1
        cost, cost_per_byte, inner = fields.get(tag >> 3, _UNKNOWN)
        total += cost
        if tag & 7 != 2:
            at = _skip(data, at - 1, tag & 7)
            inner, size = None, 0
        elif size > 127:
            size, at = _varint(data, at, size)
        if inner is None:
            total += cost_per_byte * size
            at += size
        elif size:
            outer.append((end, fields))
            end, fields = at + size, inner
            if len(outer) > _MOST_DEPTH or end > outer[-1][0]:
                raise WalkError("it is nested too deeply, or an element is too long")
        if total > limit:
            raise WalkError(f"it would take more than {limit >> 20} MiB of memory")


def _varint(data: bytes, at: int, first: int) -> tuple[int, int]:
    """A number that begins with a byte, and the place behind it."""
    value, shift = first & 127, 7
    while shift < 70:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
    raise WalkError("a number has more than ten bytes")


def _skip(data: bytes, at: int, kind: int) -> int:
    """The place behind a number."""
    if kind == 0:
        while data[at] > 127:
            at += 1
        return at + 1
    if kind == 1:
        return at + 8
    if kind == 5:
        return at + 4
    raise WalkError("it has groups, or it is damaged")


@cache
def _fields_of(descriptor: Any) -> dict[int, _Field]:
    return _describe(descriptor, {})


def _describe(descriptor: Any, known: dict[str, dict[int, _Field]]) -> dict[int, _Field]:
    """The fields of a message by number; messages may contain themselves."""
    fields = known.get(descriptor.full_name)
    if fields is not None:
        return fields
    fields = known[descriptor.full_name] = {}
    for one in descriptor.fields:
        if one.message_type is not None:
            cost = _MESSAGE + _FIELD * len(one.message_type.fields)
            fields[one.number] = _Field(cost, fields=_describe(one.message_type, known))
        elif one.type in (one.TYPE_STRING, one.TYPE_BYTES):
            fields[one.number] = _Field(_TEXT)
        else:
            cost = _FIXED if one.type in _FIXED_TYPES else _SCALAR
            fields[one.number] = _Field(_TEXT, cost_per_byte=cost)
    return fields
