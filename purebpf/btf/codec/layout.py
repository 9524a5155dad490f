"""The inside of a struct: parts at byte offsets, each one slot of a flat struct format.

A part is a plain field, a group of bit fields that share bytes, or the views of an anonymous union.
The bytes between parts are padding: skipped when decoding, zero when encoding.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Any

from purebpf.btf.codec.values import (
    INTEGER_CODES,
    UNFIT,
    Codec,
    Misfit,
    check_int,
    int_range,
    repeated,
)
from purebpf.tuples import NamedTuple

_ROWS = 512
"""Records in one conversion of columns."""


class FieldPlace(NamedTuple):
    """A field of a record: its codec, and where it is, in bits; `width` of a bit field, else 0."""

    name: str
    codec: Codec
    bit_offset: int
    width: int


class Part:
    """A run of bytes of a struct that holds one or more of its fields."""

    def __init__(
        self, names: Iterable[str], offset: int, size: int, code: str, weight: int
    ) -> None:
        self.names = tuple(names)
        self.offset = offset
        self.size = size
        self.code = code
        self.weight = weight

    def places(self) -> Iterator[FieldPlace]:
        """Each field, in the order of `names`."""
        raise NotImplementedError

    def read(self, slot: Any, values: list[Any]) -> None:
        """Append the fields' values."""
        raise NotImplementedError

    def write(self, values: Sequence[Any]) -> Any:
        """The slot for the fields' values; None is a field that was not given."""
        raise NotImplementedError


class Field(Part):
    """A field that shares its bytes with no other."""

    def __init__(self, name: str, offset: int, codec: Codec) -> None:
        super().__init__((name,), offset, codec.size, codec.code, codec.weight)
        self.codec = codec
        self.convert = codec.convert

    def places(self) -> Iterator[FieldPlace]:
        """The one."""
        yield FieldPlace(self.names[0], self.codec, 8 * self.offset, 0)

    def read(self, slot: Any, values: list[Any]) -> None:
        """Append the value."""
        values.append(slot if self.convert is None else self.convert(slot))

    def write(self, values: Sequence[Any]) -> Any:
        """The value's slot."""
        value = values[0]
        try:
            return b"" if value is None and not self.size else self.codec.to_slot(value)
        except Misfit as misfit:
            raise misfit.under(f".{self.names[0]}") from None


class Bits(NamedTuple):
    """A bit field: its first bit and width, counted as BTF does, from the start of the struct."""

    name: str
    bit_offset: int
    bit_size: int
    codec: Codec
    signed: bool
    convert: Callable[[int], Any] | None

    @property
    def first_byte(self) -> int:
        """The first byte that it touches."""
        return self.bit_offset // 8

    @property
    def end_byte(self) -> int:
        """The byte after the last that it touches."""
        return (self.bit_offset + self.bit_size + 7) // 8

    def lower(self, value: Any) -> int:
        """The bits of `value`, not shifted; raises Misfit."""
        if isinstance(value, str):
            value = self.codec.lower(value)
        low, high = int_range(self.bit_size, signed=self.signed)
        number = check_int(f"{self.codec.c_type} : {self.bit_size}", value, low, high)
        return number & (1 << self.bit_size) - 1


class BitGroup(Part):
    """Bit fields that share bytes, read as one integer.

    Bit offsets count from the least significant bit of a little-endian integer, and from the
    most significant bit of a big-endian one.
    """

    def __init__(self, fields: Sequence[Bits], order: str) -> None:
        offset = fields[0].first_byte
        size = fields[-1].end_byte - offset
        code = INTEGER_CODES[size][0] if size in INTEGER_CODES else f"{size}s"
        super().__init__((field.name for field in fields), offset, size, code, len(fields))
        self._byteorder: Any = "little" if order == "<" else "big"
        self._fields = [(field, self._shift(field)) for field in fields]

    def places(self) -> Iterator[FieldPlace]:
        """Each bit field."""
        for field, _ in self._fields:
            yield FieldPlace(field.name, field.codec, field.bit_offset, field.bit_size)

    def _shift(self, field: Bits) -> int:
        start = field.bit_offset - 8 * self.offset
        return start if self._byteorder == "little" else 8 * self.size - start - field.bit_size

    def read(self, slot: Any, values: list[Any]) -> None:
        """Append each bit field's value."""
        number = int.from_bytes(slot, self._byteorder) if isinstance(slot, bytes) else slot
        for field, shift in self._fields:
            value = number >> shift & (1 << field.bit_size) - 1
            if field.signed and value >> field.bit_size - 1:
                value -= 1 << field.bit_size
            values.append(value if field.convert is None else field.convert(value))

    def write(self, values: Sequence[Any]) -> Any:
        """The integer with all of them; bits between them are zero."""
        number = 0
        for (field, shift), value in zip(self._fields, values, strict=True):
            try:
                bits = field.lower(value)
            except Misfit as misfit:
                raise misfit.under(f".{field.name}") from None
            number |= bits << shift
        return number if self.size in INTEGER_CODES else number.to_bytes(self.size, self._byteorder)


