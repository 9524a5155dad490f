"""A BTF type as a numpy dtype: many records as columns, without a Python object for each.

Nothing here imports numpy: `dtype_of` returns an argument for `numpy.dtype`.

    integers, pointers, enums   i1 to u8           structs          nested, by offset
    bool                        ?                  unions           every member, overlapping
    floats                      f2, f4, f8         bit fields       one integer for those that share
    char arrays                 S (bytes)                           bytes, named "low_middle_high",
    unsigned char arrays        u1, as other                        "low_bits" for one alone
    other arrays                subarrays          the rest         V: raw bytes

A bit field has a separate column only if that column holds its value: all bits of an integer.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from purebpf.btf.types import kinds
from purebpf.btf.types.parse import MAX_DEPTH, Btf
from purebpf.errors import FormatError, NotSupportedError
from purebpf.tuples import NamedTuple

__all__ = ["dtype_of"]

_MAX_FIELDS = 1 << 12
_MAX_DIMENSIONS = 16
_INTEGERS = (1, 2, 4, 8)


class _Column(NamedTuple):
    name: str
    format: Any
    offset: int
    is_value: bool = True  # of the field that it is named after


def dtype_of(btf: Btf, type_id: int) -> Any:
    """Return the argument of `numpy.dtype` for a type of fixed size.

    Raises:
        FormatError: the type has no size, or is malformed.
    """
    return _Formats(btf).format(type_id, 0)


class _Formats:
    def __init__(self, btf: Btf) -> None:
        self._btf = btf
        self._order = "<" if btf.byteorder == "little" else ">"
        self._fields = 0

    def format(self, type_id: int, depth: int) -> Any:
        if depth > MAX_DEPTH:
            raise FormatError(self._btf.source, f"type {type_id}", "contains itself")
        btf = self._btf
        size = btf.sizeof(type_id)
        btf_type = btf.type(btf.resolve(type_id))
        match btf_type:
            case kinds.Var():
                return self.format(btf_type.type_id, depth + 1)
            case kinds.Int() if btf_type.size in _INTEGERS:
                if btf_type.is_bool and size == 1:
                    return "?"
                return f"{self._order}{'i' if btf_type.signed else 'u'}{size}"
            case kinds.Enum() | kinds.Enum64():
                return f"{self._order}{'i' if btf_type.signed else 'u'}{size}"
            case kinds.Ptr():
                return f"{self._order}u{size}"
            case kinds.Float() if size in (2, 4, 8):
                return f"{self._order}f{size}"
            case kinds.Array():
                return self._array(btf_type, size, depth)
            case kinds.Struct() | kinds.Union():
                return self._record(btf_type, depth)
            case _:
                return f"V{size}"

    def _array(self, array: kinds.Array, size: int, depth: int) -> Any:
        element = self._btf.type(self._btf.resolve(array.element))
        match element:
            case kinds.Int(size=1) if element.is_char or element.name == "char":
                return f"S{size}" if size else "V0"
        inner = self.format(array.element, depth + 1)
        if depth > _MAX_DIMENSIONS or not size:
            return f"V{size}"
        return (inner, (array.count,))

    def _record(self, record: kinds.Struct | kinds.Union, depth: int) -> Any:
        fields: list[_Column] = []
        groups: list[_Column] = []
        for column in self._columns(record, 0, depth):
            self._fields += 1
            if self._fields > _MAX_FIELDS:
                raise FormatError(self._btf.source, record.name, f"has over {_MAX_FIELDS} fields")
            (fields if column.is_value else groups).append(column)
        columns: dict[str, _Column] = {}
        longest: dict[str, str] = {}  # from where to go on: a hostile type has one name many times
        for column in fields + groups:
            name = column.name if column.is_value else longest.get(column.name, column.name)
            while name in columns and not column.is_value:
                name += "_bits"
            longest[column.name] = name
            if column.offset <= record.size and name not in columns:
                columns[name] = column
        return {
            "names": list(columns),
            "formats": [kept.format for kept in columns.values()],
            "offsets": [kept.offset for kept in columns.values()],
            "itemsize": record.size,
        }

    def _columns(
        self, record: kinds.Struct | kinds.Union, base: int, depth: int
    ) -> Iterator[_Column]:
        """Yield the fields, with members of anonymous members; `base` is in bits."""
        bits: list[kinds.Member] = []
        for declared in record.members:
            inner = self._btf.type(self._btf.resolve(declared.type_id))
            member = _as_bits(declared, inner)
            if member.bit_size:
                bits.append(member)
                continue
            offset = base + member.bit_offset
            if not member.name and isinstance(inner, (kinds.Struct, kinds.Union)):
                if depth > MAX_DEPTH:
                    raise FormatError(self._btf.source, record.name, "contains itself")
                yield from self._columns(inner, offset, depth + 1)
            else:
                yield _Column(member.name, self.format(member.type_id, depth + 1), offset // 8)
        yield from self._groups(bits, base)

    def _groups(self, bits: list[kinds.Member], base: int) -> Iterator[_Column]:
        """Bit fields that share bytes, as the smallest integer that covers them."""
        group: list[kinds.Member] = []
        for member in [*sorted(bits, key=lambda bit_field: bit_field.bit_offset), None]:
            if member and (not group or member.bit_offset // 8 < _end(group)):
                group.append(member)
                continue
            if group:
                yield self._group(group, base)
            group = [member] if member else []

    def _group(self, group: list[kinds.Member], base: int) -> _Column:
        start = (base + group[0].bit_offset) // 8
        size = _end(group) + base // 8 - start
        names = [member.name for member in group if member.name]
        if size not in _INTEGERS:
            form, whole = f"V{size}", False
        else:
            whole = len(group) == 1 and group[0].bit_size == 8 * size
            inner = self._btf.type(self._btf.resolve(group[0].type_id))
            signed = whole and getattr(inner, "signed", False)
            form = f"{self._order}{'i' if signed else 'u'}{size}"
        name = "_".join(names) if whole or len(names) > 1 else f"{''.join(names)}_bits"
        return _Column(name, form, start, whole)


def _as_bits(member: kinds.Member, btf_type: kinds.Type) -> kinds.Member:
    """The same; converts a bit field of the old encoding (bits in the type) to the new one."""
    if (
        member.bit_size
        or not isinstance(btf_type, kinds.Int)
        or not 0 < btf_type.bits < 8 * btf_type.size
    ):
        return member
    return member._replace(bit_offset=member.bit_offset + btf_type.offset, bit_size=btf_type.bits)


def _end(group: list[kinds.Member]) -> int:
    """The byte behind the last that a group of bit fields touches."""
    return max((member.bit_offset + member.bit_size + 7) // 8 for member in group)


def numpy() -> Any:
    """The module.

    Raises:
        NotSupportedError: it is not installed.
    """
    try:
        import numpy as np
    except ImportError:
        reason = "numpy is not installed: pip install 'purebpf[numpy]'"
        raise NotSupportedError("arrays", reason) from None
    return np


def dtype(btf: Btf | None, type_id: int, size: int) -> Any:
    """The dtype of a type, or of `size` raw bytes where there is none of that size."""
    np = numpy()
    if btf is None or not type_id or btf.sizeof(type_id) != size:
        return np.dtype(f"V{size}")
    return np.dtype(dtype_of(btf, type_id))
