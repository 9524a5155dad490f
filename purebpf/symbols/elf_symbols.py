"""The functions of an ELF file, in arrays that one bisect searches.

Which symbols count: STT_FUNC and STT_GNU_IFUNC that are defined, and STT_NOTYPE labels in
executable sections (hand-written assembly), except hidden ones and mapping symbols ("$x").

Which of several names one address gets, in this order (tools/perf/util/symbol.c,
choose_best_symbol, has the same rule for names of one address):

1. the function that starts last, so that a nested one hides the outer;
2. one with a size; 3. not weak; 4. global; 5. fewest leading underscores; 6. the longest name.

Where a function ends: at its size. An address behind it is in no function, never in the previous
one. A symbol without a size ends at the next symbol or its section's end, and does not count at
all inside a function that has one.
"""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator

from purebpf.errors import FormatError
from purebpf.symbols.elf_image import (
    ET_REL,
    SHF_EXECINSTR,
    SHT_DYNSYM,
    SHT_SYMTAB,
    ElfImage,
    Section,
)
from purebpf.symbols.frame import VirtualOffset
from purebpf.symbols.intervals import Segments, flatten
from purebpf.symbols.plt import plt_symbols

__all__ = ["SymbolTable", "read_symbols"]

_FUNC, _NOTYPE, _IFUNC = 2, 0, 10
_GLOBAL, _WEAK = 1, 2
_FUNCTION_INFO = frozenset(bind << 4 | kind for bind in range(16) for kind in (_FUNC, _IFUNC))
_LABEL_INFO = frozenset(bind << 4 | _NOTYPE for bind in range(16))
_HIDDEN = (1, 2)  # STV_INTERNAL, STV_HIDDEN
_EM_ARM = 40

_NO_LABEL = b".$"
"""Labels of the assembler's own: ".L1", and the Arm mapping symbols "$x", "$d"."""

_INDEX = (1 << 32) - 1

_BATCH = 1 << 12
"""Symbols decoded at a time, which bounds the Python objects that are alive at once."""

_MAX_DEBUG_DATA = 1 << 26  # bytes, unpacked
_MAX_UNPACKER = 1 << 27  # bytes of memory that unpacking may take: xz -9 takes 65 MiB
_TOP = (1 << 64) - 1


class SymbolTable:
    """Functions by virtual offset: three arrays and the string table, no object a function."""

    __slots__ = ("_names", "_segments", "_starts", "_strings")

    def __init__(
        self, segments: Segments, starts: array[int], names: array[int], strings: _Strings
    ) -> None:
        self._segments = segments
        self._starts = starts
        self._names = names
        self._strings = strings

    def __len__(self) -> int:
        """How many functions have a range of their own."""
        return len(self._starts)

    @property
    def nbytes(self) -> int:
        """Memory used, in bytes."""
        return self._segments.nbytes + 12 * len(self._starts) + self._strings.nbytes

    def find(self, offset: VirtualOffset) -> tuple[str, int] | None:
        """The function at an offset, as in the file (mangled), and the bytes into it."""
        owner = self._segments.owner(offset)
        if owner < 0:
            return None
        name = self._strings.get(self._names[owner]).decode("utf-8", "backslashreplace")
        return name, offset - self._starts[owner]


def read_symbols(image: ElfImage, debug: ElfImage | None = None) -> SymbolTable:
    """The functions of a file.

    From .symtab, the file's own or else its debug file's; without one, from .dynsym and the
    .gnu_debugdata that Fedora adds ("MiniDebugInfo": an xz-compressed ELF file with the rest of
    the symbols). The stubs of the procedure linkage table are added as `func@plt`.

    Args:
        image: the file that is mapped.
        debug: its separate debug file, if there is one.

    Raises:
        FormatError: the tables are not what they claim to be.
    """
    collected = _Collector()
    if image.type != ET_REL:
        for each in (image, debug):
            if each is not None and not len(collected):
                collected.add(each, each.typed(SHT_SYMTAB))
        if not len(collected):
            collected.add(image, image.typed(SHT_DYNSYM))
            mini = _debug_data(image)
            if mini is not None:
                collected.add(mini, mini.typed(SHT_SYMTAB))
        collected.add_named(list(plt_symbols(image)))
    return collected.table()


def _debug_data(image: ElfImage) -> ElfImage | None:
    packed = image.contents(image.section(".gnu_debugdata"))
    if not packed:
        return None
    import lzma

    where = f"{image.source} .gnu_debugdata"
    try:
        data = lzma.LZMADecompressor(memlimit=_MAX_UNPACKER).decompress(packed, _MAX_DEBUG_DATA)
    except lzma.LZMAError as error:
        raise FormatError(image.source, ".gnu_debugdata", str(error)) from None
    return ElfImage.of_bytes(data, where)


class _Strings:
    """String tables as one: offsets into the second continue those into the first, and so on."""

    def __init__(self) -> None:
        self._tables: list[bytes] = []
        self._bases: list[int] = []
        self.nbytes = 0

    def add(self, table: bytes) -> None:
        self._bases.append(self.nbytes)
        self._tables.append(table)
        self.nbytes += len(table)

    def get(self, offset: int) -> bytes:
        """The name at an offset, without the version that .symtab may append ("f@@GLIBC_2.14")."""
        at = bisect_right(self._bases, offset) - 1
        table, start = self._tables[at], offset - self._bases[at]
        end = table.find(b"\0", start)
        name = table[start : end if end >= 0 else len(table)]
        version = name.find(b"@", 1)
        return name if version < 0 or name.endswith(b"@plt") else name[:version]