class Overlay(Part):
    """The members of a union: views of the same bytes, each a layout of one or more fields."""

    def __init__(self, offset: int, size: int, views: Sequence[Layout]) -> None:
        names = (name for view in views for name in view.names)
        super().__init__(names, offset, size, f"{size}s", sum(view.weight for view in views))
        self._views = views

    def places(self) -> Iterator[FieldPlace]:
        """The fields of every view."""
        for view in self._views:
            for part in view.parts:
                for place in part.places():
                    yield place._replace(bit_offset=place.bit_offset + 8 * self.offset)

    def read(self, slot: Any, values: list[Any]) -> None:
        """Append the fields of every view."""
        for view in self._views:
            values += view.read(slot)

    def write(self, values: Sequence[Any]) -> bytes:
        """The bytes that all given views agree on; one view is enough."""
        given = []
        start = 0
        for view in self._views:
            mine = values[start : start + len(view.names)]
            start += len(view.names)
            if any(value is not None for value in mine):
                given.append((view, view.write(mine)))
        if not given and self.names:
            raise Misfit("union", f"choose one of {', '.join(self.names)}")
        merged = 0
        for _, raw in given:
            merged |= int.from_bytes(raw, "little")
        result = merged.to_bytes(self.size, "little")
        for view, raw in given if len(given) > 1 else ():
            if view.write(view.read(result)) != raw:
                names = ", ".join(name for view, _ in given for name in view.names)
                raise Misfit("union", f"{names} do not describe the same bytes; choose one of them")
        return result


class Layout:
    """Parts in the order of their offsets, as one flat format.

    Attributes:
        names: the fields, in order.
        weight: how many values one reading makes.
        format: the struct, all `size` bytes of it.
        converts: (field, function) where a field is not its slot; None if parts have more or
            fewer than one field.
        lowers: the same for writing: the fields that struct does not check, as it cuts and pads
            bytes; None as for `converts`.
    """

    def __init__(self, parts: Sequence[Part], size: int, order: str) -> None:
        self.parts = parts
        self.names = tuple(name for part in parts for name in part.names)
        self.weight = 1 + sum(part.weight for part in parts)
        pieces, at = [order], 0
        for part in parts:
            pieces.append(f"{part.offset - at}x" if part.offset > at else "")
            pieces.append(part.code)
            at = max(at, part.offset + part.size)
        pieces.append(f"{size - at}x" if size > at else "")
        self.format = struct.Struct("".join(pieces))
        self.converts: list[tuple[int, Callable[[Any], Any]]] | None = None
        if all(isinstance(part, Field) for part in parts):
            fields = [part.convert for part in parts if isinstance(part, Field)]
            self.converts = [(i, convert) for i, convert in enumerate(fields) if convert]
        self.lowers: list[tuple[int, Callable[[Any], Any]]] | None = None
        if self.converts is not None:
            codecs = [part.codec for part in parts if isinstance(part, Field)]
            self.lowers = [(i, c.to_slot) for i, c in enumerate(codecs) if c.code.endswith("s")]

    def read(self, raw: bytes) -> list[Any]:
        """The fields' values of exactly these bytes."""
        return self.values(self.format.unpack(raw))

    def values(self, slots: tuple[Any, ...]) -> list[Any]:
        """The fields' values of unpacked slots."""
        if self.converts is not None:
            values = [*slots]
            for index, convert in self.converts:
                values[index] = convert(values[index])
            return values
        values = []
        for part, slot in zip(self.parts, slots, strict=True):
            part.read(slot, values)
        return values

    def rows(self, unpacked: Iterator[tuple[Any, ...]]) -> Iterator[Sequence[Any]]:
        """Do the same as `values`, for the slots of many records."""
        if self.converts is None:
            return map(self.values, unpacked)
        return chain.from_iterable(self._columns(unpacked)) if self.converts else unpacked

    def _columns(self, unpacked: Iterator[tuple[Any, ...]]) -> Iterator[Iterator[tuple[Any, ...]]]:
        """Rows, some at a time, converted column by column: no step of Python's for a record."""
        assert self.converts is not None
        while some := tuple(islice(unpacked, _ROWS)):
            columns: list[Iterable[Any]] = [*zip(*some, strict=True)]
            for index, convert in self.converts:
                columns[index] = map(convert, columns[index])
            yield zip(*columns, strict=True)

    def write(self, values: Sequence[Any]) -> bytes:
        """The bytes of one value for each field; raises Misfit."""
        return self.write_at_once(values) or self._write_by_part(values)

    def write_at_once(self, values: Sequence[Any]) -> bytes:
        """The same in one call of struct; b"" where that needs a closer look, or a value is bad."""
        if self.lowers is None:
            return b""
        try:
            if self.lowers:
                values = [*values]
                for index, lower in self.lowers:
                    values[index] = lower(values[index])
            return self.format.pack(*values)
        except (*UNFIT, Misfit, IndexError):
            return b""

    def write_many(self, records: Sequence[Sequence[Any]]) -> bytes:
        """Do the same as `write_at_once` for many records, all with a value for each field."""
        if self.lowers is None:
            return b""
        try:
            values = chain.from_iterable(records)
            if self.lowers:
                columns: list[Iterable[Any]] = [*zip(*records, strict=True)]
                for index, lower in self.lowers:
                    columns[index] = map(lower, columns[index])
                values = chain.from_iterable(zip(*columns, strict=True))
            return repeated(self.format, len(records)).pack(*values)
        except (*UNFIT, Misfit):
            return b""

    def _write_by_part(self, values: Sequence[Any]) -> bytes:
        slots = []
        start = 0
        for part in self.parts:
            slots.append(part.write(values[start : start + len(part.names)]))
            start += len(part.names)
        return self.format.pack(*slots)
