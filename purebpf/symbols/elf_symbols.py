"""The functions of an ELF file, as a table.

Which symbols count: STT_FUNC and STT_GNU_IFUNC that are defined, and STT_NOTYPE labels in
executable sections (hand-written assembly), except hidden ones and mapping symbols ("$x").

A browser has a million symbols, so a table is read in slices and decoded in whole columns, with the
C code of array, bytes and itertools; no Python code runs for each symbol.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_right
from collections.abc import Iterable
from itertools import compress, islice

from purebpf.symbols.elf_image import (
    ET_REL,
    SHF_ALLOC,
    SHF_EXECINSTR,
    SHF_TLS,
    SHT_DYNSYM,
    SHT_SYMTAB,
    ElfImage,
    Section,
)
from purebpf.symbols.go_table import go_functions
from purebpf.symbols.longest_name import ends_at
from purebpf.symbols.mini_debug import mini_debug_info
from purebpf.symbols.plt import plt_symbols
from purebpf.symbols.sorted_addresses import ENTRY_MASK, StartKeys
from purebpf.symbols.symbol_table import Columns, SymbolTable
from purebpf.tuples import NamedTuple

__all__ = ["read_symbols"]

_FUNC, _NOTYPE, _IFUNC = 2, 0, 10
_GLOBAL, _WEAK = 1, 2
_IS_FUNCTION = bytes(info & 15 in (_FUNC, _IFUNC) for info in range(256))
_IS_LABEL = bytes(info & 15 == _NOTYPE for info in range(256))
_RANK = bytes(2 * (info >> 4 != _WEAK) + (info >> 4 == _GLOBAL) for info in range(256))
_HIDDEN = (1, 2)  # STV_INTERNAL, STV_HIDDEN
_EM_ARM = 40

_NO_LABEL = b".$"
"""Labels of the assembler's own: ".L1", and the Arm mapping symbols "$x", "$d"."""

_BATCH = 1 << 15
"""Symbols that are read at a time: 768 KiB of them."""

_MAX_NAMES = 1 << 26  # bytes of names that are put together here
_TOP = (1 << 64) - 1


def read_symbols(image: ElfImage, debug: ElfImage | None = None) -> SymbolTable:
    """The functions of a file.

    Symbols come from .symtab of the file or else of its debug file; without one, from .dynsym and
    the .gnu_debugdata that Fedora adds ("MiniDebugInfo": an xz-compressed ELF file with the
    remaining symbols), and from Go's tables. The stubs of the procedure linkage table are added as
    `func@plt`.

    Args:
        image: the file that is mapped.
        debug: its separate debug file, if there is one.

    Raises:
        FormatError: the tables are malformed.
    """
    collected = _Collector()
    if image.type != ET_REL:
        for source in (image, debug):
            if source is not None and not len(collected):
                collected.add(source, source.section_of_type(SHT_SYMTAB))
        if not len(collected):
            collected.add(image, image.section_of_type(SHT_DYNSYM))
            mini = mini_debug_info(image)
            if mini is not None:
                collected.add(mini, mini.section_of_type(SHT_SYMTAB))
            collected.add_named(go_functions(image))
        collected.add_named(plt_symbols(image))
    return collected.table()


class _Strings:
    """String tables as one: offsets into the second continue those into the first, and so on.

    They are read when the columns are done, so that not all is in memory at once.
    """

    def __init__(self) -> None:
        self.tables: list[bytes] = []
        self.nbytes = 0
        self._bases: list[int] = []
        self._unread: list[tuple[ElfImage, Section | None] | bytes] = []

    def add(self, image: ElfImage, section: Section | None) -> None:
        """A string table that will be read."""
        self._reserve((image, section), image.size_of(section))

    def add_bytes(self, table: bytes) -> None:
        """One that is not in a file."""
        self._reserve(table, len(table))

    def _reserve(self, table: tuple[ElfImage, Section | None] | bytes, size: int) -> None:
        self._unread.append(table)
        self._bases.append(self.nbytes)
        self.nbytes += size

    def read(self) -> None:
        """Get them into memory."""
        for unread in self._unread:
            self.tables.append(
                unread if isinstance(unread, bytes) else unread[0].contents(unread[1])
            )
        self._unread.clear()

    def get(self, offset: int) -> bytes:
        """The name that starts there, or a little more of it than `LONGEST_NAME`."""
        at = bisect_right(self._bases, offset) - 1
        if at < 0:
            return b""
        table, start = self.tables[at], offset - self._bases[at]
        return table[start : ends_at(table, start)]


class _Slice(NamedTuple):
    """Some rows of a symbol table, in columns."""

    names: array[int]
    infos: bytes
    others: bytes
    sections: array[int]
    starts: array[int]
    sizes: array[int]