class _Collector:
    """Columns of symbols from several tables, in the order they are found."""

    def __init__(self) -> None:
        self._starts = array("Q")
        self._sizes = array("Q")
        self._names = array("I")
        self._infos = array("B")
        self._limits: dict[int, int] = {}  # position of a symbol without size -> where it must end
        self._strings = _Strings()

    def __len__(self) -> int:
        return len(self._starts)

    def add(self, image: ElfImage, symbols: Section | None) -> None:
        """All functions of a symbol table section."""
        if symbols is None:
            return
        strings = image.contents(image.linked(symbols))
        code = frozenset(
            index for index, section in enumerate(image.sections) if section.flags & SHF_EXECINSTR
        )
        record = struct.Struct(image.order + ("IBBHQQ" if image.is64 else "IIIBBH"))
        for at in range(0, symbols.size, _BATCH * record.size):
            size = min(_BATCH * record.size, symbols.size - at)
            raw = image.read(symbols.offset + at, size)
            if not raw:  # the section passes the end of the file
                break
            rows = record.iter_unpack(raw[: len(raw) // record.size * record.size])
            self._add_rows(image, _functions(rows if image.is64 else _as64(rows), strings, code))
        self._strings.add(strings)

    def _add_rows(self, image: ElfImage, rows: list[_Row]) -> None:
        if not rows:
            return
        names, infos, _, indexes, starts, sizes = zip(*rows, strict=True)
        if image.machine == _EM_ARM:
            starts = tuple(start & ~1 for start in starts)  # bit 0 says Thumb
        first, shift = len(self._starts), self._strings.nbytes
        self._starts.extend(starts)
        self._sizes.extend(sizes)
        self._names.extend(name + shift for name in names)
        self._infos.extend(infos)
        if 0 in sizes:
            for at, size in enumerate(sizes):
                if not size:
                    self._limits[first + at] = _section_end(image, indexes[at])

    def add_named(self, functions: list[tuple[int, int, bytes]]) -> None:
        """Functions that are in no table: (start, size, name)."""
        offset = self._strings.nbytes
        for start, size, name in functions:
            self._starts.append(start)
            self._sizes.append(size)
            self._names.append(offset)
            self._infos.append(_FUNC)
            offset += len(name) + 1
        self._strings.add(b"".join(name + b"\0" for _, _, name in functions))

    def table(self) -> SymbolTable:
        """What was collected, by address."""
        starts, ends, names = array("Q"), array("Q"), array("I")
        reach = 0  # where the functions with a size end, so far
        open_end = -1  # where the last one must end that has no size and is not closed yet
        for start, indexes in self._by_start():
            if open_end >= 0:
                ends[-1] = min(open_end, start)
                open_end = -1
            for index in indexes:
                size = self._sizes[index]
                if size:
                    end = min(start + size, _TOP)
                    reach = max(reach, end)
                elif start < reach:
                    continue
                else:
                    end = open_end = max(self._limits[index], start)
                starts.append(start)
                ends.append(end)
                names.append(self._names[index])
        return SymbolTable(flatten(starts, ends), starts, names, self._strings)

    def _by_start(self) -> Iterator[tuple[int, list[int]]]:
        """Each start address, ascending, with the symbols there that matter, the best one last."""
        starts = self._starts
        order = [key & _INDEX for key in sorted(map(_key, starts, range(len(starts))))]
        at = 0
        while at < len(order):
            start = starts[order[at]]
            behind = at + 1
            while behind < len(order) and starts[order[behind]] == start:
                behind += 1
            group = order[at:behind]
            yield start, group if len(group) == 1 else self._without_lesser(group)
            at = behind

    def _without_lesser(self, group: list[int]) -> list[int]:
        """Of symbols that start together, the best and any less good one that ends later."""
        kept: list[int] = []
        size = -1
        for index in sorted(group, key=self._preference, reverse=True):
            if self._sizes[index] > size:
                size = self._sizes[index]
                kept.append(index)
        return kept[::-1]

    def _preference(self, index: int) -> tuple[bool, bool, bool, int, int]:
        bind = self._infos[index] >> 4
        name = self._strings.get(self._names[index])
        underscores = len(name) - len(name.lstrip(b"_"))
        return (
            self._sizes[index] > 0,
            bind != _WEAK,
            bind == _GLOBAL,
            -underscores,
            len(name),
        )


_Row = tuple[int, int, int, int, int, int]
"""A symbol in the order of Elf64_Sym: name, info, other, section index, value, size."""


def _key(start: int, index: int) -> int:
    return start << 32 | index


def _as64(rows: Iterable[_Row]) -> Iterator[_Row]:
    for name, value, size, info, other, section in rows:
        yield name, info, other, section, value, size


def _functions(rows: Iterable[_Row], strings: bytes, code: frozenset[int]) -> list[_Row]:
    """The rows that are functions or labels, by the rule at the top."""
    limit = len(strings)
    return [
        row
        for row in rows
        if row[0] < limit
        and strings[row[0]]
        and row[3]
        and (
            row[1] in _FUNCTION_INFO
            or (
                row[1] in _LABEL_INFO
                and row[3] in code
                and row[2] & 3 not in _HIDDEN
                and strings[row[0]] not in _NO_LABEL
            )
        )
    ]


def _section_end(image: ElfImage, index: int) -> int:
    if index >= len(image.sections):
        return 0
    section = image.sections[index]
    return min(section.address + section.size, _TOP)
