"""The functions that Go's compiler put into others, by the table for Go's own tracebacks.

Layout: Go's src/runtime/symtab.go, _func, and inlinedCall in symtabinl.go (Go 1.18 to 1.19, and
from 1.20 on). A number for each instruction leads to an inlined call, or is -1; the call has the
name of its function, and an instruction of its caller, which may be inlined itself.
"""

from __future__ import annotations

import struct
import sys
from array import array
from bisect import bisect_right

from purebpf.errors import FormatError
from purebpf.symbols.elf_image import PT_LOAD, ElfImage
from purebpf.symbols.go_table import go_table
from purebpf.symbols.go_values import go_values
from purebpf.symbols.longest_name import LONGEST_NAME, ends_at

__all__ = ["GoInlined"]

_FUNCTION = struct.Struct("<8I")
"""Start, name, bytes of arguments, deferreturn, three tables of numbers; how many more it has."""
_SIZES = (40, 44)
"""Of the whole record, before Go 1.20 and since; its last byte counts the parts of data."""
_CALLS = (struct.Struct("<hBxiiii"), struct.Struct("<Bxxxiii"))
_NAME_OF_CALL, _PLACE_OF_CALLER = (4, 1), (5, 2)
"""Which fields these are."""
_INDEX_OF_CALL, _TREE = 2, 3
"""The number of the table of numbers, and of the part of data."""
_NONE = 0xFFFFFFFF
_LONGEST = 1 << 16
"""Bytes of one table of numbers."""
_DEEPEST = 64
"""Calls inside of each other; Go's compiler stops far earlier."""


class GoInlined:
    """The inlined calls of a file.

    Args:
        image: the file, of a 64-bit little-endian machine.
        data: the virtual offset of the data of functions, `go:func.*`.

    Raises:
        FormatError: it has no table that we can read.
    """

    def __init__(self, image: ElfImage, data: int) -> None:
        table = go_table(image)
        if table is None or not table.functions or image.order != "<" or not image.is64:
            raise FormatError(image.source, ".gopclntab", "no table of functions")
        self._image = image
        self._table = table
        self._data = data
        words = array("I")
        raw = image.read(table.section.offset + table.functions_at, 8 * table.functions)
        words.frombytes(raw[: len(raw) & -8])
        if sys.byteorder == "big":
            words.byteswap()
        self._starts, self._places = words[::2], words[1::2]

    def at(self, address: int) -> tuple[str, ...]:
        """Return the functions that are inlined at an instruction, the innermost first.

        The function whose code it is, is not among them.

        Args:
            address: of the instruction, as a virtual offset of the file.
        """
        target = address - self._table.text
        number = bisect_right(self._starts, target) - 1 if target >= 0 else -1
        if number < 0:
            return ()
        try:
            return self._names(self._starts[number], self._places[number], target)
        except (FormatError, struct.error):
            return ()

    def _names(self, start: int, place: int, target: int) -> tuple[str, ...]:
        since = self._table.is_1_20
        calls = _CALLS[since]
        names: list[str] = []
        indices, tree = self._parts(start, place)
        while tree and len(names) < _DEEPEST:
            index = self._value(indices, target - start)
            if index < 0:
                break
            fields = calls.unpack(self._load(tree + index * calls.size, calls.size))
            names.append(self._name(fields[_NAME_OF_CALL[since]]))
            target = start + fields[_PLACE_OF_CALLER[since]]
        return tuple(names)

    def _parts(self, start: int, place: int) -> tuple[int, int]:
        """Return the offset of the indices of calls, and the address of the calls; 0 of none."""
        at, size = self._table.functions_at + place, _SIZES[self._table.is_1_20]
        raw = self._read(at, size)
        if len(raw) < size:
            return 0, 0
        begin, *_, tables = _FUNCTION.unpack_from(raw)
        if begin != start or tables <= _INDEX_OF_CALL or raw[-1] <= _TREE:
            return 0, 0
        (indices,) = struct.unpack("<I", self._read(at + size + 4 * _INDEX_OF_CALL, 4))
        (tree,) = struct.unpack("<I", self._read(at + size + 4 * (tables + _TREE), 4))
        return indices, 0 if tree == _NONE or not indices else self._data + tree

    def _value(self, numbers: int, offset: int) -> int:
        data = self._read(self._table.numbers_at + numbers, _LONGEST)
        known = -1
        for begin, value in go_values(data, max(1, self._table.quantum)):
            if begin > offset:
                break
            known = value
        return known

    def _name(self, at: int) -> str:
        raw = self._read(self._table.names_at + at, LONGEST_NAME) if at >= 0 else b""
        return raw[: ends_at(raw, 0)].decode(errors="replace")

    def _read(self, at: int, size: int) -> bytes:
        section = self._table.section
        return self._image.read(section.offset + at, max(0, min(size, section.size - at)))

    def _load(self, address: int, size: int) -> bytes:
        for segment in self._image.segments:
            at = address - segment.address
            if segment.type == PT_LOAD and 0 <= at <= segment.file_size - size:
                return self._image.read(segment.offset + at, size)
        return b""
