"""Layouts of types, as pahole lists them. Pure."""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from purebpf.dataflow.types import Kind, Type, bare, byte_size, spell
from purebpf.tuples import NamedTuple

__all__ = ["Field", "Layout", "element_of", "layout_of", "signature"]

_DEEPEST = 8
_MOST = 2048
_RECORDS = (Kind.STRUCT, Kind.UNION)


class Field(NamedTuple):
    """A line of a layout: a member, or a hole; `depth` levels below the struct."""

    type: str
    name: str
    offset: int
    size: int
    depth: int
    bits: int = 0


class Layout(NamedTuple):
    """The members of a struct by offset, and its size in bytes."""

    size: int
    fields: tuple[Field, ...]


def element_of(of: Type | None) -> Type | None:
    """Return the type of the elements of an array, over all dimensions; other types as they are."""
    current = bare(of)
    while current is not None and current.kind is Kind.ARRAY:
        of, current = current.target, bare(current.target)
    return of


def signature(of: Type | None) -> Hashable:
    """Return a key that types of the same layout share."""
    record = bare(of)
    if record is None:
        return None
    members = tuple((m.name, m.offset, byte_size(m.type)) for m in record.members)
    return byte_size(record), members


def layout_of(of: Type | None) -> Layout:
    """Return the members of a struct with the members of structs in it; of others only the size."""
    fields: list[Field] = []
    for field in _fields(bare(of), "", 0, 0):
        if len(fields) >= _MOST:
            break
        fields.append(field)
    return Layout(byte_size(of), tuple(fields))


def _fields(record: Type | None, prefix: str, start: int, depth: int) -> Iterator[Field]:
    if record is None or record.kind not in _RECORDS or depth > _DEEPEST:
        return
    end = 0
    for member in record.members:
        size = byte_size(member.type)
        if member.offset > end and record.kind is Kind.STRUCT:
            yield Field("(hole)", "", start + end, member.offset - end, depth)
        end = max(end, member.offset + size)
        path = f"{prefix}.{member.name}" if prefix and member.name else prefix + member.name
        yield Field(spell(member.type), path, start + member.offset, size, depth, member.bits)
        inner = element_of(member.type)
        brackets = "[]" * _dimensions(member.type)
        yield from _fields(bare(inner), path + brackets, start + member.offset, depth + 1)
    if record.kind is Kind.STRUCT and 0 < end < record.size:
        yield Field("(padding)", "", start + end, record.size - end, depth)


def _dimensions(of: Type | None) -> int:
    """Return 1 for an array, whatever its dimensions: DWARF has one entry for all of them."""
    count, current = 0, bare(of)
    while current is not None and current.kind is Kind.ARRAY:
        count, current = count + 1, bare(current.target)
    return count
