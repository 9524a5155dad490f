"""Types inside of others, at an offset."""

from __future__ import annotations

from purebpf.dataflow.types import Kind, Type, bare, byte_size

__all__ = ["contains"]

_DEEPEST = 16


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
