"""Functions of an ELF file by name: where in the file each starts.

The other direction, from addresses to names, is `elf_symbols`, which keeps one name an address and
is built for many questions; here every symbol counts, and there is one question.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection, Iterator

from purebpf.symbols.demangle import MANGLED, demangle
from purebpf.symbols.elf_image import (
    CHECKED,
    PT_LOAD,
    SHT_DYNSYM,
    SHT_SYMTAB,
    ElfImage,
    Section,
    Segment,
)
from purebpf.symbols.elf_versions import MASK, is_default, symbol_versions
from purebpf.symbols.frame import FileOffset
from purebpf.symbols.go_table import go_functions
from purebpf.symbols.longest_name import ends_at
from purebpf.symbols.mini_debug import mini_debug_info
from purebpf.symbols.short_names import identifier, spellings
from purebpf.tuples import NamedTuple
from purebpf.wire import formats

__all__ = [
    "FUNCTIONS",
    "INDIRECT",
    "Extent",
    "Variable",
    "addresses_of_variables",
    "function_extents",
    "function_of_version",
    "function_ranges",
    "functions_named",
    "is_spelt",
    "variables",
]

INDIRECT = frozenset({10})
"""STT_GNU_IFUNC: code that chooses what programs that call the name run."""
FUNCTIONS = INDIRECT | {2}
"""STT_FUNC, too: what they run."""
_VARIABLES = frozenset({1})
"""STT_OBJECT."""
_RANKS = {1: 2, 2: 1}
"""STB_GLOBAL before STB_WEAK before the rest, which are static."""


def functions_named(
    image: ElfImage, wanted: Callable[[str], bool], kinds: frozenset[int] = FUNCTIONS
) -> dict[str, FileOffset]:
    """The functions with the name `wanted` (without the version, `@GLIBC_2.2.5`).

    From .symtab, and from .dynsym the others. A file without .symtab has the rest of its functions
    in its debug file (`ElfImage.debug`), in the symbols that Fedora packs into it, or in the table
    that Go keeps for itself. Of several of one name a global one counts, else a weak one, else the
    first; of several versions of one, the version that programs are linked to.

    Raises:
        FormatError: the tables are malformed.
    """
    offsets: dict[str, FileOffset] = {}
    for source, table in _tables(image):
        ranks: dict[str, int] = {}
        versions = symbol_versions(source)[0] if table.type == SHT_DYNSYM else ()
        for index, name, address, binding, _ in _functions(source, table, kinds):
            is_current = index >= len(versions) or is_default(versions[index])
            rank = 2 * _RANKS.get(binding, 0) + is_current
            if rank <= ranks.get(name, -1) or (name in offsets and name not in ranks):
                continue
            if wanted(name):
                offset = _file_offset(image.segments, address)
                if offset is not None:
                    offsets[name], ranks[name] = offset, rank
    if kinds >= FUNCTIONS and image.section_of_type(SHT_SYMTAB) is None:
        for address, _, raw in go_functions(image):
            name = raw.decode("utf-8", "backslashreplace")
            if name not in offsets and wanted(name):
                offset = _file_offset(image.segments, address)
                if offset is not None:
                    offsets[name] = offset
    return offsets


def _tables(image: ElfImage) -> Iterator[tuple[ElfImage, Section]]:
    """Yield the symbol tables that name functions of a file, and the files that they are in."""
    own = image.section_of_type(SHT_SYMTAB)
    if own is not None:
        yield image, own
    dynamic = image.section_of_type(SHT_DYNSYM)
    if dynamic is not None:
        yield image, dynamic
    if own is None:
        for source in (image.debug, mini_debug_info(image)):
            table = source.section_of_type(SHT_SYMTAB) if source is not None else None
            if source is not None and table is not None:
                yield source, table


def function_ranges(image: ElfImage, name: str) -> set[tuple[FileOffset, int]]:
    """Return the file offset and the size in bytes of each function with a name.

    A C++ or Rust function has its mangled name, its readable name, and the readable name without
    parameters (`purebpf.symbols.short_names.spellings`). Several functions are returned when static
    or overloaded functions share a name; functions without a size are omitted.

    Raises:
        FormatError: the tables are malformed.
    """
    ranges = set()
    last = identifier(name)
    for source, table in _tables(image):
        for _, own_name, address, _, size in _functions(source, table):
            if not size or not (own_name == name or is_spelt(own_name, name, last)):
                continue
            offset = _file_offset(image.segments, address)
            if offset is not None:
                ranges.add((offset, size))
    return ranges


class Extent(NamedTuple):
    """The size of a function in bytes, and its names."""

    size: int
    names: tuple[str, ...]


def function_extents(image: ElfImage) -> dict[int, Extent]:
    """The functions that have a size, by the address that they were linked for.

    Raises:
        FormatError: the tables are malformed.
    """
    extents: dict[int, Extent] = {}
    for table in filter(None, map(image.section_of_type, (SHT_SYMTAB, SHT_DYNSYM))):
        for _, name, address, _, size in _functions(image, table):
            if size:
                known = extents.get(address, Extent(0, ()))
                extents[address] = Extent(max(size, known.size), (*known.names, name))
    return extents


class Variable(NamedTuple):
    """A variable of the file: its address before relocation, its size in bytes, and its name."""

    address: int
    size: int
    name: str


def variables(image: ElfImage) -> list[Variable]:
    """The variables that have a size, by address; of several at one, the last of .symtab.

    Raises:
        FormatError: the tables are malformed.
    """
    by_address: dict[int, Variable] = {}
    for table in filter(None, map(image.section_of_type, (SHT_DYNSYM, SHT_SYMTAB))):
        for _, name, address, _, size in _functions(image, table, _VARIABLES):
            if size:
                by_address[address] = Variable(address, size, name)
    return [by_address[address] for address in sorted(by_address)]


def addresses_of_variables(image: ElfImage, names: Collection[str]) -> dict[str, int]:
    """Return the addresses of the variables of these names, as the file has them.

    The result omits a name that several static variables share.

    Raises:
        FormatError: the tables are malformed.
    """
    addresses: dict[str, set[int]] = {}
    for source, table in _tables(image):
        for _, name, address, _, _ in _functions(source, table, _VARIABLES):
            if name in names:
                addresses.setdefault(name, set()).add(address)
    return {name: values.pop() for name, values in addresses.items() if len(values) == 1}


def is_spelt(mangled: str, name: str, last: str) -> bool:
    """Return True if `name` can mean a C++ or Rust function, whose identifier is `last`.

    `last` is `short_names.identifier(name)`: it spares most symbols the demangling.
    """
    if not mangled.startswith(MANGLED) or last not in mangled:
        return False
    return name in spellings(demangle(mangled))


def function_of_version(
    image: ElfImage, name: str, version: str, kinds: frozenset[int] = FUNCTIONS
) -> FileOffset | None:
    """The function of that name and version: `"memcpy", "GLIBC_2.2.5"`.

    A version such as `"@GLIBC_2.14"` must be the one that programs are linked to.

    Raises:
        FormatError: the tables are malformed.
    """
    table = image.section_of_type(SHT_DYNSYM)
    numbers, names = symbol_versions(image)
    wanted = version.removeprefix("@")
    functions = _functions(image, table, kinds) if table is not None else ()
    for index, own_name, address, _, _ in functions:
        number = numbers[index] if index < len(numbers) else 0
        has_version = names.get(number & MASK) == wanted
        if own_name == name and has_version and (version == wanted or is_default(number)):
            return _file_offset(image.segments, address)
    return None


def _functions(
    image: ElfImage, table: Section, kinds: frozenset[int] = FUNCTIONS
) -> Iterator[tuple[int, str, int, int, int]]:
    """The place in the table, name, address, binding and size of each function that is defined."""
    strings = image.contents(image.linked_section(table))
    layout = struct.Struct(
        image.order + (formats.ELF64_SYMBOL if image.is64 else formats.ELF32_SYMBOL)
    )
    data = image.contents(table)
    rows = layout.iter_unpack(data[: len(data) // layout.size * layout.size])
    for index, row in enumerate(rows):
        if not index % CHECKED:
            image.check()
        if image.is64:
            name, info, _, section, address, size = row
        else:
            name, address, size, info, _, section = row
        if section and info & 15 in kinds:
            text = strings[name : ends_at(strings, name)].partition(b"@")[0]
            yield index, text.decode("utf-8", "backslashreplace"), address, info >> 4, size


def _file_offset(segments: list[Segment], address: int) -> FileOffset | None:
    for segment in segments:
        inside = 0 <= address - segment.address < segment.file_size
        if segment.type == PT_LOAD and inside:
            return FileOffset(address - segment.address + segment.offset)
    return None
