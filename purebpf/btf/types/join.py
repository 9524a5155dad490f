"""Two BTFs as one: the types of the first, then of the second.

Source: Documentation/bpf/btf.rst, "BTF Type and String Encoding".
"""

from __future__ import annotations

import struct
import sys
from array import array
from collections.abc import Iterator

from purebpf.btf.types.decode import VLEN
from purebpf.btf.types.kinds import Kind
from purebpf.btf.types.parse import Btf, starts
from purebpf.errors import FormatError
from purebpf.tuples import NamedTuple

__all__ = ["Joined", "join"]

_HEADER = "HBBIIIII"
_HEADER_SIZE = 24
_MAGIC = 0xEB9F
_FIRST = 3
"""Words of a type before its tail: name, info, and size or type."""
_REFERS = frozenset(
    {
        *(Kind.PTR, Kind.TYPEDEF, Kind.VOLATILE, Kind.CONST, Kind.RESTRICT, Kind.FUNC),
        *(Kind.FUNC_PROTO, Kind.VAR, Kind.DECL_TAG, Kind.TYPE_TAG),
    }
)
"""Kinds whose third word is a type id."""
_ELEMENTS = {
    Kind.STRUCT: (3, 0, 1),
    Kind.UNION: (3, 0, 1),
    Kind.ENUM: (2, 0, None),
    Kind.ENUM64: (3, 0, None),
    Kind.FUNC_PROTO: (2, 0, 1),
    Kind.DATASEC: (3, None, 0),
}
"""Words of an element in a type's tail, and which of them are a string and a type id."""


class Joined(NamedTuple):
    """The BTF of two.

    Attributes:
        types: added to each type id of the second but 0, which is void.
        strings: added to each string offset of the second but 0, which is "".
    """

    btf: Btf
    types: int
    strings: int


def join(first: Btf, second: Btf) -> Joined:
    """Append the types of `second`, which have no base, as `first` has none.

    Raises:
        FormatError: one has a base, or their byte orders differ.
    """
    if first.base is not None or second.base is not None or first.byteorder != second.byteorder:
        problem = "cannot be joined: both must be whole, and of one byte order"
        raise FormatError(first.source, "BTF", problem)
    own, own_strings = _sections(first)
    added, strings = _sections(second)
    shift_types, shift_strings = len(first) - 1, len(own_strings)
    for at in _type_ids(added, second):
        added[at] += shift_types if added[at] else 0
    for at in _string_offsets(added, second):
        added[at] += shift_strings if added[at] else 0
    own.extend(added)
    if first.byteorder != sys.byteorder:
        own.byteswap()
    body = own.tobytes()
    header = struct.pack(
        ("<" if first.byteorder == "little" else ">") + _HEADER,
        *(_MAGIC, 1, 0, _HEADER_SIZE, 0, len(body)),
        *(len(body), len(own_strings) + len(strings)),
    )
    return Joined(
        Btf(header + body + own_strings + strings, source=first.source),
        shift_types,
        shift_strings,
    )


def _sections(btf: Btf) -> tuple[array[int], bytes]:
    """Return the words of the type section, in the order of this CPU, and the strings."""
    order = "<" if btf.byteorder == "little" else ">"
    _, _, _, length, type_offset, type_size, string_offset, string_size = struct.unpack_from(
        order + _HEADER, btf.data
    )
    words = array("I", btf.data[length + type_offset :][:type_size])
    if btf.byteorder != sys.byteorder:
        words.byteswap()
    return words, btf.data[length + string_offset :][:string_size]


def _kinds(words: array[int], btf: Btf) -> Iterator[tuple[int, Kind, int]]:
    """The first word of each type, its kind, and how many elements it has."""
    for at in starts(btf):
        info = words[at + 1]
        yield at, Kind(info >> 24 & 127), info & VLEN


def _type_ids(words: array[int], btf: Btf) -> Iterator[int]:
    """Yield the places of the words that are type ids."""
    for at, kind, count in _kinds(words, btf):
        if kind in _REFERS:
            yield at + 2
        if kind is Kind.ARRAY:
            yield from (at + _FIRST, at + _FIRST + 1)
        size, _, type_id = _ELEMENTS.get(kind, (0, None, None))
        if type_id is not None:
            yield from (at + _FIRST + size * number + type_id for number in range(count))


def _string_offsets(words: array[int], btf: Btf) -> Iterator[int]:
    """Yield the places of the words that are string offsets."""
    for at, kind, count in _kinds(words, btf):
        yield at
        size, name, _ = _ELEMENTS.get(kind, (0, None, None))
        if name is not None:
            yield from (at + _FIRST + size * number + name for number in range(count))
