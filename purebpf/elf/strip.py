"""Removes DWARF from an object, as `llvm-strip -g` does, without LLVM.

Programs are loaded by their code, symbols, BTF and .BTF.ext; clang -g writes fifteen times as much
for debuggers. Sections named .debug_*, their relocations, the tables for the linker
(.llvm_addrsig) and the symbols of these go; the rest keeps its order.
"""

from __future__ import annotations

import struct

from purebpf.elf.container import HEADER_SIZE, SHN_LORESERVE, SHN_XINDEX, ElfObject
from purebpf.tuples import NamedTuple
from purebpf.wire import formats

__all__ = ["strip_debug"]

_IDENT_SIZE = 16
_SHT_SYMTAB, _SHT_STRTAB, _SHT_RELA, _SHT_NOBITS, _SHT_REL = 2, 3, 4, 8, 9
_STT_FILE = 4
_STB_LOCAL = 0
_DEBUG = (".debug_", ".zdebug_", ".llvm_addrsig", ".gdb_index")
_SYMBOL_NUMBER_AT = 32


class _Header(NamedTuple):
    """A section header as in the file."""

    name: int
    type: int
    flags: int
    addr: int
    offset: int
    size: int
    link: int
    info: int
    addralign: int
    entsize: int


def strip_debug(data: bytes, source: str = "object") -> bytes:
    """Return the object without the sections that only debuggers read.

    Args:
        data: a relocatable BPF object, of either byte order.
        source: its name, for errors.

    Raises:
        FormatError: it is not such an object; or a remaining section refers to a removed one.
    """
    return _Strip(ElfObject(data, source), data).write()


class _Strip:
    """One object: `_sections` and `_symbols` map old numbers to new ones."""

    def __init__(self, elf: ElfObject, data: bytes) -> None:
        self._elf = elf
        self._data = data
        self._header = list(
            struct.unpack_from(elf.prefix + formats.ELF64_HEADER, data, _IDENT_SIZE)
        )
        start, count = self._header[5], len(elf.sections)
        layout = struct.Struct(elf.prefix + formats.ELF64_SECTION)
        raw = layout.iter_unpack(data[start : start + count * layout.size])
        self._old = [_Header(*fields) for fields in raw]
        self._kept = [number for number in range(count) if not self._is_debug(number)]
        self._sections = {number: new for new, number in enumerate(self._kept)}
        self._symbols: dict[int, int] = {}
        self._strings = bytearray(1)
        self._offsets = {"": 0}

    def write(self) -> bytes:
        """The bytes of the new file."""
        symbols = self._rewrite_symbols()
        names = [self._offset_of(self._elf.sections[number].name) for number in self._kept]
        out = bytearray(HEADER_SIZE)
        headers = []
        for number, name in zip(self._kept, names, strict=True):
            header = self._old[number]._replace(name=name)
            contents = self._contents(number, symbols)
            out += bytes(-len(out) % max(header.addralign, 1))
            size = header.size if header.type == _SHT_NOBITS else len(contents)
            headers.append(self._renumber(header)._replace(offset=len(out) if number else 0))
            headers[-1] = headers[-1]._replace(size=size if number else 0)
            out += contents
        out += bytes(-len(out) % 8)
        self._header[5], self._header[11] = len(out), len(headers)
        self._header[12] = self._sections[self._names_section()]
        for header in headers:
            out += struct.pack(self._elf.prefix + formats.ELF64_SECTION, *header)
        out[:_IDENT_SIZE] = self._data[:_IDENT_SIZE]
        struct.pack_into(self._elf.prefix + formats.ELF64_HEADER, out, _IDENT_SIZE, *self._header)
        return bytes(out)

    def _is_debug(self, number: int) -> bool:
        header = self._old[number]
        if header.type in (_SHT_REL, _SHT_RELA) and header.info < len(self._old):
            return self._elf.sections[header.info].name.startswith(_DEBUG)
        return self._elf.sections[number].name.startswith(_DEBUG)

    def _names_section(self) -> int:
        number = self._header[12]
        return self._old[0].link if number == SHN_XINDEX else int(number)

    def _offset_of(self, name: str) -> int:
        """Return a name's offset in the new string table, which symbols and sections share."""
        if name not in self._offsets:
            self._offsets[name] = len(self._strings)
            self._strings += name.encode() + b"\0"
        return self._offsets[name]

    def _rewrite_symbols(self) -> bytes:
        """Return the symbol table without symbols of removed sections, and of file names."""
        layout = struct.Struct(self._elf.prefix + formats.ELF64_SYMBOL)
        entries: list[bytes] = []
        for number, symbol in enumerate(self._elf.symbols):
            section = symbol.section
            if number and (symbol.type == _STT_FILE or self._goes(section)):
                continue
            self._symbols[number] = len(entries)
            info = symbol.binding << 4 | symbol.type
            section = self._sections.get(section, section)
            name = self._offset_of(symbol.name)
            entries.append(
                layout.pack(name, info, symbol.visibility, section, symbol.value, symbol.size)
            )
        return b"".join(entries)

    def _goes(self, section: int) -> bool:
        return 0 < section < SHN_LORESERVE and section not in self._sections

    def _contents(self, number: int, symbols: bytes) -> bytes:
        header = self._old[number]
        contents = bytes(self._elf.contents(self._elf.sections[number]))
        if header.type == _SHT_SYMTAB:
            return symbols
        if header.type == _SHT_STRTAB:
            return bytes(self._strings)
        if header.type in (_SHT_REL, _SHT_RELA):
            return self._rewrite_relocations(number, contents)
        return contents

    def _rewrite_relocations(self, number: int, contents: bytes) -> bytes:
        """Relocations with the new numbers of their symbols: the upper half of r_info."""
        addend = "q" if self._old[number].type == _SHT_RELA else ""
        layout = struct.Struct(f"{self._elf.prefix}QQ{addend}")
        out = bytearray()
        whole = len(contents) - len(contents) % layout.size
        for offset, info, *rest in layout.iter_unpack(contents[:whole]):
            symbol = self._symbols.get(info >> _SYMBOL_NUMBER_AT)
            if symbol is None:
                name = self._elf.sections[number].name
                raise self._elf.error(name, f"the entry at {offset} refers to debug information")
            kind = info & 0xFFFFFFFF
            out += layout.pack(offset, symbol << _SYMBOL_NUMBER_AT | kind, *rest)
        return bytes(out)

    def _renumber(self, header: _Header) -> _Header:
        """A header with the new numbers of the sections and symbols that it names."""
        link = self._sections.get(header.link, 0)
        info = header.info
        if header.type in (_SHT_REL, _SHT_RELA):
            info = self._sections[info]
        elif header.type == _SHT_SYMTAB:
            info = sum(
                symbol.binding == _STB_LOCAL
                for number, symbol in enumerate(self._elf.symbols)
                if number in self._symbols
            )
        return header._replace(link=link, info=info)
