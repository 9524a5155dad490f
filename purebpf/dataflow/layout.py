"""The member of a type at an offset."""

from __future__ import annotations

from collections.abc import Iterator

from purebpf.dataflow.types import Kind, Member, Type, bare, byte_size, spell
from purebpf.tuples import NamedTuple

__all__ = [
    "OVERLAY",
    "PADDING",
    "SEVERAL",
    "Place",
    "find",
    "is_record",
    "name_of",
    "overlaid",
    "tail_of",
]

_DEEPEST = 32
_EXTENTS = "extents"
_WORD = _BITS = 8
SEVERAL = "(several members)"
PADDING = "(padding)"
OVERLAY = "(union)"


class Place(NamedTuple):
    """The answer for an offset.

    Attributes:
        path: the member, such as `node.next` or `slots[].key`; "" for a type without members.
        offset, size: of the member in the type, in bytes; an array's element counts as its first.
        type: the type of the member; None: the access does not touch exactly one member.
        through_array: the path leads through an array.
        within: the bytes from the start of the member to the access.
    """

    path: str
    offset: int
    size: int
    type: Type | None
    through_array: bool
    within: int


def is_record(of: Type | None) -> bool:
    """Return True for a struct, a class or a union."""
    stripped = bare(of)
    return stripped is not None and stripped.kind in (Kind.STRUCT, Kind.UNION)


def find(of: Type | None, offset: int, size: int) -> Place:
    """Return the member that an access touches.

    Args:
        of: the type.
        offset: of the access, in bytes; not negative.
        size: of the access, in bytes; 0: the address is taken.
    """
    current = bare(of)
    if current is None:
        return _find(current, offset, size)
    key = offset, size
    place: Place | None = current.places.get(key)
    if place is None:
        place = current.places[key] = _find(current, offset, size)
    return place


def tail_of(of: Type | None) -> tuple[int, int] | None:
    """Return the place of a record's last array that extends behind it, and the element's size.

    Such an array has no length, or the length 1 of old C; None: there is no such array.
    """
    stripped = bare(of)
    if stripped is None or stripped.kind is not Kind.STRUCT or not stripped.members:
        return None
    last = max(stripped.members, key=lambda member: member.offset)
    kind = bare(last.type)
    if kind is not None and kind.kind is Kind.ARRAY and kind.count <= 1:
        element = byte_size(kind.target)
        return (last.offset, element) if element else None
    inside = tail_of(kind)
    return inside and (last.offset + inside[0], inside[1])


def _find(current: Type | None, offset: int, size: int) -> Place:
    path, start, is_array = "", 0, False
    left = offset
    for _ in range(_DEEPEST):
        if current is None:
            break
        if current.kind is Kind.ARRAY:
            element = byte_size(current.target)
            if not element:
                break
            left %= element
            path, is_array, current = path + "[]", True, bare(current.target)
        elif current.kind in (Kind.STRUCT, Kind.UNION):
            inside = _covering(current, left, size)
            if isinstance(inside, str):
                whole = current.size
                return Place(_join(path, inside), start, whole, None, is_array, left)
            name, member_offset, member_type = inside
            path, start, left = _join(path, name), start + member_offset, left - member_offset
            current = bare(member_type)
        else:
            fits = left + size <= byte_size(current)
            return Place(
                path, start, byte_size(current), (current if fits else None), is_array, left
            )
    return Place(path or "?", start, size, None, is_array, left)  # bit fields


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path and name else path + name


def _covering(record: Type, offset: int, size: int) -> tuple[str, int, Type | None] | str:
    """Return the member that contains an access, or words for a place that is not one member."""
    covering = [
        (member, end)
        for start, end, member in _extents(record)
        if start <= offset < end and _overlaps(member, offset, size)
    ]
    members = [member for member, _ in covering]
    whole = [member for member, end in covering if offset + size <= end]
    if len(whole) > 1 and any(_room(member.type) for member in whole):
        whole = [member for member in whole if _room(member.type)]  # no empty base, no tail
    if len(whole) == 1:
        return whole[0].name, whole[0].offset, whole[0].type
    if not members:
        beyond = any(offset < member.offset < offset + size for member in record.members)
        return SEVERAL if beyond else PADDING
    if not whole:
        return SEVERAL
    if _are_same(whole, offset, size):
        return whole[0].name, whole[0].offset, whole[0].type
    if all(member.bits for member in whole):
        return "/".join(member.name for member in whole if member.name), offset, None
    return OVERLAY


def _overlaps(member: Member, offset: int, size: int) -> bool:
    """Return True if an access touches the bytes of a bit field; others are known to do."""
    if not member.bits or member.bit is None:
        return True
    first = member.offset + member.bit // _BITS
    behind = member.offset + (member.bit + member.bits + _BITS - 1) // _BITS
    return offset < behind and first < offset + max(size, 1)


def _extents(record: Type) -> list[tuple[int, int, Member]]:
    """Return the members of a record with their first byte, and the one behind them."""
    extents: list[tuple[int, int, Member]] | None = record.places.get(_EXTENTS)
    if extents is None:
        extents = record.places[_EXTENTS] = [
            (member.offset, member.offset + max(_room(member.type), 1), member)
            for member in record.members
        ]
    return extents


def overlaid(of: Type | None, offset: int) -> Iterator[Type]:
    """Yield the types of all pointers at an offset, of all members that overlap there."""
    stripped = bare(of)
    if stripped is None:
        return
    if stripped.kind is Kind.POINTER:
        if not offset:
            yield stripped
    elif stripped.kind is Kind.ARRAY:
        element = byte_size(stripped.target)
        if element and offset < _room(stripped):
            yield from overlaid(stripped.target, offset % element)
    elif stripped.kind in (Kind.STRUCT, Kind.UNION):
        for member in stripped.members:
            if member.offset <= offset < member.offset + _room(member.type):
                yield from overlaid(member.type, offset - member.offset)


def _are_same(members: list[Member], offset: int, size: int) -> bool:
    """Return True if an access touches the same type in each of the members that overlap.

    Two names of one thing do: `struct_group()`, and a member that has a const double.
    """
    places = [find(member.type, offset - member.offset, size) for member in members]
    first = places[0]
    if first.type is None or first.size > _WORD or any(member.bits for member in members):
        return False
    return all(
        bare(place.type) is bare(first.type) and place.within == first.within for place in places
    )


def _room(of: Type | None) -> int:
    """Return the bytes of a member; an array without a length extends to any offset.

    So does a struct of nothing else, which the kernel's DECLARE_FLEX_ARRAY makes in a union.
    """
    stripped, size = bare(of), byte_size(of)
    if size or stripped is None:
        return size
    if stripped.kind is Kind.ARRAY:
        return (1 << 31) if byte_size(stripped.target) and not stripped.count else 0
    return max((_room(member.type) for member in stripped.members), default=0)


def name_of(of: Type | None) -> str:
    """Return the name of the type that a place is in; of an array, the name of its element."""
    stripped = bare(of)
    if stripped is not None and stripped.kind is Kind.ARRAY and not (of and of.name):
        return name_of(stripped.target)
    return spell(of)
