"""Unpacks a spec from bytes, the stored form of the shipped objects' specs.

`scripts/generate_specs.py` packs them (`make bpf`).

A file is a header, strings, numbers and bytes:

    magic (8 bytes)   and the sizes of the three parts, u32 each
    strings           UTF-8, each ended by a zero byte
    numbers           i64: the lengths of the bytes, then the tables, column by column
    bytes             code, contents of maps, BTF

The last table is there only in the file of an object with maps of maps: the templates of their
inner maps, by the name of the outer one.

Every field of a record is one number: itself, or the index of a string or of bytes. A table is read
a column at a time, so no Python loop runs over its rows. Little-endian on every machine.
"""

from __future__ import annotations

import struct
import sys
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import accumulate, pairwise
from typing import Any

from purebpf.btf.types.parse import Btf
from purebpf.damage import describe
from purebpf.errors import FormatError
from purebpf.spec import (
    CoreRelocation,
    ExternSpec,
    FunctionSpec,
    LineInfo,
    MapSpec,
    ObjectSpec,
    ProgramSpec,
    Relocation,
    RelocationKind,
    VariableSpec,
)

__all__ = ["FORMS", "KINDS", "MAGIC", "NONE", "SIZES", "children_of", "unpack"]

MAGIC = b"purebpf\1"
SIZES = struct.Struct("<III")
KINDS = tuple(RelocationKind)
NONE = -(1 << 63)

FORMS: dict[type, str] = {
    ProgramSpec: "ssssiisi?---",
    FunctionSpec: "ssibsi###-",
    MapSpec: "siiiiiiiioi-#sb?b?sbis",
    VariableSpec: "ssiii",
    ExternSpec: "ssi?",
    Relocation: "iksi",
    CoreRelocation: "iisi",
    LineInfo: "iiii",
    tuple: "is",
}
"""A letter for each field: i number, o number or None, s string, b bytes, ? truth, k kind of
relocation, # count of the rows of another table that are its value, - always the default."""


def unpack(data: bytes, source: str = "packed spec") -> ObjectSpec:
    """Unpack a spec.

    Raises:
        FormatError: the bytes are damaged, or something else.
    """
    try:
        unpacker = _Unpacker(data)
        name, origin, byteorder, license_ = unpacker.row("ssss")
        btf, btf_source = unpacker.row("bs")
        programs, functions, maps, variables, externs = (
            unpacker.table(kind)
            for kind in (ProgramSpec, FunctionSpec, MapSpec, VariableSpec, ExternSpec)
        )
        if unpacker.has_more:
            inner = unpacker.table(MapSpec)
            maps = {name: spec._replace(inner=inner.get(name)) for name, spec in maps.items()}
    except (IndexError, ValueError, struct.error, StopIteration) as error:
        raise FormatError(source, "packed spec", f"damaged: {describe(error)}") from None
    return ObjectSpec(
        *(name, origin, byteorder, license_, programs, functions, maps, variables, externs),
        btf=Btf(btf, source=btf_source),
    )


class _Unpacker:
    """Reads a file's numbers from the first to the last."""

    def __init__(self, data: bytes) -> None:
        if not data.startswith(MAGIC):
            raise ValueError("it does not start with the magic of a packed spec")
        sizes = SIZES.unpack_from(data, len(MAGIC))
        begin = len(MAGIC) + SIZES.size
        ends = [*accumulate(sizes, initial=begin)]
        if ends[-1] != len(data):
            raise ValueError(f"{len(data)} bytes, where the header says {ends[-1]}")
        self._strings = data[begin : ends[1]].decode().split("\0")
        numbers = array("q", data[ends[1] : ends[2]])
        if sys.byteorder == "big":
            numbers.byteswap()
        self._numbers: Sequence[int] = numbers
        count = numbers[0]
        self._at = 1 + count
        edges = accumulate(numbers[1 : 1 + count], initial=ends[2])
        self._blobs = [data[start:stop] for start, stop in pairwise(edges)]

    @property
    def has_more(self) -> bool:
        return self._at < len(self._numbers)

    def row(self, form: str) -> list[Any]:
        return [next(iter(self._column(letter, 1))) for letter in form]

    def table(self, kind: type) -> Mapping[str, Any]:
        """Rows by key."""
        count = self._take(1)[0]
        keys = list(self._column("s", count))
        return dict(zip(keys, self._rows(kind, count), strict=True))

    def _rows(self, kind: type, count: int) -> Iterator[Any]:
        form = FORMS[kind]
        counts: list[Sequence[int]] = []
        columns: list[Any] = []
        for letter, default in zip(form, _defaults(kind), strict=True):
            if letter == "#":
                counts.append(self._take(count))
                columns.append(None)
            elif letter == "-":
                columns.append([default] * count)
            else:
                columns.append(self._column(letter, count))
        children = [self._rows(child, self._take(1)[0]) for child in children_of(kind)]
        parts = (_cut(tuple(rows), sizes) for rows, sizes in zip(children, counts, strict=True))
        columns = [next(parts) if column is None else column for column in columns]
        # what _make does, without a Python call for each row: zip has checked the length
        return map(partial(tuple.__new__, kind), zip(*columns, strict=True))

    def _column(self, letter: str, count: int) -> Iterable[Any]:
        numbers = self._take(count)
        if letter == "s":
            return map(self._strings.__getitem__, numbers)
        if letter == "b":
            return map(self._blobs.__getitem__, numbers)
        if letter == "k":
            return map(KINDS.__getitem__, numbers)
        if letter == "?":
            return map(bool, numbers)
        if letter == "o":
            return (None if number == NONE else number for number in numbers)
        return numbers

    def _take(self, count: int) -> Sequence[int]:
        start, self._at = self._at, self._at + count
        if not 0 <= start <= self._at <= len(self._numbers):
            raise ValueError("it ends in the middle of a table")
        return self._numbers[start : self._at]


def children_of(kind: type) -> tuple[type, ...]:
    """The tables that the # fields of a record are rows of."""
    if kind is FunctionSpec:
        return (Relocation, CoreRelocation, LineInfo)
    return (tuple,) if kind is MapSpec else ()


def _defaults(kind: type) -> Sequence[Any]:
    """The default of each field, None where there is none."""
    if kind is tuple:
        return (None, None)
    defaults: Mapping[str, Any] = kind._field_defaults  # type: ignore[attr-defined]
    return [defaults.get(name) for name in kind._fields]  # type: ignore[attr-defined]


def _cut(rows: tuple[Any, ...], sizes: Sequence[int]) -> Iterator[tuple[Any, ...]]:
    """Consecutive parts of `rows`, of these sizes."""
    return (rows[start:stop] for start, stop in pairwise(accumulate(sizes, initial=0)))
