"""One BTF type from its words: the layout of each kind (Documentation/bpf/btf.rst).

A type is three 32-bit words (name, info, size or type) and a tail that depends on its kind.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from purebpf.btf.types import kinds as types
from purebpf.btf.types.kinds import Kind, Type
from purebpf.tuples import NamedTuple

FIXED_TAIL = {Kind.INT: 1, Kind.ARRAY: 3, Kind.VAR: 1, Kind.DECL_TAG: 1}
"""Words after the first three, for kinds with a tail that does not depend on vlen."""

ELEMENT = {
    Kind.STRUCT: 3,
    Kind.UNION: 3,
    Kind.ENUM: 2,
    Kind.FUNC_PROTO: 2,
    Kind.DATASEC: 3,
    Kind.ENUM64: 3,
}
"""Words of each of the vlen elements after the first three."""

VLEN = 0xFFFFFF
"""The bits of an info word that count elements. Kernels of before 2026 take 16."""

LAYOUT_SIZE = 4
"""sizeof(struct btf_layout): what each kind takes after its first three words, by kind."""

_INT_SIGNED = 1
_INT_CHAR = 2
_INT_BOOL = 4
_MAX_INT_BYTES = 16
_ENUM_SIZES = (1, 2, 4, 8)
_FLOAT_SIZES = (2, 4, 8, 12, 16)


def kind_number(info: int) -> int:
    """The kind in an info word, which need not be one of `Kind`."""
    return info >> 24 & 127


class Strides(dict[int, int]):
    """Words a type takes, by its info word.

    `layout` is that section of the BTF, which knows kinds that btf.rst does not have. KeyError for
    a kind that neither has.
    """

    def __init__(self, layout: bytes = b"") -> None:
        super().__init__()
        self.layout = layout

    def __missing__(self, info: int) -> int:
        number = kind_number(info)
        if 0 < number <= Kind.ENUM64:
            kind = Kind(number)
            tail = FIXED_TAIL.get(kind, ELEMENT.get(kind, 0) * (info & VLEN))
        else:
            tail = self._unknown(number, info & VLEN)
        self[info] = words = 3 + tail
        return words

    def _unknown(self, kind: int, vlen: int) -> int:
        """Words after the first three of a kind that only the layout knows."""
        fixed, element = self.layout[LAYOUT_SIZE * kind :][:2] or (1, 0)
        if not kind or fixed % 4 or element % 4:
            raise KeyError(kind)
        return (fixed + element * vlen) // 4


class Record(NamedTuple):
    """A type's words, and the limits that its references are checked against.

    `string` and `strings` raise ValueError for a bad offset; ids must be below `limit`.
    """

    words: Sequence[int]
    string: Callable[[int], str]
    strings: Callable[[Sequence[int]], list[str]]
    limit: int

    @property
    def name(self) -> str:
        """The type's name, or ""."""
        return self.string(self.words[0])

    @property
    def flag(self) -> bool:
        """kind_flag; its meaning depends on the kind."""
        return bool(self.words[1] >> 31)

    @property
    def vlen(self) -> int:
        """The number of elements, or a function's linkage."""
        return self.words[1] & VLEN

    @property
    def size(self) -> int:
        """The third word as a size in bytes."""
        return self.words[2]

    @property
    def target(self) -> int:
        """The third word as a checked type id."""
        return self.check(self.words[2])

    def check(self, type_id: int) -> int:
        """Return `type_id` if the type exists."""
        if type_id >= self.limit:
            raise ValueError(f"refers to type {type_id} of {self.limit}")
        return type_id

    def elements(self, width: int) -> list[Sequence[int]]:
        """The tail, `width` words each."""
        return [self.words[at : at + width] for at in range(3, 3 + width * self.vlen, width)]


def decode(record: Record) -> Type:
    """The type that `record` describes; ValueError when it is malformed."""
    known = _DECODERS.get(kind_number(record.words[1]))
    return known(record) if known is not None else types.Void(record.name)


