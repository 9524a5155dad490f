"""The functions that a Go program keeps for its own tracebacks, also when it is stripped.

.gopclntab of Go 1.18 and later (Go's src/runtime/symtab.go, pcHeader, and
src/debug/gosym/pclntab.go): words are as wide as an address, offsets are from the start of the
section or of the part they lead to.

    header     magic (u32), 2 zeros, quantum, width of a word; then words: functions, files,
               start of the text, offset of the names, 3 more parts, offset of the functions
    functions  u32 start (from the text's start), u32 offset of its record; at the end
               the u32 end of the last one
    function   u32 start, i32 offset of its name, ...

From Go 1.26 on the header no longer has the start of the text; moduledata, in .go.module, does.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from purebpf.symbols.elf_image import SHF_EXECINSTR, SHT_RELA, ElfImage, Section
from purebpf.symbols.longest_name import ends_at
from purebpf.tuples import NamedTuple

__all__ = ["GoTable", "go_functions", "go_table", "has_go_code", "has_go_table"]

_MAGICS = (0xFFFFFFF0, 0xFFFFFFF1)  # Go 1.18, Go 1.20
_SECTIONS = (".gopclntab", ".data.rel.ro.gopclntab")
_TEXT_START, _NAMES, _NUMBERS, _FUNCTIONS = 2, 3, 6, 7
_WORDS = 8
_TEXT_OF_MODULE = 22
"""moduledata.text, in words: after pcHeader, six slices, findfunctab, minpc and maxpc."""
_MOST = 1 << 20
_MOST_RELOCATIONS = 1 << 21
"""In all sections together, which a hostile file may have many of."""


class GoTable(NamedTuple):
    """The header of a table.

    Attributes:
        section: where the table is.
        text: where Go's code starts, as a virtual offset.
        functions: how many it has.
        functions_at, names_at, numbers_at: offsets of the functions, of their names, and of the
            numbers that depend on the address, in the section.
        quantum: bytes of the shortest instruction.
        is_1_20: of Go 1.20 or later, whose records are longer.
    """

    section: Section
    text: int
    functions: int
    functions_at: int
    names_at: int
    numbers_at: int
    quantum: int
    is_1_20: bool = True


def has_go_table(image: ElfImage) -> bool:
    """Return True for a file with a table of Go's functions, of any version."""
    return any(map(image.section, _SECTIONS))


def has_go_code(image: ElfImage) -> bool:
    """Return True for a file with functions of Go, also a library or plugin that another linker has
    linked: its table has no section of its own.
    """
    return has_go_table(image) or bool(image.go_build_id)


def go_table(image: ElfImage) -> GoTable | None:
    """The table of a file; None where there is none that we can read.

    Raises:
        FormatError: a section is larger than is plausible.
    """
    table = next(filter(None, map(image.section, _SECTIONS)), None)
    word = "Q" if image.is64 else "I"
    header = struct.Struct(f"{image.order}IHBB{_WORDS}{word}")
    size = image.size_of(table)
    data = image.read(table.offset, header.size) if table is not None else b""
    if table is None or size < header.size or len(data) < header.size:
        return None
    magic, _, quantum, width, *words = header.unpack(data)
    text = _text_start(image, table, words[_TEXT_START])
    if magic not in _MAGICS or width != struct.calcsize(word) or text is None:
        return None
    begin = words[_FUNCTIONS]
    count = min(words[0], _MOST, max(0, size - begin - 4) // 8)
    names, numbers = words[_NAMES], words[_NUMBERS]
    return GoTable(table, text, count, begin, names, numbers, quantum, magic == _MAGICS[1])


def go_functions(image: ElfImage) -> Iterator[tuple[int, int, bytes]]:
    """(virtual offset, bytes, name) of each function; nothing without a table of Go.

    Raises:
        FormatError: a section is larger than is plausible.
    """
    table = go_table(image)
    if table is None or not table.functions:
        return
    data = image.contents(table.section)
    begin, count, text = table.functions_at, table.functions, table.text
    if len(data) < begin + 8 * count + 4:
        return
    numbers = struct.unpack_from(f"{image.order}{2 * count + 1}I", data, begin)
    name_at = struct.Struct(f"{image.order}i")
    for start, end, at in zip(numbers[::2], numbers[2::2], numbers[1::2], strict=False):
        place = begin + at + 4
        if start < end and place + 4 <= len(data):
            name = _name(data, table.names_at + name_at.unpack_from(data, place)[0])
            if name:
                yield text + start, end - start, name


def _name(data: bytes, at: int) -> bytes:
    return data[at : ends_at(data, at)] if 0 <= at < len(data) else b""


def _text_start(image: ElfImage, table: Section, told: int) -> int | None:
    """Return the start of Go's own code; the program's C code may precede it."""
    width = 8 if image.is64 else 4
    start = told or _addend(image, table.address + 8 + _TEXT_START * width)
    module = image.section(".go.module")
    if not start and module is not None:
        at = _TEXT_OF_MODULE * width
        raw = image.read(module.offset + at, width) if at + width <= module.size else b""
        start = int.from_bytes(raw, "little" if image.order == "<" else "big")
        start = start or _addend(image, module.address + at)
    is_code = any(
        section.flags & SHF_EXECINSTR and 0 <= start - section.address < section.size
        for section in image.sections
    )
    return start if is_code else None


def _addend(image: ElfImage, address: int) -> int:
    """Return the value that the dynamic linker writes there, relative to the load address; 0:
    none.
    """
    row = struct.Struct(image.order + ("QQq" if image.is64 else "IIi"))
    left = _MOST_RELOCATIONS
    for section in image.sections:
        if section.type != SHT_RELA or not left:
            continue
        rows = min(section.size // row.size, left)
        left -= rows
        data = image.read(section.offset, rows * row.size)
        for offset, _, addend in row.iter_unpack(data[: len(data) // row.size * row.size]):
            if offset == address:
                return int(addend)
    return 0
