"""How far Go's functions have moved the stack pointer: the "SP table" of .gopclntab.

A Go program has no call frame information when it is stripped, but frame pointers, which a leaf
does not always have set up. Layout: Go's src/runtime/symtab.go, pcvalue: for each function a
list of pairs (change of the value, zigzag; instructions it holds for), in LEB128, from -1 on.
"""

from __future__ import annotations

import struct
import sys
from array import array
from bisect import bisect_right

from purebpf.errors import FormatError
from purebpf.symbols.elf_image import ElfImage
from purebpf.symbols.go_table import go_table

__all__ = ["GoStack", "go_stack"]

_FUNCTION = struct.Struct("<IiiII")
"""Start, name, bytes of arguments, deferreturn, and where in the numbers the SP table is."""
_LONGEST = 1 << 14
"""Bytes of one function's table; generated functions of 1 MB have a tenth of that."""
_DEEPEST = 1 << 30


class GoStack:
    """The SP tables of a file.

    Args:
        image: the file, of a 64-bit little-endian machine.

    Raises:
        FormatError: it has no table that we can read.
    """

    def __init__(self, image: ElfImage) -> None:
        table = go_table(image)
        if table is None or not table.functions or image.order != "<" or not image.is64:
            raise FormatError(image.source, ".gopclntab", "no table of functions")
        self._image = image
        self._table = table
        words = array("I")
        data = image.read(table.section.offset + table.functions_at, 8 * table.functions)
        words.frombytes(data[: len(data) & -8])
        if sys.byteorder == "big":
            words.byteswap()
        self._starts, self._places = words[::2], words[1::2]

    def depth(self, address: int) -> int | None:
        """Bytes between the stack pointer and what it was at the function's start; None: unknown.

        Args:
            address: of an instruction, as a virtual offset of the file.
        """
        target = address - self._table.text
        at = bisect_right(self._starts, target) - 1 if target >= 0 else -1
        if at < 0:
            return None
        try:
            raw = self._read(self._table.functions_at + self._places[at], _FUNCTION.size)
            if len(raw) < _FUNCTION.size:
                return None
            start, _, _, _, numbers = _FUNCTION.unpack(raw)
            if start != self._starts[at] or not numbers:
                return None
            data = self._read(self._table.numbers_at + numbers, _LONGEST)
        except FormatError:
            return None
        depth = _value(data, target - start, max(1, self._table.quantum))
        return depth if depth is not None and 0 <= depth < _DEEPEST and not depth & 7 else None

    def _read(self, at: int, size: int) -> bytes:
        section = self._table.section
        return self._image.read(section.offset + at, max(0, min(size, section.size - at)))


def go_stack(image: ElfImage) -> GoStack | None:
    """The SP tables of a file; None if it has none."""
    try:
        return GoStack(image)
    except FormatError:
        return None


def _value(data: bytes, offset: int, quantum: int) -> int | None:
    """The value at an offset from the start of the function."""
    value, reached, at = -1, 0, 0
    while True:
        change, at = _uleb(data, at)
        if at < 0 or (not change and reached):
            return None
        step, at = _uleb(data, at)
        if at < 0:
            return None
        value += ~(change >> 1) if change & 1 else change >> 1
        reached += step * quantum
        if offset < reached:
            return value
        if not step:
            return None


def _uleb(data: bytes, at: int) -> tuple[int, int]:
    """A number of up to 32 bits and where it ends; -1 if it is not well formed."""
    number = shift = 0
    for byte in data[at : at + 5]:
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return number, at + shift // 7
    return 0, -1
