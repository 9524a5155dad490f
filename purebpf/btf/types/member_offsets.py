"""The places of some members of a struct, without an index of all types.

The index of a vmlinux takes 25 ms of CPU time and the list of its names as much again. To learn two
or three offsets, the bytes are searched for the struct's name, and for a type that has it.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Collection

from purebpf.btf.types.kinds import Kind
from purebpf.btf.types.strings import Strings, occurrences

__all__ = ["member_offsets"]

_HEADER = struct.Struct("=HBBIIIII")
_TYPE = struct.Struct("=III")
_MEMBER = struct.Struct("=III")
_MAGIC = 0xEB9F
_WORD = 4
_BYTE = 8
_HAS_BITFIELDS = 1 << 31
"""Then the upper 8 bits of a member's offset are its width: Documentation/bpf/btf.rst."""
_BIT_OFFSET = (1 << 24) - 1


def member_offsets(data: bytes, name: str, members: Collection[str]) -> dict[str, int]:
    """The bytes before members of a struct.

    Args:
        data: BTF of this machine's byte order, without a base.
        name: of the struct.
        members: their names.

    Returns:
        by name, or nothing if one is not seen here: there is no such struct; it has the member in a
        struct without a name; the blob is malformed. `Btf` knows which.
    """
    if len(data) < _HEADER.size:
        return {}
    magic, _, _, length, types, types_size, strings, strings_size = _HEADER.unpack_from(data)
    begin, end = length + types, length + types + types_size
    first, last = length + strings, length + strings + strings_size
    if magic != _MAGIC or end > len(data) or not first < last <= len(data) or data[last - 1]:
        return {}
    place = data.find(b"\0" + name.encode() + b"\0", first, last)
    if place < 0:
        return {}
    names, offset = Strings(data, first, last), place + 1 - first
    for at in occurrences(data, offset.to_bytes(_WORD, sys.byteorder), begin, end):
        if (at - begin) % _WORD == 0 and (offsets := _read(data, at, end, names, members)):
            return offsets
    return {}


def _read(
    data: bytes, at: int, end: int, names: Strings, members: Collection[str]
) -> dict[str, int]:
    """The members of the type at a place, if that is where a struct with all of them begins."""
    if at + _TYPE.size > end:
        return {}
    _, info, size = _TYPE.unpack_from(data, at)
    at += _TYPE.size
    until = at + (info & 0xFFFF) * _MEMBER.size
    if info >> 24 & 31 != Kind.STRUCT or until > end:
        return {}
    offsets: dict[str, int] = {}
    for named, _, bits in _MEMBER.iter_unpack(memoryview(data)[at:until]):
        try:
            name = names.name(named)
        except ValueError:
            return {}
        if name in members:
            offsets[name] = (bits & _BIT_OFFSET if info & _HAS_BITFIELDS else bits) // _BYTE
    is_whole = len(offsets) == len(members) and max(offsets.values(), default=0) <= size
    return offsets if is_whole else {}
