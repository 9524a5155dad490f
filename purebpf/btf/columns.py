"""A BTF type as a numpy dtype: many records as columns, without a Python object for each.

Nothing here imports numpy: `dtype_of` gives what `numpy.dtype` takes.

    integers, pointers, enums   i1 to u8           structs          nested, by offset
    bool                        ?                  unions           every member, overlapping
    floats                      f2, f4, f8         bit fields       one integer for those that share
    char arrays                 S (bytes)                           bytes, named "low_middle_high"
    unsigned char arrays        u1, as other       the rest         V: raw bytes
    other arrays                subarrays
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from purebpf.btf import types
from purebpf.btf.parse import MAX_DEPTH, Btf
from purebpf.errors import FormatError

__all__ = ["dtype_of"]

_MAX_FIELDS = 1 << 12
_MAX_DIMENSIONS = 16
_INTEGERS = (1, 2, 4, 8)


class _Column(NamedTuple):
    name: str
    format: Any
    offset: int


def dtype_of(btf: Btf, type_id: int) -> Any:
    """What `numpy.dtype` takes for a type of fixed size.

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
        found = btf.type(btf.resolve(type_id))
        match found:
            case types.Var():
                return self.format(found.type_id, depth + 1)
            case types.Int() if found.size in _INTEGERS:
                if found.is_bool and size == 1:
                    return "?"
                return f"{self._order}{'i' if found.signed else 'u'}{size}"
            case types.Enum() | types.Enum64():
                return f"{self._order}{'i' if found.signed else 'u'}{size}"
            case types.Ptr():
                return f"{self._order}u{size}"
            case types.Float() if size in (2, 4, 8):
                return f"{self._order}f{size}"
            case types.Array():
                return self._array(found, size, depth)
            case types.Struct() | types.Union():
                return self._record(found, depth)
            case _:
                return f"V{size}"

    def _array(self, found: types.Array, size: int, depth: int) -> Any:
        element = self._btf.type(self._btf.resolve(found.element))
        match element:
            case types.Int(size=1) if element.is_char or element.name == "char":
                return f"S{size}" if size else "V0"
        inner = self.format(found.element, depth + 1)
        if depth > _MAX_DIMENSIONS or not size:
            return f"V{size}"
        return (inner, (found.count,))

    def _record(self, found: types.Struct | types.Union, depth: int) -> Any:
        columns: dict[str, _Column] = {}
        for column in self._columns(found, 0, depth):
            self._fields += 1
            if self._fields > _MAX_FIELDS:
                raise FormatError(self._btf.source, found.name, f"has over {_MAX_FIELDS} fields")
            if column.offset <= found.size and column.name not in columns:
                columns[column.name] = column
        return {
            "names": [each.name for each in columns.values()],
            "formats": [each.format for each in columns.values()],
            "offsets": [each.offset for each in columns.values()],
            "itemsize": found.size,
        }

    def _columns(
        self, found: types.Struct | types.Union, base: int, depth: int
    ) -> Iterator[_Column]:
        """The fields, those of anonymous members included; `base` is in bits."""
        bits: list[types.Member] = []
        for member in found.members:
            resolved = self._btf.resolve(member.type_id)
            inner = self._btf.type(resolved)
            if member.bit_size:
                bits.append(member)
                continue
            offset = base + member.bit_offset
            if not member.name and isinstance(inner, (types.Struct, types.Union)):
                if depth > MAX_DEPTH:
                    raise FormatError(self._btf.source, found.name, "contains itself")
                yield from self._columns(inner, offset, depth + 1)
            else:
                yield _Column(member.name, self.format(member.type_id, depth + 1), offset // 8)
        yield from self._groups(bits, base)

    def _groups(self, bits: list[types.Member], base: int) -> Iterator[_Column]:
        """Bit fields that share bytes, as the smallest integer that covers them."""
        group: list[types.Member] = []
        for member in [*sorted(bits, key=lambda each: each.bit_offset), None]:
            if member and (not group or member.bit_offset // 8 < _end(group)):
                group.append(member)
                continue
            if group:
                start = (base + group[0].bit_offset) // 8
                size = _end(group) + base // 8 - start
                name = "_".join(each.name for each in group if each.name)
                form = f"{self._order}u{size}" if size in _INTEGERS else f"V{size}"
                yield _Column(name, form, start)
            group = [member] if member else []


def _end(group: list[types.Member]) -> int:
    """The byte behind the last that a group of bit fields touches."""
    return max((each.bit_offset + each.bit_size + 7) // 8 for each in group)
