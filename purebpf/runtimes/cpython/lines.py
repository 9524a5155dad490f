"""The line of an instruction, by the table of its code object.

Three formats: Objects/lnotab_notes.txt of CPython 3.8 to 3.10, Objects/locations.md (since 3.13
InternalDocs/code_objects.md) from 3.11 on.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterator

__all__ = ["LineTable"]

_NO_LINE = -128
_NO_END = 1 << 62
_CODE_UNIT = 2
_LONG, _NO_COLUMNS, _NOTHING = 14, 13, 15
_ONE_LINE = range(10, 13)


class LineTable:
    """The lines of a code object's instructions. The table is decoded once, as far as needed.

    Args:
        version: of the interpreter.
        table: as CPython keeps it; b"": the lines are not known.
        first_line: where the definition begins.
    """

    def __init__(self, version: tuple[int, int], table: bytes, first_line: int) -> None:
        self._first_line = first_line
        self._ends, self._lines = array("q"), array("q")
        if version < (3, 10):
            decode = _by_lnotab
        else:
            decode = _by_deltas if version < (3, 11) else _locations
        self._rest = decode(table, first_line)

    def at(self, offset: int) -> int:
        """The line of the instruction at a byte offset of the code; 0 where it has none."""
        if offset < 0:
            return self._first_line  # called, and no instruction run yet
        ends, lines = self._ends, self._lines
        if not ends or ends[-1] <= offset:
            for end, line in self._rest:
                ends.append(end)
                lines.append(line)
                if end > offset:
                    return max(0, line)
            return 0
        return max(0, lines[bisect_right(ends, offset)])


def _by_lnotab(table: bytes, line: int) -> Iterator[tuple[int, int]]:
    """The end of each range, and its line."""
    at = 0
    for step, delta in zip(table[::2], table[1::2], strict=False):
        at += step
        yield at, line
        line += delta - 256 if delta > 127 else delta
    yield _NO_END, line


def _by_deltas(table: bytes, line: int) -> Iterator[tuple[int, int]]:
    """The end of each range, and its line."""
    end = 0
    for step, delta in zip(table[::2], table[1::2], strict=False):
        signed = delta - 256 if delta > 127 else delta
        end += step
        if signed != _NO_LINE:
            line += signed
        yield end, 0 if signed == _NO_LINE else line


def _locations(table: bytes, line: int) -> Iterator[tuple[int, int]]:
    """The end of each range, and its line."""
    end = at = 0
    size = len(table)
    while at < size:
        step, delta, length, kind = _ENTRIES[table[at]]
        end += step
        if not length:  # numbers follow
            number, after = _varint(table, at + 1)
            line += -(number >> 1) if number & 1 else number >> 1
            yield end, line
            at = after
            if kind == _LONG:
                for _ in range(3):
                    _, at = _varint(table, at)
            continue
        line += delta
        yield end, 0 if kind == _NOTHING else line
        at += length


def _entry(first: int) -> tuple[int, int, int, int]:
    """The bytes of instructions, the difference of lines, the bytes and the kind of an entry.

    Entries with numbers of unknown length have 0 bytes here.
    """
    kind = first >> 3 & 15
    delta, length = 0, 0 if kind in (_LONG, _NO_COLUMNS) else 2
    if kind in _ONE_LINE:
        delta, length = kind - _ONE_LINE.start, 3
    elif kind == _NOTHING:
        length = 1
    return ((first & 7) + 1) * _CODE_UNIT, delta, length, kind


def _varint(table: bytes, at: int) -> tuple[int, int]:
    """A number in groups of six bits, least first, and where it ends."""
    number = shift = 0
    for byte in table[at : at + 6]:
        number |= (byte & 63) << shift
        shift += 6
        at += 1
        if not byte & 64:
            break
    return number, at


_ENTRIES = tuple(map(_entry, range(256)))
"""By the first byte of an entry."""