class _Collector:
    """Symbols from several tables, in columns; those that are not functions are entries too."""

    def __init__(self) -> None:
        self._keys = StartKeys()
        self._sizes = array("Q")
        self._names = array("I")
        self._ranks = bytearray()
        self._regions: set[tuple[int, int]] = set()
        self._strings = _Strings()

    def __len__(self) -> int:
        """Return the number of functions."""
        return len(self._keys)

    def add(self, image: ElfImage, symbols: Section | None) -> None:
        """All functions of a symbol table section."""
        if symbols is None:
            return
        strings = image.linked_section(symbols)
        size = 24 if image.is64 else 16
        for at in range(0, symbols.size, _BATCH * size):
            raw = image.read(symbols.offset + at, min(_BATCH * size, symbols.size - at))
            room = min(len(raw) // size, ENTRY_MASK - len(self._names))
            if not room:  # the section passes the end of the file
                break
            rows = _columns(image, raw[: room * size])
            self._add_rows(image, rows, _mark_functions(image, rows, strings))
        self._regions |= _regions(image)
        self._strings.add(image, strings)

    def _add_rows(self, image: ElfImage, rows: _Slice, chosen: bytearray) -> None:
        starts = rows.starts
        if image.machine == _EM_ARM:
            starts = array("Q", [start & ~1 for start in starts])  # bit 0 says Thumb
        self._keys.add(len(self._names), starts, chosen)
        self._sizes += rows.sizes
        shift = self._strings.nbytes
        if shift:
            pairs = zip(rows.names, chosen, strict=True)
            self._names.extend(name + shift if is_chosen else 0 for name, is_chosen in pairs)
        else:
            self._names += rows.names
        self._ranks += rows.infos.translate(_RANK)

    def add_named(self, functions: Iterable[tuple[int, int, bytes]]) -> None:
        """Functions that are in no table: (start, size, name); their names may overlap in it."""
        base = self._strings.nbytes
        first = len(self._names)
        starts = array("Q")
        strings = bytearray()
        for start, size, name in islice(functions, ENTRY_MASK - first):
            if len(strings) > _MAX_NAMES:
                break
            starts.append(min(start, _TOP))
            self._sizes.append(min(size, _TOP))
            self._names.append(base + len(strings))
            self._ranks.append(_RANK[_FUNC])
            strings += name
            strings.append(0)
        self._keys.add(first, starts, b"\1" * len(starts))
        self._strings.add_bytes(bytes(strings))

    def table(self) -> SymbolTable:
        """The table of the collected symbols, by address."""
        keys = self._keys.take_all()
        self._strings.read()
        regions = sorted(self._regions)
        columns = Columns(keys, self._sizes, self._names, self._ranks, regions)
        per_key = 8 if isinstance(keys, array) else 48
        size = per_key * len(keys) + 13 * len(self._names) + 64 * len(regions)
        return SymbolTable(columns, self._strings, in_memory=size)


def _columns(image: ElfImage, raw: bytes) -> _Slice:
    """Elf64_Sym is name, info, other, section, value, size; Elf32_Sym has the latter two second."""
    words, halves = array("I", raw), array("H", raw)
    if image.is64:
        longs = array("Q", raw)
        infos, others = raw[4::24], raw[5::24]
        numbers = (words[::6], halves[3::12], longs[1::3], longs[2::3])
    else:
        infos, others = raw[12::16], raw[13::16]
        numbers = (words[::4], halves[7::8], words[1::4], words[2::4])
    if (image.order == "<") != (sys.byteorder == "little"):
        for column in numbers:
            column.byteswap()
    names, sections, starts, sizes = numbers
    if not image.is64:
        starts, sizes = array("Q", starts), array("Q", sizes)
    return _Slice(names, infos, others, sections, starts, sizes)


def _mark_functions(image: ElfImage, rows: _Slice, strings: Section | None) -> bytearray:
    """One byte a row: whether it is a function or a label, by the rule at the top."""
    chosen = bytearray(rows.infos.translate(_IS_FUNCTION))
    if 0 in rows.sections:
        _clear(chosen, map((0).__eq__, rows.sections))
    limit = image.size_of(strings)
    if max(rows.names, default=0) >= limit:
        _clear(chosen, map(limit.__le__, rows.names))
    labels = rows.infos.translate(_IS_LABEL)
    if 1 not in labels or strings is None:
        return chosen
    code = {at for at, section in enumerate(image.sections) if section.flags & SHF_EXECINSTR}
    for at in compress(range(len(chosen)), labels):
        if rows.sections[at] in code and rows.others[at] & 3 not in _HIDDEN:
            first = image.read(strings.offset + rows.names[at], 1)
            chosen[at] = first not in _NO_LABEL and first != b"\0"
    return chosen


def _clear(chosen: bytearray, those: Iterable[bool]) -> None:
    for at in compress(range(len(chosen)), those):
        chosen[at] = 0


def _regions(image: ElfImage) -> set[tuple[int, int]]:
    return {
        (section.address, min(section.address + section.size, _TOP))
        for section in image.sections
        if section.flags & SHF_ALLOC and not section.flags & SHF_TLS and section.size
    }
