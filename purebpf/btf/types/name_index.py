# ruff: noqa: SLF001 -- `unpacked` makes one of its own
"""Names of types to their numbers, without a table of names: bytes are searched.

Listing the names of a vmlinux takes 8 ms and 0.25 MB; then each name takes 0.05 to 0.3 ms.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterator, Sequence
from typing import Self

from purebpf.btf.types.strings import Strings, essential_name

__all__ = ["NameIndex"]

_BITS = 0x7FFF
_SEVEN_BITS = bytes(byte & _BITS >> 8 for byte in range(256))
"""For `bytes.translate`."""
_LOW, _NEXT = (0, 1) if sys.byteorder == "little" else (3, 2)
"""The places of the low bytes of a 32-bit number in memory."""


class NameIndex:
    """The types of one blob by name.

    It keeps the lower 15 bits of the offset of each type's name, which few have in common, as a
    character of a str: finding one character is a memchr(3), six times as quick as a search for
    two bytes. (Sixteen bits would include surrogates: a pair of them becomes one character.)

    That finds all types of a name if its string has no other place. Writers of BTF do not let
    strings share their tails; if one does, names are compared one by one.

    Args:
        words: the type section.
        starts: the first word of each type, which is the offset of its name.
        strings: the names.

    Raises:
        ValueError: a name is outside of the strings.
    """

    __slots__ = ("_characters", "_shares_tails", "_starts", "_strings", "_words")

    def __init__(self, words: Sequence[int], starts: Sequence[int], strings: Strings) -> None:
        self._open(words, starts, strings)
        offsets = array("I", map(words.__getitem__, starts))
        try:
            self._shares_tails = strings.share_tails(offsets)
        except IndexError:
            problem = f"a type's name is at {max(offsets)}, outside of {len(strings)} bytes"
            raise ValueError(problem) from None
        data = offsets.tobytes()
        characters = bytearray(2 * len(offsets))
        characters[::2] = data[_LOW::4]
        characters[1::2] = data[_NEXT::4].translate(_SEVEN_BITS)
        self._characters = characters.decode("utf-16-le")

    def _open(self, words: Sequence[int], starts: Sequence[int], strings: Strings) -> None:
        self._words = words
        self._starts = starts
        self._strings = strings

    def packed(self) -> bytes:
        """Return the index as bytes for `unpacked`; b"": it compares names one by one."""
        return b"" if self._shares_tails else self._characters.encode("utf-16-le")

    @classmethod
    def unpacked(
        cls, words: Sequence[int], starts: Sequence[int], strings: Strings, packed: bytes
    ) -> Self:
        """Return the index that `packed` came from.

        Raises:
            ValueError: the bytes are not from there.
        """
        index = cls.__new__(cls)
        index._open(words, starts, strings)
        index._shares_tails = False
        index._characters = packed.decode("utf-16-le")
        if len(index._characters) != len(starts):
            raise ValueError(f"{len(index._characters)} names of {len(starts)} types")
        return index

    def find(self, name: str, *, essential: bool) -> Iterator[int]:
        """The types called `name`, with any flavour or with none: 0 is the blob's first.

        Raises:
            ValueError: a name is longer than any real one.
        """
        if self._shares_tails:
            plain = essential_name if essential else str
            for number, start in enumerate(self._starts):
                if plain(self._strings.name(self._words[start])) == name:
                    yield number
            return
        offsets = self._strings.offsets(name)
        if essential:
            offsets += self._strings.find_flavours(name)
        for offset in offsets:
            character = chr(offset & _BITS)
            number = self._characters.find(character)
            while number >= 0:
                if self._words[self._starts[number]] == offset:
                    yield number
                number = self._characters.find(character, number + 1)
