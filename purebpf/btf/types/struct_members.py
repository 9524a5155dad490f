# ruff: noqa: SLF001 -- reads the words of a Btf
"""One member of a struct or union, without those beside it: a task_struct has 260.

A kernel's structs are searched for one member by name, and an object's own for one by number,
mostly once. Decoding all members of each was a quarter of the time of matching an object.
"""

from __future__ import annotations

from collections.abc import Iterator

from purebpf.btf.types.decode import VLEN
from purebpf.btf.types.kinds import Kind, Member
from purebpf.btf.types.parse import Btf
from purebpf.errors import FormatError

__all__ = ["count_members", "find_members", "has_members", "read_member"]

_OF_MEMBERS = frozenset({Kind.STRUCT, Kind.UNION})
_HAS_BITFIELDS = 1 << 31
_HEADER = 3
_WIDTH = 3
"""Words before the members, and of each."""


def has_members(btf: Btf, type_id: int) -> bool:
    """Return True if a type is a struct or a union."""
    return btf.kind(type_id) in _OF_MEMBERS


def count_members(btf: Btf, type_id: int) -> int:
    """Return the number of members of a struct or union."""
    owner, at = btf._locate(type_id)
    return owner._words[at + 1] & VLEN


def read_member(btf: Btf, type_id: int, index: int) -> Member:
    """A member of a struct or union, one of its `count_members`.

    Raises:
        FormatError: it is malformed.
    """
    owner, at = btf._locate(type_id)
    if (decoded := owner._types.get(type_id)) is not None:
        return decoded.members[index]  # type: ignore[union-attr]  # it has members
    words = owner._words
    place = at + _HEADER + _WIDTH * index
    name, target, offset = words[place], words[place + 1], words[place + 2]
    width = 0
    if words[at + 1] & _HAS_BITFIELDS:
        offset, width = offset & 0xFFFFFF, offset >> 24
    try:
        text = owner._strings.name(name)
    except ValueError as error:
        raise FormatError(btf.source, f"type {type_id}", str(error)) from None
    if target >= len(owner):
        problem = f"refers to type {target} of {len(owner)}"
        raise FormatError(btf.source, f"type {type_id}", problem)
    return Member(text, target, offset, width)


def find_members(btf: Btf, type_id: int, name: str) -> Iterator[tuple[int, Member]]:
    """The members of a struct or union that are called `name` or nothing, with their numbers.

    Raises:
        FormatError: it is malformed, as far as it was looked at.
    """
    owner, at = btf._locate(type_id)
    if (decoded := owner._types.get(type_id)) is not None:
        members: tuple[Member, ...] = decoded.members  # type: ignore[union-attr]
        for index, member in enumerate(members):
            if member.name == name or not member.name:
                yield index, member
        return
    words = owner._words
    first = at + _HEADER
    offsets = words[first : first + _WIDTH * (words[at + 1] & VLEN) : _WIDTH].tolist()
    try:
        for index in owner._strings.find_among(offsets, name):
            yield index, read_member(btf, type_id, index)
    except ValueError as error:
        raise FormatError(btf.source, f"type {type_id}", str(error)) from None
