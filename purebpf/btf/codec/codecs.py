"""Values to bytes and back, by BTF type.

    integers, pointers   int, of any size            char arrays            str
    bool                 bool (int above 1)          unsigned char arrays   bytes
    enums                a member of an IntEnum,     other arrays           tuple
                         or int when unnamed         structs                record, fields by name
    floats               float                       unions                 record of every member

Typedefs and qualifiers are seen through; anonymous members are part of what contains them. A
flexible array at the end of a struct takes the rest of the buffer. When encoding, a struct may
also be a mapping or a sequence, a union's other members may be left out, and bytes of the right
size are taken as they are for anything. Padding is zero, but for keys that were read with other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from purebpf.btf.codec.arrays import Array, ArrayCodec, Octets, Text
from purebpf.btf.codec.layout import BitGroup, Bits, Field, Layout, Overlay, Part
from purebpf.btf.codec.padding import KeyStruct, gaps
from purebpf.btf.codec.structs import StructCodec, Tail
from purebpf.btf.codec.values import (
    INTEGER_CODES,
    Boolean,
    Codec,
    Enumeration,
    FloatingPoint,
    Integer,
    WideInteger,
)
from purebpf.btf.types import kinds
from purebpf.btf.types.kinds import MODIFIERS, Kind
from purebpf.btf.types.parse import MAX_DEPTH, Btf
from purebpf.btf.types.spelling import spell
from purebpf.errors import FormatError

__all__ = ["Codec", "codec"]

_TAGGED = frozenset({Kind.STRUCT, Kind.UNION, Kind.ENUM, Kind.ENUM64})

_MAX_EMPTY = 1 << 16
"""Most elements of an array of elements without size, which no buffer bounds."""

_MAX_MEMBERS = 1 << 16
"""Most members visited for one codec: anonymous ones, used twice each, double with every level."""

_VALUES_PER_BYTE = 64
"""Most values that one byte may be decoded to; unions of unions double with every level."""


def codec(btf: Btf, type_id: int, *, key: bool = False) -> Codec:
    """The codec of a type, made once for each Btf.

    Args:
        btf: the types.
        type_id: the type, or a variable, for its type.
        key: for map keys, which must encode to the very bytes that were decoded: strings keep
            what follows a NUL, and records padding that is not zero (`purebpf.btf.codec.padding`).

    FormatError when the type has no size, or is malformed.
    """
    return _Builder(btf, key=key).build(type_id)


class _Builder:
    """Makes the codec of a type and those of the types in it."""

    def __init__(self, btf: Btf, *, key: bool) -> None:
        self._btf = btf
        self._key = key
        self._order = "<" if btf.byteorder == "little" else ">"
        self._depth = 0
        self._members = 0

    def build(self, type_id: int, hint: str = "") -> Codec:
        """The codec; `hint` names the record class of a type without name."""
        type_id = self._canonical(type_id)
        memo = ("codec", type_id, self._key)
        built: Codec | None = self._btf.memo.get(memo)
        if built is None:
            if self._depth == MAX_DEPTH:
                raise self._error(type_id, f"contains itself, or types {MAX_DEPTH} levels deep")
            self._depth += 1
            built = self._make(type_id, self._btf.name(type_id) or hint)
            self._depth -= 1
            if built.weight > _VALUES_PER_BYTE * (built.size + 64):
                problem = f"is {built.weight} values in {built.size} bytes"
                raise self._error(type_id, problem)
            self._btf.memo[memo] = built
        return built

    def _canonical(self, type_id: int) -> int:
        """What to make one codec of: a struct or enum by its name, else the first typedef."""
        resolved = self._btf.resolve(type_id)
        if self._btf.kind(resolved) in _TAGGED and self._btf.name(resolved):
            return resolved
        while (kind := self._btf.kind(type_id)) in MODIFIERS and kind is not Kind.TYPEDEF:
            type_id = self._btf.type(type_id).type_id  # type: ignore[union-attr]
        return type_id

    def _error(self, type_id: int, problem: str) -> FormatError:
        where = f"type {type_id} ({spell(self._btf, type_id)})"
        return FormatError(self._btf.source, where, problem)

    def _make(self, type_id: int, name: str) -> Codec:
        btf_type = self._btf.type(self._btf.resolve(type_id))
        c_type = spell(self._btf, type_id)
        match btf_type:
            case kinds.Int():
                return self._integer(c_type, btf_type)
            case kinds.Ptr():
                return Integer(c_type, self._btf.pointer_size, self._order, signed=False)
            case kinds.Enum() | kinds.Enum64():
                values = {enumerator.name: enumerator.value for enumerator in btf_type.values}
                return Enumeration(
                    c_type, btf_type.size, self._order, signed=btf_type.signed, values=values
                )
            case kinds.Float():
                if btf_type.size in (2, 4, 8):
                    return FloatingPoint(c_type, btf_type.size, self._order)
                return Octets(c_type, btf_type.size, self._order)
            case kinds.Array():
                return self._array(type_id, c_type, btf_type, name)
            case kinds.Struct() | kinds.Union() | kinds.Datasec():
                layout, tail = self._layout(type_id, btf_type)
                name = name or "anonymous"
                if self._key and not tail and (padding := gaps(layout)):
                    return KeyStruct(c_type, name, layout, self._order, padding)
                return StructCodec(c_type, name, layout, self._order, tail)
            case kinds.Var():
                return self.build(btf_type.type_id, name)
            case _:
                raise self._error(type_id, "has no size")

    def _integer(self, c_type: str, integer: kinds.Int) -> Codec:
        if integer.size not in INTEGER_CODES:
            return WideInteger(c_type, integer.size, self._order, signed=integer.signed)
        if integer.is_bool:
            return Boolean(c_type, integer.size, self._order)
        return Integer(c_type, integer.size, self._order, signed=integer.signed)

    def _array(self, type_id: int, c_type: str, array: kinds.Array, name: str) -> ArrayCodec:
        self._btf.sizeof(type_id)  # refuses 4 GiB and more
        element = self._btf.type(self._btf.resolve(array.element))
        if isinstance(element, kinds.Int) and element.size == 1 and not element.is_bool:
            if element.is_char or element.name == "char":
                return Text(c_type, array.count, self._order, key=self._key)
            if not element.signed:
                return Octets(c_type, array.count, self._order)
        inner = self.build(array.element, name)
        if not inner.size and array.count > _MAX_EMPTY:
            raise self._error(type_id, f"is {array.count} elements without size")
        return Array(c_type, inner, array.count, self._order)

    # Structs

    def _layout(
        self, type_id: int, record: kinds.Struct | kinds.Union | kinds.Datasec
    ) -> tuple[Layout, Tail | None]:
        pieces = list(self._pieces(type_id, record, 0))
        parts = self._arrange(type_id, pieces, record.size)
        tail = _flexible(parts[-1]) if parts else None
        return Layout(parts[:-1] if tail else parts, record.size, self._order), tail

    def _pieces(
        self, type_id: int, record: kinds.Struct | kinds.Union | kinds.Datasec, base: int
    ) -> Iterator[Part | Bits]:
        """The fields of a struct that starts at bit `base` of the one that is laid out."""
        if self._depth == MAX_DEPTH:
            raise self._error(type_id, f"contains itself, or types {MAX_DEPTH} levels deep")
        self._depth += 1
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
            for member in self._members_of(record):
                yield from self._piece(type_id, member, base)
        self._depth -= 1

    def _members_of(self, record: kinds.Struct | kinds.Datasec) -> Iterable[kinds.Member]:
        if isinstance(record, kinds.Struct):
            return record.members
        return (
            kinds.Member(self._btf.name(entry.type_id), entry.type_id, 8 * entry.offset, 0)
            for entry in record.entries
        )

    def _piece(self, type_id: int, member: kinds.Member, base: int) -> Iterator[Part | Bits]:
        """The fields that one member adds: one, or those of an anonymous struct or union."""
        self._members += 1
        if self._members > _MAX_MEMBERS:
            raise self._error(type_id, f"contains more than {_MAX_MEMBERS} members")
        resolved = self._btf.resolve(member.type_id)
        btf_type = self._btf.type(resolved)
        offset = base + member.bit_offset
        if member.bit_size or self._is_old_bit_field(btf_type):
            yield self._bits(type_id, member, btf_type, offset)
        elif offset % 8:
            raise self._error(type_id, f"member {member.name!r} starts at bit {offset}")
        elif not member.name and isinstance(btf_type, (kinds.Struct, kinds.Union)):
            yield from self._pieces(resolved, btf_type, offset)
        else:
            yield Field(member.name, offset // 8, self.build(member.type_id, member.name))

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
            raise self._error(type_id, f"bit field {member.name!r} is a {btf_type.kind.name}")
        if width > 8 * btf_type.size:
            problem = f"bit field {member.name!r} has {width} bits of {8 * btf_type.size}"
            raise self._error(type_id, problem)
        inner = self.build(member.type_id)
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
                    raise self._error(type_id, f"member {piece.name!r} overlaps another")
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
                raise self._error(type_id, problem)
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
