"""Ruby's objects that frames lead to: strings, arrays, and the names of symbols."""

from __future__ import annotations

from purebpf.runtimes.memory import Memory, UnreadableError
from purebpf.runtimes.ruby.layout import RubyLayout

__all__ = ["RubySymbols", "imemo_kind", "read_ruby_string", "ruby_path", "text_place"]

_TYPE_MASK, _STRING, _ARRAY, _IMEMO = 0x1F, 5, 7, 0x1A
_NOT_EMBEDDED = 1 << 13  # of a string
_EMBEDDED = 1 << 13  # of an array
_IMEMO_SHIFT, _IMEMO_MASK = 12, 0xF
_STRING_SHIFT, _ARRAY_SHIFT = 14, 15
_STRING_MASK, _ARRAY_MASK, _OLD_ARRAY_MASK = 0x1F, 0x7F, 3
_HEADER = 40
_LONGEST = 1 << 31
_UNIT = 512
"""Symbols of one array of their table, with two elements for each."""
_TABLE_AT = 16
"""In the interpreter's symbols: the number of the last one, then two more words."""


def read_ruby_string(layout: RubyLayout, memory: Memory, at: int, most: int) -> str:
    """Return a string, or its first bytes.

    Args:
        layout: of the interpreter.
        memory: the process's.
        at: the object.
        most: bytes.

    Raises:
        UnreadableError: it is no string.
    """
    place, length = text_place(layout, memory, at)
    return memory.bytes(place, min(length, most)).decode("utf-8", "replace")


def text_place(layout: RubyLayout, memory: Memory, at: int) -> tuple[int, int]:
    """Return where the bytes of a string are, and how many.

    Raises:
        UnreadableError: it is no string.
    """
    flags, _, first, second, _ = _words(memory, at)
    if flags & _TYPE_MASK != _STRING:
        raise UnreadableError
    if flags & _NOT_EMBEDDED:
        length, place = first, second
    elif layout.embeds_length:
        length, place = first, at + 24
    else:
        length, place = flags >> _STRING_SHIFT & _STRING_MASK, at + 16
    if length > _LONGEST:
        raise UnreadableError
    return place, length


def ruby_path(layout: RubyLayout, memory: Memory, at: int) -> int:
    """Return the string of a file's path: that object, or the first element of an array.

    Raises:
        UnreadableError: it is neither.
    """
    if memory.number(at) & _TYPE_MASK == _STRING:
        return at
    return _element(layout, memory, at, 0)


def imemo_kind(memory: Memory, at: int) -> int:
    """Return the kind of an object that is the interpreter's own.

    Raises:
        UnreadableError: it is a program's.
    """
    flags = memory.number(at)
    if flags & _TYPE_MASK != _IMEMO:
        raise UnreadableError
    return flags >> _IMEMO_SHIFT & _IMEMO_MASK


class RubySymbols:
    """The names by their numbers, each read once.

    Args:
        layout: of the interpreter.
        memory: the process's.
        table: the address of the interpreter's symbols; 0: not known, and nothing has a name.
    """

    def __init__(self, layout: RubyLayout, memory: Memory, table: int) -> None:
        self._layout, self._memory, self._table = layout, memory, table

    def name(self, number: int, most: int) -> str:
        """Return a name; "" if the table is not known.

        Raises:
            UnreadableError: there is none with this number.
        """
        if not self._table:
            return ""
        layout, memory = self._layout, self._memory
        serial = number >> 4 if number > layout.last_operator else number
        if not 0 < serial <= memory.number(self._table, 4):
            raise UnreadableError
        arrays = memory.number(self._table + _TABLE_AT)
        names = _element(layout, memory, arrays, serial // _UNIT)
        name = _element(layout, memory, names, serial % _UNIT * 2)
        return read_ruby_string(layout, memory, name, most)


def _element(layout: RubyLayout, memory: Memory, at: int, index: int) -> int:
    """An element of an array.

    Raises:
        UnreadableError: it has fewer, or is no array.
    """
    flags, _, first, _, place = _words(memory, at)
    if flags & _TYPE_MASK != _ARRAY:
        raise UnreadableError
    length = first
    if flags & _EMBEDDED:
        mask = _ARRAY_MASK if layout.embeds_length else _OLD_ARRAY_MASK
        length, place = flags >> _ARRAY_SHIFT & mask, at + 16
    if index >= length:
        raise UnreadableError
    return memory.number(place + 8 * index)


def _words(memory: Memory, at: int) -> tuple[int, ...]:
    raw = memory.bytes(at, _HEADER)
    return tuple(int.from_bytes(raw[i : i + 8], "little") for i in range(0, _HEADER, 8))
