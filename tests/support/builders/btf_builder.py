"""BTF built type by type: every kind, both byte orders, split BTF, wrong words on request.

    b = BtfBuilder()
    u32 = b.int("unsigned int", 4)
    pair = b.struct("pair", [("a", u32), ("b", u32)])        # laid out as C does
    flags = b.struct("flags", [("x", u32, 0, 3), ("y", u32, 3, 29)], size=4)   # bit offset, bits
    b.bytes()   # the blob
    b.btf()     # it, parsed

Each method adds one type and returns its id; `b.next_id` is the id the next one will get.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Literal

from purebpf.btf.types.kinds import Kind
from purebpf.btf.types.parse import Btf

_POINTER = 8


class BtfBuilder:
    """Collects types; `base` makes this a split BTF of that builder's.

    `layout` is a section that says what types of a kind take after their first three words, in
    bytes: so many, and so many for each of the vlen.
    """

    def __init__(
        self,
        byteorder: Literal["little", "big"] = "little",
        base: BtfBuilder | None = None,
        layout: Mapping[int, tuple[int, int]] = MappingProxyType({}),
    ) -> None:
        self.byteorder = byteorder
        self.base = base
        self._layout = layout
        self._words: list[int] = []
        self._count = 0
        self._strings = bytearray() if base else bytearray(b"\0")
        self._places: dict[str, int] = {"": 0}
        self._extents: dict[int, tuple[int, int]] = {}  # size and alignment by id

    @property
    def next_id(self) -> int:
        """The id of the type that is added next."""
        return self._first_id + self._count

    @property
    def _first_id(self) -> int:
        return self.base.next_id if self.base else 1

    @property
    def strings_size(self) -> int:
        """The end of the string offsets, the base's included."""
        return (self.base.strings_size if self.base else 0) + len(self._strings)

    def string(self, text: str) -> int:
        """The offset of `text` in the strings, added when new."""
        builder: BtfBuilder | None = self
        while builder:
            if text in builder._places:
                return builder._places[text]
            builder = builder.base
        self._places[text] = self.strings_size
        self._strings += text.encode("utf-8", "surrogateescape") + b"\0"
        return self._places[text]

    def raw(
        self,
        kind: int,
        name: str | int = "",
        vlen: int = 0,
        size_or_type: int = 0,
        tail: Iterable[int] = (),
        *,
        flag: bool = False,
    ) -> int:
        """Any words at all; `name` may be a string offset."""
        type_id = self.next_id
        offset = name if isinstance(name, int) else self.string(name)
        info = vlen | kind << 24 | flag << 31
        self._words += (offset, info, size_or_type, *(word & 0xFFFFFFFF for word in tail))
        self._count += 1
        return type_id

    def _sized(self, type_id: int, size: int, align: int) -> int:
        self._extents[type_id] = size, align
        return type_id

    def _extent(self, type_id: int) -> tuple[int, int]:
        if type_id in self._extents or self.base is None:
            return self._extents[type_id]
        return self.base._extent(type_id)

    def int(
        self,
        name: str,
        size: int,
        *,
        signed: bool = False,
        char: bool = False,
        boolean: bool = False,
        bits: int | None = None,
        offset: int = 0,
    ) -> int:
        """An integer of `size` bytes, using all bits by default."""
        used = 8 * size if bits is None else bits
        encoding = signed | char << 1 | boolean << 2
        type_id = self.raw(
            Kind.INT, name, size_or_type=size, tail=[encoding << 24 | offset << 16 | used]
        )
        return self._sized(type_id, size, size)

    def float(self, name: str, size: int) -> int:
        return self._sized(self.raw(Kind.FLOAT, name, size_or_type=size), size, size)

    def ptr(self, target: int = 0) -> int:
        return self._sized(self.raw(Kind.PTR, size_or_type=target), _POINTER, _POINTER)

    def array(self, element: int, count: int, index: int | None = None) -> int:
        tail = [element, element if index is None else index, count]
        type_id = self.raw(Kind.ARRAY, tail=tail)
        size, align = self._extents.get(element, (0, 1))
        return self._sized(type_id, size * count, align)

    def struct(self, name: str, members: Iterable[tuple], size: int | None = None) -> int:
        """Members are (name, id), placed as C does, or (name, id, bit offset[, bits])."""
        return self._record(Kind.STRUCT, name, members, size)

    def union(self, name: str, members: Iterable[tuple], size: int | None = None) -> int:
        """Members are (name, id), at 0, or (name, id, bit offset[, bits])."""
        return self._record(Kind.UNION, name, members, size)

    def _record(self, kind: Kind, name: str, members: Iterable[tuple], size: int | None) -> int:
        placed, end, align = [], 0, 1
        for member, type_id, *place in members:
            width, boundary = self._extents.get(type_id) or (
                self.base._extent(type_id) if self.base else (0, 1)
            )
            start = -(-end // boundary) * boundary if kind is Kind.STRUCT else 0
            bit_offset, bits = [*place, *(8 * start, 0)[len(place) :]]
            placed.append((member, type_id, bit_offset, bits))
            last = bit_offset + (bits or 8 * width)
            end, align = max(end, -(-last // 8)), max(align, boundary)
        size = -(-end // align) * align if size is None else size
        flag = any(bits for *_, bits in placed)
        tail = [
            word
            for member, type_id, bit_offset, bits in placed
            for word in (self.string(member), type_id, bit_offset | bits << 24)
        ]
        type_id = self.raw(kind, name, len(placed), size, tail, flag=flag)
        return self._sized(type_id, size, align)

    def enum(
        self, name: str, values: Mapping[str, int], size: int = 4, *, signed: bool | None = None
    ) -> int:
        """Signed when a value is negative, by default."""
        signed = min(values.values(), default=0) < 0 if signed is None else signed
        tail = [word for key, value in values.items() for word in (self.string(key), value)]
        type_id = self.raw(Kind.ENUM, name, len(values), size, tail, flag=signed)
        return self._sized(type_id, size, size)

    def enum64(
        self, name: str, values: Mapping[str, int], size: int = 8, *, signed: bool | None = None
    ) -> int:
        signed = min(values.values(), default=0) < 0 if signed is None else signed
        tail = [
            word for key, value in values.items() for word in (self.string(key), value, value >> 32)
        ]
        type_id = self.raw(Kind.ENUM64, name, len(values), size, tail, flag=signed)
        return self._sized(type_id, size, size)

    def fwd(self, name: str, *, union: bool = False) -> int:
        return self.raw(Kind.FWD, name, flag=union)

    def _alias(self, kind: Kind, target: int, name: str = "") -> int:
        type_id = self.raw(kind, name, size_or_type=target)
        if target in self._extents:
            self._extents[type_id] = self._extents[target]
        return type_id

    def typedef(self, name: str, target: int) -> int:
        return self._alias(Kind.TYPEDEF, target, name)

    def volatile(self, target: int) -> int:
        return self._alias(Kind.VOLATILE, target)

    def const(self, target: int) -> int:
        return self._alias(Kind.CONST, target)

    def restrict(self, target: int) -> int:
        return self._alias(Kind.RESTRICT, target)

    def type_tag(self, name: str, target: int) -> int:
        return self._alias(Kind.TYPE_TAG, target, name)

    def decl_tag(self, name: str, target: int, component: int = -1) -> int:
        return self.raw(Kind.DECL_TAG, name, size_or_type=target, tail=[component])

    def func_proto(self, return_type: int, params: Iterable[tuple[str, int]] = ()) -> int:
        tail = [word for name, type_id in params for word in (self.string(name), type_id)]
        return self.raw(Kind.FUNC_PROTO, "", len(tail) // 2, return_type, tail)

    def func(self, name: str, prototype: int, linkage: int = 1) -> int:
        return self.raw(Kind.FUNC, name, linkage, prototype)

    def var(self, name: str, target: int, linkage: int = 1) -> int:
        return self.raw(Kind.VAR, name, size_or_type=target, tail=[linkage])

    def datasec(self, name: str, entries: Iterable[tuple[int, int, int]], size: int = 0) -> int:
        """Entries are (variable, offset, size), in bytes."""
        tail = [word for entry in entries for word in entry]
        return self.raw(Kind.DATASEC, name, len(tail) // 3, size, tail)

    def bytes(self) -> bytes:
        """The blob: header, types, the layout if there is one, strings."""
        order = "<" if self.byteorder == "little" else ">"
        types = struct.pack(f"{order}{len(self._words)}I", *self._words)
        kinds = range(max(self._layout) + 1 if self._layout else 0)
        layout = b"".join(bytes((*self._layout.get(kind, (0, 0)), 0, 0)) for kind in kinds)
        rest = struct.pack(order + "II", len(types), len(layout)) if layout else b""
        header = struct.pack(
            order + "HBBIIIII",
            *(0xEB9F, 1, 0, 24 + len(rest), 0),
            *(len(types), len(types) + len(layout), len(self._strings)),
        )
        return header + rest + types + layout + bytes(self._strings)

    def btf(self) -> Btf:
        """The blob, parsed, with its base."""
        return Btf(self.bytes(), self.base.btf() if self.base else None, "built")
