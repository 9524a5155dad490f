"""Structs around their members: the object at an address by what is known to lie there."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from purebpf.dataflow.layout import PADDING, SEVERAL, find
from purebpf.dataflow.types import Kind, Type, bare, byte_size
from purebpf.tuples import NamedTuple

__all__ = ["NO_HINTS", "Hints", "Holders", "Use", "contains", "fits", "object_at"]

Holders = Callable[[Type, int], frozenset[Type]]
"""Returns the structs that have a type at an offset, in bytes."""

_DEEPEST = 16
_POINTER = 8
_MOST = 256
"""Structs whose members are compared with the code; of more, none is chosen."""


class Use(NamedTuple):
    """An object of a type, `offset` bytes behind an address."""

    of: Type
    offset: int


class Hints(NamedTuple):
    """The facts that choose among several structs around a member.

    Attributes:
        family: the beginning of its name, and of the structs of its part of the kernel, such as
            `udp_`; "": unknown.
        value: an object behind the pointer that the touched place contains.
    """

    family: str = ""
    value: Use | None = None


NO_HINTS = Hints()


def object_at(
    uses: Collection[Use], accesses: Iterable[tuple[int, int]], holders: Holders
) -> tuple[Type, int] | None:
    """Return the object that an address leads to, and the offset in it; None: not known.

    It is the used object that has the others as members; or the one struct of all that has them
    at their places. Its other members must also fit the sizes of the accesses.

    Args:
        uses: the objects that lie at the address.
        accesses: the offsets from the address, and the sizes, in bytes, that code touches.
        holders: of the used types.
    """
    inner = next((use for use in uses if _has_all(use.of, use.offset, uses)), None)
    if inner is not None and all(
        fits(inner.of, offset - inner.offset, size) for offset, size in accesses
    ):
        return inner.of, -inner.offset
    start = max((use.of for use in uses if not use.offset), key=byte_size, default=None)
    inside = [start is not None and fits(start, *access) for access in accesses]
    if start is not None and 2 * sum(inside) > len(inside):
        return start, 0  # a larger struct begins with it on some path
    found = _around(uses, accesses, holders)
    if found is not None:
        return found, 0
    return None if inner is None else (inner.of, -inner.offset)


def _around(
    uses: Collection[Use], accesses: Iterable[tuple[int, int]], holders: Holders
) -> Type | None:
    """Return the only struct with objects at their places, if they are not elements of an array."""
    if not uses or min(use.offset for use in uses) < 0 or _may_be_elements(uses):
        return None
    structs = frozenset.intersection(*(holders(use.of, use.offset) for use in uses))
    if len(structs) > _MOST:
        return None
    structs = frozenset(
        of for of in structs if all(fits(of, offset, size) for offset, size in accesses)
    )
    smallest = min(structs, key=byte_size, default=None)
    if smallest is None or not all(contains(of, 0, smallest) for of in structs):
        return None
    return smallest


def _may_be_elements(uses: Collection[Use]) -> bool:
    if len(uses) == 1 or len({use.of for use in uses}) > 1:
        return False
    size = byte_size(next(iter(uses)).of)
    return not size or all(not use.offset % size for use in uses)


def _has_all(of: Type, start: int, uses: Iterable[Use]) -> bool:
    return all(contains(of, use.offset - start, use.of) for use in uses)


def fits(of: Type | None, offset: int, size: int) -> bool:
    """Return True if an access touches one member, and a pointer as a whole."""
    if not 0 <= offset < byte_size(of):
        return False
    place = find(of, offset, size)
    if place.path.endswith(PADDING) or (size <= _POINTER and place.path.endswith(SEVERAL)):
        return False
    is_pointer = place.type is not None and place.type.kind is Kind.POINTER
    return place.size > 0 and (not is_pointer or size == _POINTER)


def contains(outer: Type | None, offset: int, inner: Type, depth: int = _DEEPEST) -> bool:
    """Return True if a type has another one at an offset, in bytes, as a member or an element."""
    stripped = bare(outer)
    if stripped is None or offset < 0 or not depth:
        return False
    if stripped is bare(inner):
        return offset == 0
    if stripped.kind is Kind.ARRAY:
        element = byte_size(stripped.target)
        is_inside = bool(element) and offset < byte_size(stripped)
        return is_inside and contains(stripped.target, offset % element, inner, depth - 1)
    if stripped.kind not in (Kind.STRUCT, Kind.UNION):
        return False
    return any(
        contains(member.type, offset - member.offset, inner, depth - 1)
        for member in stripped.members
        if member.offset <= offset < member.offset + max(byte_size(member.type), 1)
    )
