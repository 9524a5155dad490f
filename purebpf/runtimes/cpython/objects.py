"""Dicts, sets, lists, numbers and types of another process, as CPython lays them out.

These structures have had the same layout since 3.8: Include/cpython/dictobject.h,
Include/internal/pycore_dict.h, Include/cpython/setobject.h, Include/cpython/longintrepr.h.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from purebpf.runtimes.cpython.code_objects import read_string
from purebpf.runtimes.cpython.layout import Layout
from purebpf.runtimes.memory import Memory, UnreadableError

__all__ = ["Objects"]

_TYPE = 8
_MODULE_DICT = _WEAK_REFERENT = 16
_DICT_KEYS, _DICT_VALUES = 32, 40
_SIZE, _LIST_ITEMS = 16, 24
_SET_MASK, _SET_TABLE = 32, 40
_MOST_ENTRIES = 1 << 16
_MOST_NAME = 256
_MOST_BASES = 16
_DIGIT_BITS, _MOST_DIGITS = 30, 4
_ENTRY, _UNICODE_ENTRY = struct.Struct("<8xQQ"), struct.Struct("<QQ")


class Objects:
    """The objects of one process, as they are now.

    Args:
        version, layout: of the interpreter.
        memory: the process's.
        type_base: the offset of a type's base.

    Every method raises `UnreadableError` where there is no such object.
    """

    def __init__(
        self, version: tuple[int, int], layout: Layout, memory: Memory, type_base: int
    ) -> None:
        self.memory = memory
        self._version = version
        self._layout = layout
        self._type_base = type_base
        self._types: dict[int, str] = {}

    def word(self, address: int) -> int:
        """A pointer."""
        return self.memory.number(address)

    def type_name(self, address: int) -> str:
        """The name of the type of an object: "coroutine", "_asyncio.Task"."""
        return self._name(self.word(address + _TYPE))

    def derives_from(self, address: int, name: str) -> bool:
        """Return True if an object's type is this one, or a subclass of it."""
        kind = self.word(address + _TYPE)
        for _ in range(_MOST_BASES):
            if not kind:
                return False
            if self._name(kind) == name:
                return True
            kind = self.word(kind + self._type_base)
        return False

    def _name(self, kind: int) -> str:
        if kind not in self._types:
            at = self.word(kind + self._layout.type_name)
            page_left = -at % 4096 or 4096
            raw = self.memory.bytes(at, min(_MOST_NAME, page_left))
            if b"\0" not in raw:
                raw += self.memory.bytes(at + len(raw), _MOST_NAME - len(raw))
            self._types[kind] = raw.partition(b"\0")[0].decode("utf-8", "replace")
        return self._types[kind]

    def string(self, address: int) -> str:
        """Return a `str`, at most its first 256 characters."""
        return read_string(self.memory, self._layout, address, _MOST_NAME)

    def number(self, address: int) -> int:
        """A small positive `int`."""
        size = self.word(address + _SIZE)
        digits = size >> 3 if self._version >= (3, 12) else size
        if digits > _MOST_DIGITS:
            raise UnreadableError
        raw = self.memory.bytes(address + 24, 4 * digits)
        return sum(
            digit << _DIGIT_BITS * at for at, (digit,) in enumerate(struct.iter_unpack("<I", raw))
        )

    def referent(self, address: int) -> int:
        """Return the target of a weak reference; 0: it is gone."""
        return self.word(address + _WEAK_REFERENT)

    def module_dict(self, address: int) -> int:
        """The dict of a module."""
        return self.word(address + _MODULE_DICT)

    def list_items(self, address: int) -> tuple[int, ...]:
        """The addresses of a list's items."""
        count = self.word(address + _SIZE)
        if count > _MOST_ENTRIES:
            raise UnreadableError
        return self._words(self.word(address + _LIST_ITEMS), count)

    def set_items(self, address: int) -> list[int]:
        """The addresses of a set's items."""
        slots = self.word(address + _SET_MASK) + 1
        if slots > _MOST_ENTRIES:
            raise UnreadableError
        words = self._words(self.word(address + _SET_TABLE), 2 * slots)
        # a dummy key, of what was removed, has the hash -1
        pairs = zip(words[::2], words[1::2], strict=True)
        return [key for key, number in pairs if key and number != (1 << 64) - 1]

    def _words(self, address: int, count: int) -> tuple[int, ...]:
        return struct.unpack(f"<{count}Q", self.memory.bytes(address, 8 * count)) if count else ()

    def dict_items(self, address: int) -> Iterator[tuple[int, int]]:
        """The addresses of a dict's keys and values."""
        keys = self.word(address + _DICT_KEYS)
        values = self.word(address + _DICT_VALUES)
        for at, (key, value) in enumerate(self._entries(keys)):
            if values:  # its keys are shared with other instances of the class
                value = self.word(values + 8 * (at + (self._version >= (3, 13))))
            if key and value:
                yield key, value

    def _entries(self, keys: int) -> list[tuple[int, int]]:
        if self._version >= (3, 11):
            raw = self.memory.bytes(keys, 32)
            index_size, kind = 1 << (raw[9] & 63), raw[10]
            entry = _UNICODE_ENTRY if kind else _ENTRY
            start, count = 32, int.from_bytes(raw[24:32], "little")
        else:
            size, count = self.word(keys + 8), self.word(keys + 32)
            width = next(
                width for width in (1, 2, 4, 8) if width == 8 or size <= 1 << 8 * width - 1
            )
            index_size, entry, start = size * width, _ENTRY, 40
        if index_size > 1 << 20 or count > _MOST_ENTRIES:
            raise UnreadableError
        raw = self._large(keys + start + index_size, entry.size * count)
        return [(key, value) for key, value in entry.iter_unpack(raw)]

    def _large(self, address: int, size: int) -> bytes:
        whole = b""
        while size:
            part = min(size, 1 << 20)
            whole += self.memory.bytes(address, part)
            address, size = address + part, size - part
        return whole

    def lookup(self, dictionary: int, name: str) -> int:
        """The value of a key that is a `str`; 0: there is none."""
        for key, value in self.dict_items(dictionary):
            try:
                if self.type_name(key) == "str" and self.string(key) == name:
                    return value
            except UnreadableError:
                continue
        return 0

    def attribute_values(self, address: int, *, dict_at: int) -> list[int]:
        """The values of the attributes of an instance of a class written in Python.

        Args:
            address: of the instance.
            dict_at: where it has its dict, or from 3.13 on its values, where it has none:
                Objects/object_layout.md. 0: where classes without slots have it.
        """
        if self._version >= (3, 13):
            made = self.word(address - 24)
            if not made:
                return self._values(address + (dict_at or 16), self.memory, 8)
        elif self._version >= (3, 12) and not dict_at:
            made = self.word(address - 24)
            if made & 1:
                return self._values(made + 1, self.memory, 0)
        elif self._version >= (3, 11) and not dict_at:
            made, values = self.word(address - 24), self.word(address - 32)
            if not made:
                return self._values(values, self.memory, 0)
        else:
            made = self.word(address + (dict_at or 16))
        return [value for _, value in self.dict_items(made)] if made else []

    @staticmethod
    def _values(address: int, memory: Memory, header: int) -> list[int]:
        """Return values that lie side by side: the first few, as their count is stored
        elsewhere.
        """
        count = memory.number(address, 1) if header else 8
        raw = memory.bytes(address + header, 8 * min(count, 30))
        return [value for (value,) in struct.iter_unpack("<Q", raw) if value]
