"""The ELF container: header, sections and symbols of a BPF object, checked before use.

Every number that comes from the file is compared with the file before anything is read or
allocated: sections lie inside the file and do not share bytes, so that whatever is copied from
them is not larger than the file itself.
Source: the System V ABI, gabi 4.2, "Object Files". Headers are read by struct, since pyelftools
takes 20 ms to import; pyelftools names the fields of refused or damaged files, and a test compares
every header: docs/design/0010-elf-and-layouts.md.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from purebpf.errors import FormatError
from purebpf.tuples import NamedTuple
from purebpf.wire import formats

SHF_EXECINSTR = 4
SHN_UNDEF = 0
SHN_LORESERVE = 0xFF00
SHN_XINDEX = 0xFFFF
STT_OBJECT = 1
STT_FUNC = 2
STT_SECTION = 3
STB_LOCAL = 0
STB_GLOBAL = 1
STB_WEAK = 2
STV_INTERNAL = 1
STV_HIDDEN = 2
_HIDDEN = (STV_INTERNAL, STV_HIDDEN)

HEADER_SIZE = 64
_MAGIC = b"\x7fELF"
ET_REL = 1
_RELOCATABLE = (b"\x01\0", b"\0\x01")
_SECTION_HEADER_SIZE = 64
_SYMBOL_SIZE = 24
_NAME_LIMIT = 1 << 16
_NAMES_LIMIT = 1 << 24
"""Bytes of one name, and of all: symbols may share a string, and each has a copy of it."""
_NOBITS_LIMIT = 1 << 28
"""Bytes of .bss in one object: no data map of this size was seen, and no host should be hurt."""
_IDENT_SIZE = 16
_EM_NONE, _EM_BPF = 0, 247
_SECTION_TYPES = {
    0: "SHT_NULL",
    1: "SHT_PROGBITS",
    2: "SHT_SYMTAB",
    3: "SHT_STRTAB",
    4: "SHT_RELA",
    8: "SHT_NOBITS",
    9: "SHT_REL",
}
_STRTAB, _NOBITS = 3, 8
_TYPE, _OFFSET, _SIZE, _LINK = 1, 4, 5, 6
"""Places in a section header."""
_WITHOUT_BYTES = frozenset({"SHT_NOBITS", "SHT_NULL"})


class _Header(NamedTuple):
    """The fields of an ELF header that matter here."""

    type: int
    machine: int
    sections: int
    section_size: int
    section_count: int
    names: int


class Section(NamedTuple):
    """A section header; `type` is spelled as in elf.h, or a number when nothing here needs it."""

    number: int
    name: str
    type: str | int
    flags: int
    offset: int
    size: int
    link: int
    info: int
    entsize: int

    @property
    def executable(self) -> bool:
        """True if it holds code."""
        return self.type == "SHT_PROGBITS" and bool(self.flags & SHF_EXECINSTR) and self.size > 0


class Symbol(NamedTuple):
    """A symbol; `value` is a byte offset in section number `section` (0: undefined)."""

    name: str
    type: int
    binding: int
    visibility: int
    section: int
    value: int
    size: int

    @property
    def weak(self) -> bool:
        """True if the symbol is weak: the object can do without it, or prefers another of
        that name.
        """
        return self.binding == STB_WEAK

    @property
    def hidden(self) -> bool:
        """True if other objects cannot see it, though it is global or weak."""
        return self.visibility in _HIDDEN


def may_be_object(header: bytes) -> bool:
    """Return True if a file that begins with these HEADER_SIZE bytes may be an object.

    Where it is not, `ElfObject` of the header alone says why.
    """
    return header[:4] == _MAGIC and header[16:18] in _RELOCATABLE


class ElfObject:
    """The sections and symbols of a relocatable BPF object.

    Raises:
        FormatError: the bytes are not an ELF64 relocatable object for BPF, or are inconsistent.
    """

    __slots__ = ("_by_name", "_data", "byteorder", "prefix", "sections", "source", "symbols")

    def __init__(self, data: bytes, source: str) -> None:
        self._data = memoryview(data)
        self.source = source
        self.byteorder = self._identify()
        self.prefix = "<" if self.byteorder == "little" else ">"
        self.sections = self._read_sections()
        self._by_name = {section.name: section for section in reversed(self.sections)}
        self.symbols = self._read_symbols()

    def error(self, where: str, problem: str) -> FormatError:
        """A FormatError about this object, to raise."""
        return FormatError(self.source, where, problem)

    def contents(self, section: Section) -> memoryview:
        """The bytes of a section in the file: none for SHT_NOBITS."""
        if section.type in _WITHOUT_BYTES:
            return self._data[:0]
        return self._data[section.offset : section.offset + section.size]

    def digest(self) -> str:
        """The SHA-1 of the file in hexadecimal: iproute2's name for an object."""
        from hashlib import sha1

        return sha1(self._data, usedforsecurity=False).hexdigest()

    def find(self, name: str) -> Section | None:
        """The first section of that name."""
        return self._by_name.get(name)

    def _identify(self) -> str:
        """Check e_ident, and give the byte order."""
        data = self._data
        if bytes(data[:4]) != _MAGIC:
            from purebpf.elf.not_elf import describe

            raise self.error("ELF header", describe(bytes(data[:HEADER_SIZE]), self.source))
        if len(data) < HEADER_SIZE:
            raise self.error("ELF header", f"truncated: {len(data)} bytes of {HEADER_SIZE}")
        if data[4] != 2:
            raise self.error("ELF header", f"class {data[4]}; BPF objects are 64-bit (2)")
        if data[5] not in {1, 2}:
            raise self.error("ELF header", f"unknown byte order {data[5]}")
        if data[6] != 1:
            raise self.error("ELF header", f"unknown ELF version {data[6]}")
        return "little" if data[5] == 1 else "big"

    def _read_sections(self) -> tuple[Section, ...]:
        header = self._read_header()
        start, count = header.sections, header.section_count
        layout = struct.Struct(self.prefix + formats.ELF64_SECTION)
        if count == 0 and start != 0:
            count = layout.unpack(self._header_bytes(start, 0))[5]
        if count == 0:
            raise self.error("ELF header", "no sections")
        self._header_bytes(start, count - 1)
        size = count * _SECTION_HEADER_SIZE
        raw = list(layout.iter_unpack(self._data[start : start + size]))
        self._check_bounds(raw)
        names_index = header.names
        if names_index == SHN_XINDEX:
            names_index = raw[0][_LINK]
        names = self._read_names(raw, names_index)
        return tuple(
            [
                Section(
                    number,
                    self._name(names, name, "section", number),
                    _SECTION_TYPES.get(kind, kind),
                    flags,
                    at,
                    size if kind else 0,
                    link,
                    info,
                    entry_size,
                )
                for number, (name, kind, flags, _, at, size, link, info, _, entry_size) in (
                    enumerate(raw)
                )
            ]
        )

    def _read_header(self) -> _Header:
        """The header of a relocatable object for BPF."""
        fields = struct.unpack_from(self.prefix + formats.ELF64_HEADER, self._data, _IDENT_SIZE)
        kind, machine, _, _, _, start, _, _, _, _, size, count, names = fields
        header = _Header(kind, machine, start, size, count, names)
        if header.type != ET_REL:
            name = _name_of("ENUM_E_TYPE", header.type)
            raise self.error("ELF header", f"type {name}, not ET_REL as clang -c writes it")
        if header.machine not in {_EM_BPF, _EM_NONE}:
            name = _name_of("ENUM_E_MACHINE", header.machine)
            raise self.error("ELF header", f"machine {name}, not EM_BPF")
        if header.section_size != _SECTION_HEADER_SIZE:
            raise self.error("ELF header", f"section headers of {header.section_size} bytes")
        return header

    def _header_bytes(self, start: int, index: int) -> bytes:
        offset = start + index * _SECTION_HEADER_SIZE
        if offset + _SECTION_HEADER_SIZE > len(self._data):
            raise self.error(
                "section headers", f"number {index} at {offset} is beyond the end of the file"
            )
        return bytes(self._data[offset : offset + _SECTION_HEADER_SIZE])

    def _check_bounds(self, headers: Sequence[tuple[int, ...]]) -> None:
        total = nobits = 0
        end = len(self._data)
        for number, (_, kind, _, _, offset, size, _, _, _, _) in enumerate(headers):
            if kind == _NOBITS:
                nobits += size
            elif kind:
                if offset + size > end:
                    raise self.error(
                        _describe_section(bytes(self._data), number),
                        f"{size} bytes at {offset} do not fit in the file ({end} bytes)",
                    )
                total += size
        if total > end:
            raise self.error("section headers", "sections overlap: together larger than the file")
        if nobits > _NOBITS_LIMIT:
            raise self.error("section headers", f"{nobits} bytes of .bss: the limit is 256 MiB")

    def _read_names(self, headers: Sequence[tuple[int, ...]], index: int) -> bytes:
        """The string table that the section headers' names are in."""
        if not 0 < index < len(headers) or headers[index][_TYPE] != _STRTAB:
            raise self.error("section names", f"section {index} is not a string table")
        offset, size = headers[index][_OFFSET], headers[index][_SIZE]
        return bytes(self._data[offset : offset + size])

    def _strings(self, index: int, what: str) -> bytes:
        if not 0 < index < len(self.sections) or self.sections[index].type != "SHT_STRTAB":
            raise self.error(what, f"section {index} is not a string table")
        return bytes(self.contents(self.sections[index]))

    def _name(self, strings: bytes, offset: int, what: str, number: int) -> str:
        end = strings.find(b"\0", offset, offset + _NAME_LIMIT)
        if end < 0:
            problem = f"no name of less than {_NAME_LIMIT} bytes at {offset} of the string table"
            raise self.error(f"{what} {number}", problem)
        return strings[offset:end].decode(errors="backslashreplace")

    def _read_symbols(self) -> tuple[Symbol, ...]:
        tables = [section for section in self.sections if section.type == "SHT_SYMTAB"]
        if len(tables) != 1:
            problem = "more than one" if tables else "none (stripped with more than -g?)"
            raise self.error("symbol table", problem)
        table = tables[0]
        if table.entsize != _SYMBOL_SIZE or table.size % _SYMBOL_SIZE:
            raise self.error(
                "symbol table", f"{table.size} bytes of {table.entsize}-byte symbols, not 24"
            )
        strings = self._strings(table.link, "symbol names")
        symbols = []
        room = _NAMES_LIMIT
        entries = struct.iter_unpack(self.prefix + formats.ELF64_SYMBOL, self.contents(table))
        count = len(self.sections)
        for index, (name, info, other, section, value, size) in enumerate(entries):
            if count <= section < SHN_LORESERVE:
                raise self.error(f"symbol {index}", f"in section {section}, which does not exist")
            text = self._name(strings, name, "symbol", index) if name else ""
            if (room := room - len(text)) < 0:
                raise self.error("symbol table", f"more than {_NAMES_LIMIT} bytes of names")
            symbols.append(Symbol(text, info & 15, info >> 4, other & 3, section, value, size))
        return tuple(symbols)


def _name_of(enum: str, value: int) -> str:
    """A number of the header as elf.h spells it, or the number, for messages."""
    from elftools.elf import enums

    names: dict[int, str] = {number: name for name, number in vars(enums)[enum].items()}
    return names.get(value, str(value))


def _describe_section(data: bytes, number: int) -> str:
    """A section of a damaged file with its name and type, as far as pyelftools can read them."""
    from io import BytesIO

    from elftools.elf.descriptions import describe_sh_type
    from elftools.elf.elffile import ELFFile

    try:
        section = ELFFile(BytesIO(data)).get_section(number)
        kind = describe_sh_type(section["sh_type"])
    except Exception:  # noqa: BLE001 - damaged bytes fail anywhere in pyelftools
        return f"section {number}"
    return f"section {number} ({section.name or 'no name'}, {kind})"
