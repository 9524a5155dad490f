"""Codecs of compound types: arrays, structs, unions, data sections."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

from purebpf.btf.codec.arrays import Array, ArrayCodec, CharBytes, Octets, Text
from purebpf.btf.codec.layout import BitGroup, Bits, Field, Layout, Overlay, Part
from purebpf.btf.codec.padding import KeyStruct, gaps
from purebpf.btf.codec.structs import StructCodec, Tail
from purebpf.btf.codec.values import Boolean, Codec, Enumeration
from purebpf.btf.types import kinds
from purebpf.btf.types.parse import MAX_DEPTH, Btf
from purebpf.errors import FormatError

__all__ = ["array_codec", "struct_codec"]

_MAX_EMPTY = 1 << 16
"""Most elements of an array of elements without size, which no buffer bounds."""

_MAX_MEMBERS = 1 << 16
"""Most members visited for one codec: anonymous ones, used twice each, double with every level."""

_Record = kinds.Struct | kinds.Union | kinds.Datasec


class Builder(Protocol):
    """Makes the codecs of the types inside: `purebpf.btf.codec.codecs`.

    Attributes:
        btf: the types.
        key: whether they are for the keys of a map.
        text: whether char arrays are text, or bytes.
        order: of bytes, as struct has it.
        depth: how many types contain the one that is looked at.
        members: how many were looked at so far.
    """

    btf: Btf
    key: bool
    text: bool
    order: str
    depth: int
    members: int

    def build(self, type_id: int, hint: str = "") -> Codec:
        """The codec of a type; `hint` names the record class of one without name."""

    def error(self, type_id: int, problem: str) -> FormatError:
        """Return an error about a type."""


def array_codec(
    builder: Builder, type_id: int, c_type: str, array: kinds.Array, name: str
) -> ArrayCodec:
    """The codec of an array; `name` is for the records of elements without a name.

    Raises:
        FormatError: it has no size, or 4 GiB and more.
    """
    builder.btf.sizeof(type_id)  # refuses 4 GiB and more
    element = builder.btf.type(builder.btf.resolve(array.element))
    if isinstance(element, kinds.Int) and element.size == 1 and not element.is_bool:
        if element.is_char or element.name == "char":
            if not builder.text:
                return CharBytes(c_type, array.count, builder.order)
            return Text(c_type, array.count, builder.order, key=builder.key)
        if not element.signed:
            return Octets(c_type, array.count, builder.order)
    inner = builder.build(array.element, name)
    if not inner.size and array.count > _MAX_EMPTY:
        raise builder.error(type_id, f"is {array.count} elements without size")
    return Array(c_type, inner, array.count, builder.order)


def struct_codec(
    builder: Builder, type_id: int, c_type: str, record: _Record, name: str
) -> StructCodec:
    """Return the codec of a struct, union or data section, and the codecs of its members.

    Raises:
        FormatError: members overlap, reach over its end, or are too many or too deep.
    """
    order = builder.order
    layout, tail = _Pieces(builder).layout(type_id, record)
    name = name or "anonymous"
    if builder.key and not tail and (padding := gaps(layout)):
        return KeyStruct(c_type, name, layout, order, padding)
    return StructCodec(c_type, name, layout, order, tail)


class _Pieces:
    """The pieces of a struct, by their places."""

    def __init__(self, builder: Builder) -> None:
        self._builder = builder
        self._btf = builder.btf
        self._order = builder.order

    def layout(self, type_id: int, record: _Record) -> tuple[Layout, Tail | None]:
        """Return the places of all fields, and the array without an end behind them."""
        pieces = list(self._pieces(type_id, record, 0))
        parts = self._arrange(type_id, pieces, record.size)
        tail = _flexible(parts[-1]) if parts else None
        return Layout(parts[:-1] if tail else parts, record.size, self._order), tail

    def _pieces(self, type_id: int, record: _Record, base: int) -> Iterator[Part | Bits]:
        """The fields of a struct that starts at bit `base` of the one that is laid out."""
        if self._builder.depth == MAX_DEPTH:
            raise self._builder.error(type_id, f"contains itself, or types {MAX_DEPTH} levels deep")
        self._builder.depth += 1
        if isinstance(record, kinds.Union):
            views = [
                Layout(
                    self._arrange(type_id, self._piece(type_id, member, 0), record.size),
                    record.size,
                    self._order,
                )
                for member in record.members
            ]
            yield Overlay(base // 8, record.size, views)
        else:
            members = list(self._members_of(record))
            for number, member in enumerate(members):
                if not member.type_id and not member.name:
                    yield from self._base_class(record, members, number, base)
                else:
                    yield from self._piece(type_id, member, base)
        self._builder.depth -= 1

    def _base_class(
        self, record: _Record, members: list[kinds.Member], number: int, base: int
    ) -> Iterator[Part]:
        """The bytes of a C++ base class: clang says where it begins, but no type and no name.

        It ends where the next member begins. An empty class has no bytes, and is no field.
        """
        begin = members[number].bit_offset
        later = [member.bit_offset for member in members if member.bit_offset > begin]
        size = (min([*later, 8 * record.size]) - begin) // 8
        if begin % 8 or size <= 0 or any(m.bit_offset == begin for m in members[number + 1 :]):
            return
        taken = {member.name for member in members}
        names = (f"base{count or ''}" for count in range(len(members) + 1))
        earlier = sum(not m.type_id and not m.name for m in members[:number])
        free = [name for name in names if name not in taken]
        codec = Octets(f"unsigned char[{size}]", size, self._order)
        yield Field(free[earlier], (base + begin) // 8, codec)

    def _members_of(self, record: kinds.Struct | kinds.Datasec) -> Iterable[kinds.Member]:
        if isinstance(record, kinds.Struct):
            return record.members
        return (
            kinds.Member(self._btf.name(entry.type_id), entry.type_id, 8 * entry.offset, 0)
            for entry in record.entries
        )

    def _piece(self, type_id: int, member: kinds.Member, base: int) -> Iterator[Part | Bits]:
        """Return the fields that one member adds: one, or all of an anonymous struct or union."""
        self._builder.members += 1
        if self._builder.members > _MAX_MEMBERS:
            raise self._builder.error(type_id, f"contains more than {_MAX_MEMBERS} members")
        resolved = self._btf.resolve(member.type_id)
        btf_type = self._btf.type(resolved)
        offset = base + member.bit_offset
        if member.bit_size or self._is_old_bit_field(btf_type):
            yield self._bits(type_id, member, btf_type, offset)
        elif offset % 8:
            raise self._builder.error(type_id, f"member {member.name!r} starts at bit {offset}")
        elif not member.name and isinstance(btf_type, (kinds.Struct, kinds.Union)):
            yield from self._pieces(resolved, btf_type, offset)
        else:
            yield Field(member.name, offset // 8, self._builder.build(member.type_id, member.name))

    @staticmethod
    def _is_old_bit_field(btf_type: kinds.Type) -> bool:
        return isinstance(btf_type, kinds.Int) and 0 < btf_type.bits < 8 * btf_type.size

    def _bits(self, type_id: int, member: kinds.Member, btf_type: kinds.Type, offset: int) -> Bits:
        if isinstance(btf_type, kinds.Int):
            width, signed = member.bit_size or btf_type.bits, btf_type.signed
            offset += 0 if member.bit_size else btf_type.offset
        elif isinstance(btf_type, (kinds.Enum, kinds.Enum64)):
            width, signed = member.bit_size, btf_type.signed
        else:
            raise self._builder.error(
                type_id, f"bit field {member.name!r} is a {btf_type.kind.name}"
            )
        if width > 8 * btf_type.size:
            problem = f"bit field {member.name!r} has {width} bits of {8 * btf_type.size}"
            raise self._builder.error(type_id, problem)
        inner = self._builder.build(member.type_id)
        signed = signed and not isinstance(inner, Boolean)
        convert = inner.convert if isinstance(inner, (Enumeration, Boolean)) else None
        return Bits(member.name, offset, width, inner, signed, convert)

    def _arrange(self, type_id: int, pieces: Iterable[Part | Bits], size: int) -> list[Part]:
        """The pieces by offset, bit fields grouped; none may overlap or be outside."""
        parts: list[Part] = []
        group: list[Bits] = []
        at = 0
        ordered = sorted(pieces, key=_first_bit)
        for piece, following in zip(ordered, [*ordered[1:], None], strict=False):
            if isinstance(piece, Bits):
                if group and piece.bit_offset < group[-1].bit_offset + group[-1].bit_size:
                    raise self._builder.error(type_id, f"member {piece.name!r} overlaps another")
                group.append(piece)
                if isinstance(following, Bits) and following.first_byte < piece.end_byte:
                    continue
                part: Part = BitGroup(group, self._order)
                group = []
            else:
                part = piece
            if (part.size and part.offset < at) or part.offset + part.size > size:
                names = ", ".join(map(repr, part.names))
                problem = f"member {names} overlaps another, or the end of its {size} bytes"
                raise self._builder.error(type_id, problem)
            at = max(at, part.offset + part.size)
            parts.append(part)
        return parts


def _flexible(last: Part) -> Tail | None:
    if isinstance(last, Field) and isinstance(last.codec, ArrayCodec):
        codec = last.codec
        if codec.count == 0 and codec.element_size:
            return Tail(last.names[0], last.offset, codec)
    return None


def _first_bit(piece: Part | Bits) -> int:
    return piece.bit_offset if isinstance(piece, Bits) else 8 * piece.offset
