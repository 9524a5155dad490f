"""Codecs of structs and unions: a flat layout and a record class."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from purebpf.btf.codec.arrays import ArrayCodec
from purebpf.btf.codec.layout import FieldPlace, Layout
from purebpf.btf.codec.records import Record, instances, maker, record_class
from purebpf.btf.codec.values import UNFIT, Buffer, Codec, Misfit, shown
from purebpf.errors import SchemaError
from purebpf.tuples import NamedTuple

_OF_THE_KERNEL = frozenset(
    [
        *("struct bpf_spin_lock", "struct bpf_res_spin_lock", "struct bpf_refcount"),
        *("struct bpf_timer", "struct bpf_wq", "struct bpf_task_work"),
        *("struct bpf_list_head", "struct bpf_list_node"),
        *("struct bpf_rb_root", "struct bpf_rb_node"),
    ]
)
"""What the kernel copies neither into a value nor out of it: `enum btf_field_type` (btf.h)."""


class Tail(NamedTuple):
    """A flexible array at the end of a struct; `codec` is the codec of the array without
    elements.
    """

    name: str
    offset: int
    codec: ArrayCodec

    def read(self, raw: bytes) -> Any:
        """Return the elements in `raw`; a last one that is cut short is dropped."""
        return self.codec.resized(len(raw) // self.codec.element_size).decode(raw)

    def write(self, value: Any) -> bytes:
        """The bytes of any number of elements, or of None."""
        if value is None:
            return b""
        try:
            if isinstance(value, str):
                value = value.encode("utf-8", "surrogateescape")
            width = self.codec.element_size if isinstance(value, bytes) else 1
            count = len(value) // width if isinstance(value, Sequence) else 0
            return self.codec.resized(count).to_bytes(value)
        except Misfit as misfit:
            raise misfit.under(f".{self.name}") from None


class StructCodec(Codec):
    """A struct or union as a record.

    Attributes:
        record: the record class.
        names: the names in C, in the order of the record's fields.
        from_start: `decode` for a buffer that is long enough, and nothing else; None where the
            layout needs more than that. Half the time, which counts in millions of records.
    """

    from_start: Callable[[Buffer], Record] | None = None

    def __init__(
        self, c_type: str, name: str, layout: Layout, order: str, tail: Tail | None = None
    ) -> None:
        size = layout.format.size
        super().__init__(c_type, size, f"{size}s", order)
        self.of_kernel = c_type in _OF_THE_KERNEL
        self._layout = layout
        self._tail = tail
        self.weight = layout.weight
        self.names = (*layout.names, tail.name) if tail else layout.names
        self.record = record_class(name, self.names)
        self._make = maker(self.record)
        if tail is None and layout.converts == []:
            unpack_from, make = layout.format.unpack_from, self._make
            self.from_start = lambda buffer: make(unpack_from(buffer))
        self._rows = frozenset() if tail else frozenset({tuple, list, self.record})
        self._places = {name: place for place, name in enumerate(self.names)}
        self._places.update(zip(self.record._fields, range(len(self.names)), strict=True))

    def places(self) -> tuple[FieldPlace, ...]:
        """Return the place of each of the record's fields; a flexible array comes last."""
        places = [place for part in self._layout.parts for place in part.places()]
        if self._tail:
            places.append(FieldPlace(self._tail.name, self._tail.codec, 8 * self._tail.offset, 0))
        return tuple(places)

    def convert(self, slot: bytes) -> Record:
        """The record in exactly these bytes; a flexible array is empty."""
        return self._record(self._layout.format.unpack(slot), b"")

    def _record(self, slots: tuple[Any, ...], rest: bytes) -> Record:
        layout = self._layout
        values: Sequence[Any] = slots if layout.converts == [] else layout.values(slots)
        if self._tail:
            values = (*values, self._tail.read(rest))
        return self._make(values)

    def decode(self, buffer: Buffer, offset: int = 0) -> Record:
        """The record at `offset`; a flexible array takes the rest of the buffer."""
        try:
            slots = self._layout.format.unpack_from(buffer, offset)
        except struct.error:
            self._too_short(buffer, offset)
        rest = bytes(buffer[offset + self._tail.offset :]) if self._tail else b""
        return self._record(slots, rest)

    def iter_decode(self, buffer: Buffer) -> Iterator[Record]:
        """The records that fill `buffer` back to back, about a million a second.

        SchemaError when the struct ends with a flexible array: there is no telling its length.
        """
        if self._tail:
            problem = f"ends with {self._tail.name}, an array of any length"
            raise SchemaError(f"{self.c_type} {problem}: decode records one by one")
        return super().iter_decode(buffer)

    def elements(self, buffer: Buffer) -> Iterator[Record]:
        """Do the same as `iter_decode` for a whole number of records; flexible arrays are empty."""
        if self._tail or not self.size:
            return super().elements(buffer)
        layout = self._layout
        return instances(self.record, layout.rows(layout.format.iter_unpack(buffer)))

    def spaced(self, before: int, after: int) -> Callable[[Buffer], Iterator[Record]] | None:
        """As `Codec.spaced`; None for a struct that is empty, or ends with a flexible array."""
        if self._tail or not self.size:
            return None
        rows = self.rows(before, after)
        return lambda buffer: instances(self.record, rows(buffer))

    def rows(self, before: int, after: int) -> Callable[[Buffer], Iterator[Sequence[Any]]]:
        """Do the same as `spaced`, but return each record's fields as a plain sequence."""
        layout = self._layout
        order, fields = layout.format.format[:1], layout.format.format[1:]
        unpack = struct.Struct(f"{order}{before}x{fields}{after}x").iter_unpack
        return lambda buffer: layout.rows(unpack(buffer))

    def encode(self, value: Any) -> bytes:
        """As `Codec.encode`; a tuple, list or record of plain values in one call of struct."""
        kind = value.__class__
        if kind in self._rows and (data := self._layout.write_at_once(value)):
            return data
        if kind is bytes and len(value) == self.size and not self._tail:
            raw: bytes = value
            return raw
        return super().encode(value)

    def writer(self) -> Callable[[bytearray, Any], object]:
        """As `Codec.writer`."""
        encode, layout, rows = self.encode, self._layout, self._rows
        if layout.lowers != []:
            return super().writer()
        pack_into = layout.format.pack_into

        def write(buffer: bytearray, value: Any) -> None:
            kind = value.__class__
            if kind is tuple or kind in rows:
                try:
                    pack_into(buffer, 0, *value)
                except UNFIT:
                    pass
                else:
                    return
            buffer[:] = encode(value)

        return write

    def encode_some(self, values: Sequence[Any]) -> bytes:
        """As `Codec.encode_some`, for tuples, lists and records."""
        flat = self._rows.issuperset(map(type, values))
        if flat and {len(self.names)}.issuperset(map(len, values)):
            return self._layout.write_many(values) or super().encode_some(values)
        return super().encode_some(values)

    def to_bytes(self, value: Any) -> bytes:
        """The record, followed by the elements of a flexible array."""
        if self._tail is None:
            return super().to_bytes(value)
        if isinstance(value, (bytes, bytearray, memoryview)):
            if memoryview(value).nbytes < self.size:
                raise Misfit(self.c_type, f"{shown(value)} has fewer than {self.size} bytes")
            return bytes(value)
        *values, elements = self._spread(value)
        fixed, rest = self._layout.write(values), self._tail.write(elements)
        end = self._tail.offset + len(rest)
        return fixed[: self._tail.offset] + rest + fixed[end:]

    def to_slot(self, value: Any) -> Any:
        """As `Codec.to_slot`; a lock, timer or the like that is not given is zero."""
        if value is None and self.of_kernel:
            return bytes(self.size)
        return super().to_slot(value)

    def lower(self, value: Any) -> bytes:
        """A record, a mapping, a named tuple or a sequence of all fields, or of the program's."""
        values = self._spread(value)
        if self._tail:
            *values, elements = values
            if elements:
                raise Misfit(self.c_type, f"its {self._tail.name} does not fit in here")
        return self._layout.write(values)

    def _spread(self, value: Any) -> Sequence[Any]:
        """One value for each field, None for those not given."""
        if isinstance(value, self.record):
            return value
        if isinstance(value, Mapping):
            return self._by_name(value)
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return self._by_name(dict(zip(value._fields, value, strict=True)))
        if isinstance(value, (tuple, list)):
            if len(value) != len(self.names):
                kernels = [place.codec.of_kernel for place in self.places()]
                if any(kernels) and len(value) == kernels.count(False):
                    given = iter(value)
                    return [None if kept else next(given) for kept in kernels]
                problem = f"{shown(value)} has {len(value)} values for {len(self.names)} fields"
                raise Misfit(self.c_type, f"{problem}: {', '.join(self.names)}")
            return value
        raise Misfit(
            self.c_type, f"{shown(value)} is neither a record, mapping, sequence nor bytes"
        )

    def merge(self, current: Sequence[Any], changes: Mapping[str, Any]) -> list[Any]:
        """The fields of a record with some changed, also in structs in it, by name.

        Drop members that share bytes with a changed member of a union (None).

        Raises:
            SchemaError: there is no such field.
        """
        places, values = self.places(), list(current)
        unknown = [name for name in changes if name not in self._places]
        if unknown:
            problem = f"does not have a field {shown(unknown[0])}; it has {', '.join(self.names)}"
            raise SchemaError(f"{self.c_type}: {problem}")
        changed = {self._places[name]: change for name, change in changes.items()}
        for at, change in changed.items():
            place = places[at]
            if isinstance(change, Mapping) and isinstance(place.codec, StructCodec):
                change = place.codec.merge(current[at], change)
            values[at] = change
            start, end = place.bit_offset, place.bit_offset + (place.width or 8 * place.codec.size)
            for index, other in enumerate(places):
                last = other.bit_offset + (other.width or 8 * other.codec.size)
                if index not in changed and other.bit_offset < end and last > start:
                    values[index] = None
        return values

    def _by_name(self, value: Mapping[Any, Any]) -> list[Any]:
        values: list[Any] = [None] * len(self.names)
        for name, field in value.items():
            if name not in self._places:
                problem = f"does not have a field {shown(name)}; it has {', '.join(self.names)}"
                raise Misfit(self.c_type, problem)
            values[self._places[name]] = field
        return values