def _int(record: Record) -> types.Int:
    word = record.words[3]
    encoding, offset, bits = word >> 24 & 15, word >> 16 & 255, word & 255
    # Rust's `()` is an int of 0 bytes, which the kernel refuses
    if record.size > _MAX_INT_BYTES or offset + bits > 8 * record.size:
        raise ValueError(f"an int of {record.size} bytes cannot use {bits} bits at bit {offset}")
    return types.Int(
        record.name,
        record.size,
        bits,
        offset,
        bool(encoding & _INT_SIGNED),
        bool(encoding & _INT_CHAR),
        bool(encoding & _INT_BOOL),
    )


def _members(record: Record) -> tuple[types.Member, ...]:
    flag = record.flag
    words = list(record.words[3 : 3 + 3 * record.vlen])
    ids = words[1::3]
    if ids:
        record.check(max(ids))
    offsets, widths = words[2::3], [0] * len(ids)
    if flag:
        widths = [offset >> 24 for offset in offsets]
        offsets = [offset & 0xFFFFFF for offset in offsets]
    columns = zip(record.strings(words[::3]), ids, offsets, widths, strict=True)
    # what _make does, without a Python call for each member: structs have hundreds
    return tuple(map(partial(tuple.__new__, types.Member), columns))


def _sign_extend(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> bits - 1 else value


def _check_size(record: Record, sizes: tuple[int, ...]) -> int:
    if record.size not in sizes:
        raise ValueError(f"has a size of {record.size} bytes, not one of {sizes}")
    return record.size


def _enum(record: Record) -> types.Enum:
    values = tuple(
        types.Enumerator(record.string(name), _sign_extend(value, 32) if record.flag else value)
        for name, value in record.elements(2)
    )
    return types.Enum(record.name, _check_size(record, _ENUM_SIZES), record.flag, values)


def _enum64(record: Record) -> types.Enum64:
    values = tuple(
        types.Enumerator(
            record.string(name),
            _sign_extend(high << 32 | low, 64) if record.flag else high << 32 | low,
        )
        for name, low, high in record.elements(3)
    )
    return types.Enum64(record.name, _check_size(record, _ENUM_SIZES), record.flag, values)


def _func_proto(record: Record) -> types.FuncProto:
    return types.FuncProto(
        record.target,
        tuple(
            types.Param(record.string(name), record.check(type_id))
            for name, type_id in record.elements(2)
        ),
    )


def _linkage(value: int) -> types.Linkage:
    if value > types.Linkage.EXTERN:
        raise ValueError(f"has an unknown linkage {value}")
    return _LINKAGES[value]


def _datasec(record: Record) -> types.Datasec:
    return types.Datasec(
        record.name,
        record.size,
        tuple(
            types.DatasecEntry(record.check(type_id), offset, size)
            for type_id, offset, size in record.elements(3)
        ),
    )


_LINKAGES = tuple(types.Linkage)
_DECODERS: dict[int, Callable[[Record], Type]] = {
    Kind.INT: _int,
    Kind.PTR: lambda r: types.Ptr(r.target),
    Kind.ARRAY: lambda r: types.Array(r.check(r.words[3]), r.check(r.words[4]), r.words[5]),
    Kind.STRUCT: lambda r: types.Struct(r.name, r.size, _members(r)),
    Kind.UNION: lambda r: types.Union(r.name, r.size, _members(r)),
    Kind.ENUM: _enum,
    Kind.FWD: lambda r: types.Fwd(r.name, r.flag),
    Kind.TYPEDEF: lambda r: types.Typedef(r.name, r.target),
    Kind.VOLATILE: lambda r: types.Volatile(r.target),
    Kind.CONST: lambda r: types.Const(r.target),
    Kind.RESTRICT: lambda r: types.Restrict(r.target),
    Kind.FUNC: lambda r: types.Func(r.name, r.target, _linkage(r.vlen)),
    Kind.FUNC_PROTO: _func_proto,
    Kind.VAR: lambda r: types.Var(r.name, r.target, _linkage(r.words[3])),
    Kind.DATASEC: _datasec,
    Kind.FLOAT: lambda r: types.Float(r.name, _check_size(r, _FLOAT_SIZES)),
    Kind.DECL_TAG: lambda r: types.DeclTag(r.name, r.target, _sign_extend(r.words[3], 32)),
    Kind.TYPE_TAG: lambda r: types.TypeTag(r.name, r.target),
    Kind.ENUM64: _enum64,
}
