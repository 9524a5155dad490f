"""Objects on V8's heap: their types, strings, arrays of bytes.

A pointer to an object has its lowest bits 01; a small integer (Smi) is in the upper half of a word
whose lowest bit is 0. The first word of an object is its map, which has its type; while the garbage
collector moves an object it has the new address there. Each read checks the type, so that an object
that moved, or that is none, ends in an error and never in a name.
"""

from __future__ import annotations

import struct

from purebpf.runtimes.memory import Memory, UnreadableError
from purebpf.runtimes.v8.layout import V8Layout

__all__ = ["MOST_TEXT", "Heap", "small_integer"]

_WORD = 8
_POINTER_BITS, _POINTER = 3, 1
_TYPE_BYTES = 2
_LENGTH, _CHARACTERS = 12, 16
_FIRST, _SECOND = 16, 24
"""Of strings made of others: their parts, or their text, and where it starts in that."""
_SEQUENTIAL, _CONS, _EXTERNAL, _SLICED, _THIN = 0, 1, 2, 3, 5
_KIND, _ONE_BYTE, _UNCACHED = 7, 8, 16
_DEEPEST = 64
_MOST_STRINGS = 1 << 13
"""Strings that a string is made of, in all depths."""
_PIECE = 1 << 18
MOST_TEXT = 1 << 22
"""Characters of a string."""
_MOST_ARRAY = 1 << 20
"""Bytes of an array."""


def small_integer(word: int) -> int:
    """The value of a Smi.

    Raises:
        UnreadableError: the word is a pointer.
    """
    if word & 1:
        raise UnreadableError
    value = word >> 32 & 0xFFFFFFFF
    return value - (value >> 31 << 32)


class Heap:
    """Reads objects.

    Args:
        memory: the process's.
        layout: of its V8.

    Attributes:
        layout: as given.
    """

    def __init__(self, memory: Memory, layout: V8Layout) -> None:
        self._memory = memory
        self.layout = layout
        self._map_type = layout.map_type
        self._first_not_string = layout.first_not_string
        self._strings = 0

    def word(self, pointer: int, offset: int) -> int:
        """A word of an object.

        Raises:
            UnreadableError: it is not there, or the pointer is none.
        """
        if pointer & _POINTER_BITS != _POINTER:
            raise UnreadableError
        return self._memory.number(pointer - _POINTER + offset)

    def number(self, pointer: int, offset: int, size: int) -> int:
        """An unsigned number of `size` bytes. Raises as `word`."""
        if pointer & _POINTER_BITS != _POINTER:
            raise UnreadableError
        return self._memory.number(pointer - _POINTER + offset, size)

    def type(self, pointer: int) -> int:
        """The type of an object; -1: it is none."""
        try:
            return self.number(self.word(pointer, 0), self._map_type, _TYPE_BYTES)
        except UnreadableError:
            return -1

    def is_string(self, pointer: int) -> bool:
        """Return True for a string."""
        return 0 <= self.type(pointer) < self._first_not_string

    def raw(self, address: int, size: int) -> bytes:
        """Bytes at an address.

        Raises:
            UnreadableError: they are not all there, or too many.
        """
        return self._memory.bytes(address, size)

    def byte_array(self, pointer: int) -> bytes:
        """The content of an array of bytes.

        Raises:
            UnreadableError: it is none, or longer than any that V8 makes.
        """
        size = small_integer(self.word(pointer, _WORD))
        if not 0 <= size <= _MOST_ARRAY:
            raise UnreadableError
        return self._memory.bytes(pointer - _POINTER + _CHARACTERS, size)

    def words(self, pointer: int, count: int) -> tuple[int, ...]:
        """The first words of an array, at most `count`.

        Raises:
            UnreadableError: it is none.
        """
        size = small_integer(self.word(pointer, _WORD))
        count = max(0, min(size, count))
        if count * _WORD > _MOST_ARRAY:
            raise UnreadableError
        raw = self._memory.bytes(pointer - _POINTER + _CHARACTERS, count * _WORD)
        return struct.unpack(f"<{count}Q", raw)

    def element(self, pointer: int, at: int) -> int:
        """A word of an array.

        Raises:
            UnreadableError: the array does not have it.
        """
        if not 0 <= at < small_integer(self.word(pointer, _WORD)):
            raise UnreadableError
        return self.word(pointer, _CHARACTERS + _WORD * at)

    def string(self, pointer: int, most: int = 1 << 12) -> str:
        """A string, cut behind `most` characters.

        Raises:
            UnreadableError: it is none, or one of too many parts.
        """
        parts: list[str] = []
        self._strings = 0
        self._add(parts, pointer, 0, most, 0)
        return "".join(parts)

    def _add(self, parts: list[str], pointer: int, start: int, most: int, depth: int) -> int:
        """Add a string from a character on; return the number of characters added."""
        self._strings += 1
        if depth > _DEEPEST or self._strings > _MOST_STRINGS:
            raise UnreadableError
        kind = self.type(pointer)
        if not 0 <= kind < self._first_not_string:
            raise UnreadableError
        length = self.number(pointer, _LENGTH, 4)
        count = min(length - start, most)
        if count <= 0:
            return 0
        representation = kind & _KIND
        if representation == _THIN:
            return self._add(parts, self.word(pointer, _FIRST), start, count, depth + 1)
        if representation == _SLICED:
            offset = small_integer(self.word(pointer, _SECOND))
            if offset < 0:
                raise UnreadableError
            return self._add(parts, self.word(pointer, _FIRST), offset + start, count, depth + 1)
        if representation == _CONS:
            return self._add_cons(parts, pointer, start, count, depth)
        parts.append(self._characters(pointer, kind, start, count))
        return count

    def _add_cons(self, parts: list[str], pointer: int, start: int, most: int, depth: int) -> int:
        first = self.word(pointer, _FIRST)
        length = self.number(first, _LENGTH, 4)
        added = 0
        if start < length:
            added = self._add(parts, first, start, most, depth + 1)
        if added < most:
            second = self.word(pointer, _SECOND)
            rest = max(0, start - length)
            added += self._add(parts, second, rest, most - added, depth + 1)
        return added

    def _characters(self, pointer: int, kind: int, start: int, count: int) -> str:
        """The characters of a string that has its own, on the heap or outside."""
        representation = kind & _KIND
        if representation == _SEQUENTIAL:
            text = pointer - _POINTER + _CHARACTERS
        elif representation == _EXTERNAL and not kind & _UNCACHED:
            text = self.word(pointer, _SECOND)
        else:
            raise UnreadableError
        width = 1 if kind & _ONE_BYTE else 2
        raw = self._pieces(text + start * width, min(count, MOST_TEXT) * width)
        return raw.decode("latin-1" if width == 1 else "utf-16-le", "replace")

    def _pieces(self, address: int, size: int) -> bytes:
        """Memory of any length, in reads that `Memory` gives."""
        return b"".join(
            self._memory.bytes(address + at, min(_PIECE, size - at))
            for at in range(0, size, _PIECE)
        )
