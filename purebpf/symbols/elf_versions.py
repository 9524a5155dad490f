"""Versions of the symbols that a library exports: `memcpy@GLIBC_2.2.5`, `memcpy@@GLIBC_2.14`.

.gnu.version has a number for each symbol of .dynsym, .gnu.version_d the names of the numbers. A
number with its top bit set is an old version, which programs are no longer linked to.
Source: the Linux Standard Base, "Symbol Versioning".
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from purebpf.symbols.elf_image import ElfImage
from purebpf.symbols.longest_name import ends_at

__all__ = ["MASK", "is_default", "symbol_versions"]

_SHT_GNU_VERDEF, _SHT_GNU_VERSYM = 0x6FFFFFFD, 0x6FFFFFFF
_HIDDEN = 0x8000
MASK = 0x7FFF
"""The part of a symbol's version number that has a name."""
_LIMIT = 1 << 15


def symbol_versions(image: ElfImage) -> tuple[Sequence[int], dict[int, str]]:
    """The version number of each symbol of .dynsym, and the name of each number."""
    numbers = image.contents(image.section_of_type(_SHT_GNU_VERSYM))
    numbers = numbers[: len(numbers) & ~1]
    count = len(numbers) // 2
    return struct.unpack(f"{image.order}{count}H", numbers), _names(image)


def is_default(number: int) -> bool:
    """Return True if programs are linked to the symbol with this version number."""
    return not number & _HIDDEN


def _names(image: ElfImage) -> dict[int, str]:
    """Each definition is 20 bytes, and leads to its first name and to the next definition."""
    section = image.section_of_type(_SHT_GNU_VERDEF)
    if section is None:
        return {}
    data, strings = image.contents(section), image.contents(image.linked_section(section))
    definition = struct.Struct(f"{image.order}HHHHIII")
    names: dict[int, str] = {}
    at = 0
    for _ in range(_LIMIT):
        if at + definition.size > len(data):
            break
        _, _, index, _, _, names_at, following = definition.unpack_from(data, at)
        if at + names_at + 4 <= len(data):
            (name,) = struct.unpack_from(f"{image.order}I", data, at + names_at)
            text = strings[name : ends_at(strings, name)]
            names[index & MASK] = text.decode("utf-8", "backslashreplace")
        if not following:
            break
        at += following
    return names
