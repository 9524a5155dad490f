"""A few symbols of a large file, by name."""

from __future__ import annotations

import struct
import sys
from array import array
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress

from purebpf.errors import FormatError
from purebpf.symbols.elf_image import ElfImage, Section

__all__ = ["find_symbols", "name_places"]

_SYMBOL = struct.Struct("<IBBHQQ")
_MOST_SYMBOLS = 1 << 20


def find_symbols(
    image: ElfImage, table: Section | None, choose: Callable[[bytes], dict[int, bytes]]
) -> list[tuple[bytes, int, int]]:
    """Return the wanted symbols that a table defines: name, address, size.

    Args:
        image: of a 64-bit little-endian file.
        table: its section; None: it has none.
        choose: the wanted names, by their places in the string table that it is given.
    """
    if table is None or table.size > _MOST_SYMBOLS * _SYMBOL.size:
        return []
    try:
        strings = image.contents(image.linked_section(table))
        wanted = choose(strings)
        if not wanted:
            return []
        raw = image.contents(table)
    except FormatError:
        return []
    symbols = []
    for at in _places(raw, wanted):
        name, _, _, section, address, size = _SYMBOL.unpack_from(raw, at)
        if section:
            symbols.append((wanted[name], address, size))
    return symbols


def name_places(names: Iterable[bytes]) -> Callable[[bytes], dict[int, bytes]]:
    """Return what chooses these names for `find_symbols`."""
    wanted = tuple(names)

    def choose(strings: bytes) -> dict[int, bytes]:
        places = {}
        for name in wanted:
            at = strings.find(name + b"\0")
            while at >= 0:  # it may be the end of a longer one
                places[at] = name
                at = strings.find(name + b"\0", at + 1)
        return places

    return choose


def _places(raw: bytes, wanted: dict[int, bytes]) -> Iterator[int]:
    """Return the places of the symbols with these names: a table of 10,000 is searched in a
    millisecond.
    """
    words = array("I", raw[: len(raw) - len(raw) % _SYMBOL.size])
    if sys.byteorder == "big":
        words.byteswap()
    names = words[:: _SYMBOL.size // words.itemsize]
    for name in wanted:
        at = -1
        with suppress(ValueError):
            while True:
                at = names.index(name, at + 1)
                yield at * _SYMBOL.size
