"""Functions that an ELF file uses and another one has: their names, and the library if it says.

.dynsym lists them as undefined. .gnu.version gives each symbol a number, and .gnu.version_r says
which library has the version of that number; .dynamic lists the libraries (DT_NEEDED).
Source: the generic ABI, "Dynamic Section"; the Linux Standard Base, "Symbol Versioning".
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from purebpf.symbols.elf_image import SHT_DYNSYM, ElfImage
from purebpf.symbols.elf_versions import MASK, symbol_versions
from purebpf.symbols.longest_name import ends_at
from purebpf.tuples import NamedTuple
from purebpf.wire import formats

__all__ = ["ImportedFunction", "imported_function", "needed_libraries"]

_SHT_DYNAMIC, _SHT_GNU_VERNEED = 6, 0x6FFFFFFE
_DT_NEEDED = 1
_CODE = frozenset({0, 2, 10})
"""STT_NOTYPE, STT_FUNC and STT_GNU_IFUNC: an undefined symbol need not say that it is code."""
_LIMIT = 1 << 15


class ImportedFunction(NamedTuple):
    """A function of another file: its name, and the library that has it, or ""."""

    name: str
    library: str


def imported_function(image: ElfImage, name: str) -> ImportedFunction | None:
    """Return the function of that name that the file imports, None if it imports none.

    Raises:
        FormatError: the tables are malformed.
    """
    table = image.section_of_type(SHT_DYNSYM)
    if table is None:
        return None
    strings = image.contents(image.linked_section(table))
    layout = struct.Struct(
        image.order + (formats.ELF64_SYMBOL if image.is64 else formats.ELF32_SYMBOL)
    )
    data = image.contents(table)
    wanted = name.encode("utf-8", "surrogateescape")
    for index, row in enumerate(layout.iter_unpack(data[: len(data) // layout.size * layout.size])):
        info, section = (row[1], row[3]) if image.is64 else (row[3], row[5])
        if section or info & 15 not in _CODE or not row[0]:
            continue
        if strings[row[0] : ends_at(strings, row[0])].partition(b"@")[0] == wanted:
            numbers, _ = symbol_versions(image)
            number = numbers[index] & MASK if index < len(numbers) else 0
            return ImportedFunction(name, _libraries_of_versions(image).get(number, ""))
    return None


def needed_libraries(image: ElfImage) -> Iterator[str]:
    """Yield the names of the libraries that the file is linked to, as it lists them."""
    section = image.section_of_type(_SHT_DYNAMIC)
    if section is None:
        return
    strings = image.contents(image.linked_section(section))
    entry = struct.Struct(image.order + ("qQ" if image.is64 else "iI"))
    data = image.contents(section)
    for tag, value in entry.iter_unpack(data[: len(data) // entry.size * entry.size]):
        if tag == _DT_NEEDED and value < len(strings):
            yield _text(strings, value)


def _libraries_of_versions(image: ElfImage) -> dict[int, str]:
    """The library of each version number: records of 16 bytes, each with a list of versions."""
    section = image.section_of_type(_SHT_GNU_VERNEED)
    if section is None:
        return {}
    data, strings = image.contents(section), image.contents(image.linked_section(section))
    need, version = struct.Struct(f"{image.order}HHIII"), struct.Struct(f"{image.order}IHHII")
    libraries: dict[int, str] = {}
    at = 0
    for _ in range(_LIMIT):
        if at + need.size > len(data):
            break
        _, count, file, first, following = need.unpack_from(data, at)
        place = at + first
        for _ in range(count):
            if place + version.size > len(data):
                break
            _, _, number, _, to_next = version.unpack_from(data, place)
            libraries[number & MASK] = _text(strings, file)
            place += to_next
            if not to_next:
                break
        if not following:
            break
        at += following
    return libraries


def _text(strings: bytes, offset: int) -> str:
    return strings[offset : ends_at(strings, offset)].decode("utf-8", "surrogateescape")
