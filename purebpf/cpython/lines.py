"""The line of an instruction, by the table of its code object.

Three formats: Objects/lnotab_notes.txt of CPython 3.8 to 3.10, Objects/locations.md (since 3.13
InternalDocs/code_objects.md) from 3.11 on.
"""

from __future__ import annotations

from collections.abc import Iterator

__all__ = ["line_at"]

_NO_LINE = -128
_CODE_UNIT = 2
_LONG, _NO_COLUMNS, _NOTHING = 14, 13, 15
_ONE_LINE = range(10, 13)


def line_at(version: tuple[int, int], table: bytes, first_line: int, offset: int) -> int:
    """The line of the instruction at a byte offset of the code; 0 where it has none."""
    if offset < 0:
        return first_line  # called, and no instruction run yet
    if version < (3, 10):
        return _by_lnotab(table, first_line, offset)
    ranges = _by_deltas(table, first_line) if version < (3, 11) else _locations(table, first_line)
    for end, line in ranges:
        if offset < end:
            return max(0, line)
    return 0


def _by_lnotab(table: bytes, line: int, offset: int) -> int:
    at = 0
    for step, delta in zip(table[::2], table[1::2], strict=False):
        at += step
        if at > offset:
            break
        line += delta - 256 if delta > 127 else delta
    return line


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
    end, at = 0, 0
    while at < len(table):
        first = table[at]
        kind = first >> 3 & 15
        end += ((first & 7) + 1) * _CODE_UNIT
        at += 1
        if kind in (_LONG, _NO_COLUMNS):
            number, after = _varint(table, at)
            line += -(number >> 1) if number & 1 else number >> 1
        elif kind in _ONE_LINE:
            line += kind - _ONE_LINE.start
        yield end, 0 if kind == _NOTHING else line
        if kind == _LONG:
            at = after
            for _ in range(3):
                _, at = _varint(table, at)
        elif kind == _NO_COLUMNS:
            at = after
        elif kind in _ONE_LINE:
            at += 2
        elif kind != _NOTHING:
            at += 1


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
