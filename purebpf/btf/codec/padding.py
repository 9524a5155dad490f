"""Padding in map keys: the kernel compares all bytes of a key, also those between its fields.

A C program that sets the fields of a key on its stack, and nothing else, leaves there whatever was
there before. A key that was read keeps such padding, unseen, and goes back in as it came out.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from functools import cached_property
from operator import itemgetter
from typing import Any, TypeVar

from purebpf.btf.codec.layout import Layout
from purebpf.btf.codec.records import Record
from purebpf.btf.codec.structs import StructCodec
from purebpf.btf.codec.values import Buffer

__all__ = ["Gap", "KeyStruct", "gaps", "like"]

_T = TypeVar("_T")

Gap = tuple[int, int]
"""Bits that no field has: the first, counted as BTF does, and the one after the last."""


def gaps(layout: Layout) -> list[Gap]:
    """Return the padding of a struct, without the padding of structs in it."""
    places = (place for part in layout.parts for place in part.places())
    ends = ((at.bit_offset, at.bit_offset + (at.width or 8 * at.codec.size)) for at in places)
    ranges, reached, size = [], 0, 8 * layout.format.size
    for start, end in [*sorted(ends), (size, size)]:
        if start > reached:
            ranges.append((reached, start))
        reached = max(reached, end)
    return ranges


class KeyStruct(StructCodec):
    """A struct with padding, in a key: padding that is not zero is preserved.

    Two readings of a buffer cost as much as one, as long as all padding in it is zero.
    """

    def __init__(
        self, c_type: str, name: str, layout: Layout, order: str, padding: list[Gap]
    ) -> None:
        super().__init__(c_type, name, layout, order)
        self.from_start = None
        self._gaps = padding

    @cached_property
    def _mask(self) -> bytes:
        """The struct with every bit of its padding set."""
        mask, last = 0, 8 * self.size
        for start, end in self._gaps:
            mask |= (1 << end - start) - 1 << (start if self.order == "<" else last - end)
        return mask.to_bytes(self.size, "little" if self.order == "<" else "big")

    def _padding(self, raw: Buffer) -> bytes:
        """The bytes of one struct or of many without their fields; b"" where that is all zero."""
        mask = self._mask * (len(raw) // self.size)
        number = int.from_bytes(raw, "little") & int.from_bytes(mask, "little")
        return number.to_bytes(len(raw), "little") if number else b""

    def convert(self, slot: bytes) -> Record:
        """The record in exactly these bytes."""
        return _with_padding(super().convert(slot), self._padding(slot))

    def decode(self, buffer: Buffer, offset: int = 0) -> Record:
        """The record at `offset`."""
        record = super().decode(buffer, offset)
        return _with_padding(record, self._padding(buffer[offset : offset + self.size]))

    def elements(self, buffer: Buffer) -> Iterator[Record]:
        """Do the same as `iter_decode` for a whole number of records."""
        records, padding = super().elements(buffer), self._padding(buffer)
        if not padding:
            return records
        size = self.size
        own_bytes = (padding[at : at + size] for at in range(0, len(padding), size))
        return map(_with_padding, records, (own if any(own) else b"" for own in own_bytes))

    def spaced(self, before: int, after: int) -> Callable[[Buffer], Iterator[Record]]:
        """As `Codec.spaced`."""
        unpack = struct.Struct(f"{before}x{self.size}s{after}x").iter_unpack
        return lambda buffer: self.elements(b"".join(map(itemgetter(0), unpack(buffer))))

    def lower(self, value: Any) -> bytes:
        """As a struct; a key that was read brings its padding."""
        raw, padding = super().lower(value), _padding_of(value)
        if len(padding) != self.size:
            return raw
        kept = int.from_bytes(self._padding(padding), "little")
        return (int.from_bytes(raw, "little") | kept).to_bytes(self.size, "little")


class _Padded:
    """A record with padding that is not zero.

    It equals records with the same fields and the same padding: keys that differ in nothing else
    are different elements of a map. A record that a caller makes, or `_replace` returns, has zero
    padding, and equals records and tuples as usual.
    """

    __slots__ = ()
    _padding_ = b""  # the struct's bytes, with zeros for the fields

    def __eq__(self, other: object) -> Any:
        same = super().__eq__(other)
        return same if same is not True else _padding_of(other) == self._padding_

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        fields = super().__hash__()
        return hash((fields, self._padding_)) if self._padding_ else fields

    def __repr__(self) -> str:
        text = super().__repr__()
        return f"<{text} with padding {self._padding_.hex()}>" if self._padding_ else text

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the record without padding, and the padding."""
        return _with_padding, (_as(type(self).__bases__[1], self), self._padding_)


def _padding_of(value: object) -> bytes:
    padding: bytes = getattr(value, "_padding_", b"")
    return padding


def _with_padding(value: _T, padding: bytes) -> _T:
    """The record, NamedTuple or dataclass with that padding; b"": as it is."""
    if not padding:
        return value
    made: _T = _as(_padding_class(type(value)), value)
    object.__setattr__(made, "_padding_", padding)
    return made


def like(value: _T, record: Record) -> _T:
    """A value made of a record's fields, with the padding of that record."""
    return _with_padding(value, _padding_of(record))


def _as(cls: type, value: Any) -> Any:
    """The value as an instance of a class with the same fields."""
    if isinstance(value, tuple):
        return tuple.__new__(cls, value)
    from dataclasses import fields

    return cls(*(getattr(value, field.name) for field in fields(value) if field.init))


def _padding_class(cls: type) -> type:
    """The one class of `cls` with padding; only these classes know each other."""
    subclass: type
    for subclass in cls.__subclasses__():
        if _Padded in subclass.__bases__:
            return subclass
    body: dict[str, Any] = {"__module__": cls.__module__, "__doc__": cls.__doc__}
    if getattr(cls, "__hash__", None) is None:
        body["__hash__"] = None
    return type(cls.__name__, (_Padded, cls), body)
