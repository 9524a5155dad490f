"""The distance that Go's functions have moved the stack pointer: the "SP table" of .gopclntab.

Go's own tracebacks go by it. A Go program has no call frame information when it is stripped, but
frame pointers, which a leaf does not always have set up. Functions that change stacks have a mark
in place of a depth, or added to it: see `_CHANGE_STACKS` and `_MARKED`.

`purebpf.symbols.go_values` has the layout.
"""

from __future__ import annotations

import struct
import sys
from array import array
from bisect import bisect_right
from collections.abc import Iterator

from purebpf.errors import FormatError
from purebpf.symbols.elf_image import ElfImage
from purebpf.symbols.go_table import go_table
from purebpf.symbols.go_values import go_values

__all__ = ["ELSEWHERE", "FRAME_ELSEWHERE", "INTERRUPTED", "OUTERMOST", "GoStack", "go_stack"]

ELSEWHERE, OUTERMOST = -2, -3
"""In place of a depth: the caller is on another stack; there is none, nothing returns here."""
INTERRUPTED, FRAME_ELSEWHERE = 1, 2
"""Added to a depth, see `purebpf.unwind.rule`."""
_CHANGE_STACKS = {
    b"runtime.systemstack": ELSEWHERE,
    b"runtime.asmcgocall": ELSEWHERE,
    b"runtime.morestack": ELSEWHERE,
    b"runtime.mcall": OUTERMOST,
}
"""Go's src/runtime/asm_*.s: they have no frame, and call with another stack pointer. mcall has a
caller, but it may run on another thread by then.
"""
_MARKED = {
    b"runtime.goexit": OUTERMOST,
    b"runtime.mstart": OUTERMOST,
    b"runtime.rt0_go": OUTERMOST,
    b"runtime.asyncPreempt": INTERRUPTED,
    b"runtime.sigpanic": INTERRUPTED,
    b"runtime.cgocallback": FRAME_ELSEWHERE,
    b"runtime.nanotime1": FRAME_ELSEWHERE,
    b"runtime.walltime": FRAME_ELSEWHERE,
    b"runtime.vgetrandom1": FRAME_ELSEWHERE,
    b"time.now": FRAME_ELSEWHERE,
}
"""Others of x86_64: the first functions of stacks (rt0_go aligns its stack, which the table does
not have); functions that a signal handler puts between an instruction and the next (Go's
src/runtime/preempt.go, signal_amd64.go); and functions with a frame that call with another stack
pointer (most ask the vDSO).
"""
_X86_QUANTUM = 1
_FUNCTION = struct.Struct("<IiiII")
"""Start, name, bytes of arguments, deferreturn, and where in the numbers the SP table is."""
_LONGEST = 1 << 14
"""Bytes of one function's table; generated functions of 1 MB have a tenth of that."""
_DEEPEST = 1 << 30
_LARGEST = 1 << 32
_MOST_PLACES = 4096
"""At which the bytes of a name, or of its offset, are looked at."""


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
        self._marked: dict[int, int] | None = None

    def depth(self, address: int) -> int | None:
        """Return the bytes between the stack pointer and its value at the function's start; None:
        unknown.

        Args:
            address: of an instruction, as a virtual offset of the file.

        Returns:
            the bytes, with `INTERRUPTED` or `FRAME_ELSEWHERE` added; or `ELSEWHERE` or `OUTERMOST`.
        """
        target = address - self._table.text
        at = bisect_right(self._starts, target) - 1 if target >= 0 else -1
        known_depth: int | None = None
        for offset, depth in self._steps(at):
            if offset > target:
                break
            known_depth = depth
        return known_depth

    def depths(self, start: int, end: int) -> Iterator[tuple[int, int | None]]:
        """Yield each place from `start` to `end` at which the depth changes, and the new depth;
        `start` comes first.
        """
        text = self._table.text
        at = max(0, bisect_right(self._starts, start - text) - 1) if start >= text else 0
        yield start, self.depth(start)
        for number in range(at, len(self._starts)):
            if self._starts[number] + text >= end:
                return
            for offset, depth in self._steps(number):
                if start < offset + text < end:
                    yield offset + text, depth

    def _steps(self, at: int) -> Iterator[tuple[int, int | None]]:
        """Yield each place of a function at which the depth changes, from the start of the text,
        and the depth.
        """
        if at < 0:
            return
        steps = self._plain_steps(at)
        mark = self._marked_functions().get(at)
        if mark is None:
            yield from steps
            return
        known = list(steps)
        if mark < 0:
            has_frame = self._table.quantum == _X86_QUANTUM and any(depth for _, depth in known)
            if mark == OUTERMOST or not has_frame:
                yield self._starts[at], mark
                return
            mark = FRAME_ELSEWHERE  # as wrappers for another ABI, which bear the same name
        for address, depth in known:
            yield address, depth + mark if depth else depth

    def _plain_steps(self, at: int) -> Iterator[tuple[int, int | None]]:
        """Yield the steps of a function by the table alone."""
        start = self._starts[at]
        end = self._starts[at + 1] if at + 1 < len(self._starts) else start + _LARGEST
        try:
            raw = self._read(self._table.functions_at + self._places[at], _FUNCTION.size)
            if len(raw) < _FUNCTION.size:
                data = b""
            else:
                begin, _, _, _, numbers = _FUNCTION.unpack(raw)
                is_sound = begin == start and numbers
                data = self._read(self._table.numbers_at + numbers, _LONGEST) if is_sound else b""
        except FormatError:
            data = b""
        for offset, depth in go_values(data, max(1, self._table.quantum)):
            if start + offset >= end:
                return
            is_depth = 0 <= depth < _DEEPEST and not depth & 7
            yield start + offset, depth if is_depth else None

    def _marked_functions(self) -> dict[int, int]:
        """Return the functions with a mark, by number, and their marks."""
        if self._marked is None:
            self._marked = {}
            try:
                data = self._image.contents(self._table.section)
            except FormatError:
                data = b""
            is_x86 = self._table.quantum == _X86_QUANTUM
            for name, mark in {**_CHANGE_STACKS, **(_MARKED if is_x86 else {})}.items():
                for number in self._numbers_of(data, name):
                    self._marked[number] = mark
        return self._marked

    def _numbers_of(self, data: bytes, name: bytes) -> Iterator[int]:
        """Return the numbers of the functions with a name, given the offset of their descriptions.

        Each ABI may have one: the wrapper calls the other.
        """
        table = self._table
        for at in _places(data, b"\0" + name + b"\0", table.names_at):
            wanted = struct.pack("<i", at + 1 - table.names_at)
            for place in _places(data, wanted, table.functions_at + 4):
                (start,) = struct.unpack_from("<I", data, place - 4)
                number = bisect_right(self._starts, start) - 1
                offset = place - 4 - table.functions_at
                if number >= 0 and (self._starts[number], self._places[number]) == (start, offset):
                    yield number

    def _read(self, at: int, size: int) -> bytes:
        section = self._table.section
        return self._image.read(section.offset + at, max(0, min(size, section.size - at)))


def go_stack(image: ElfImage) -> GoStack | None:
    """The SP tables of a file; None if it has none."""
    try:
        return GoStack(image)
    except FormatError:
        return None


def _places(data: bytes, wanted: bytes, begin: int) -> Iterator[int]:
    """Yield the positions of some bytes from `begin` on, at most as many as sound tables have."""
    at = begin - 1
    for _ in range(_MOST_PLACES):
        at = data.find(wanted, at + 1)
        if at < 0:
            return
        yield at
