"""Names of types to their numbers, without a table of names: bytes are searched.

Listing the names of a vmlinux takes 8 ms and 0.25 MB; then each name takes 0.3 to 1.2 ms.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterator, Sequence

from purebpf.btf.types.strings import Strings, essential_name, occurrences

__all__ = ["NameIndex"]

_HALF = 2


class NameIndex:
    """The types of one blob by name.

    It keeps half of the offset of each type's name, the lower 16 bits, which few have in common: a
    search takes a third of the time that one for whole offsets does.

    That finds all types of a name if its string has no other place. Writers of BTF do not let
    strings share their tails; if one does, names are compared one by one.

    Args:
        words: the type section.
        starts: the first word of each type, which is the offset of its name.
        strings: the names.

    Raises:
        ValueError: a name is outside of the strings.
    """

    __slots__ = ("_halves", "_shares_tails", "_starts", "_strings", "_words")

    def __init__(self, words: Sequence[int], starts: Sequence[int], strings: Strings) -> None:
        self._words = words
        self._starts = starts
        self._strings = strings
        offsets = array("I", map(words.__getitem__, starts))
        try:
            self._shares_tails = strings.share_tails(offsets)
        except IndexError:
            problem = f"a type's name is at {max(offsets)}, outside of {len(strings)} bytes"
            raise ValueError(problem) from None
        halves = memoryview(offsets).cast("B").cast("H")
        self._halves = halves[sys.byteorder == "big" :: 2].tobytes()

    def find(self, name: str, *, essential: bool) -> Iterator[int]:
        """The types called `name`, with any flavour or with none: 0 is the blob's first.

        Raises:
            ValueError: a name is longer than any that can be meant.
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
            half = (offset & 0xFFFF).to_bytes(_HALF, sys.byteorder)
            for at in occurrences(self._halves, half, 0, len(self._halves)):
                number, rest = divmod(at, _HALF)
                if not rest and self._words[self._starts[number]] == offset:
                    yield number
