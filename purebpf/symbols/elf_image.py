"""The parts of an ELF file that naming its functions needs: sections, segments, build id.

This is a separate walk over the headers, by struct: pyelftools costs 40 ms to import, which a
profiler that names two libraries would spend mostly on that. It reads little, through a function,
so that the file need not be mapped: a mapped file that shrinks kills its reader.

Whatever the bytes, the only exception is `FormatError` (plus any exception of the given `read`).
Layout: elf(5), and the generic ABI for section counts that do not fit (e_shnum 0).
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import cached_property

from purebpf.errors import FormatError
from purebpf.symbols.elf_notes import find_build_id, find_go_build_id
from purebpf.symbols.frame import FileOffset, VirtualOffset
from purebpf.symbols.longest_name import ends_at
from purebpf.tuples import NamedTuple
from purebpf.wire import formats

__all__ = ["ElfImage", "Section", "Segment", "virtual_offset"]

EM_X86_64 = 62
ET_REL = 1
ET_DYN = 3
PT_LOAD, PT_INTERP, PT_NOTE = 1, 3, 4
PF_X = 1
SHT_SYMTAB, SHT_RELA, SHT_NOTE, SHT_NOBITS, SHT_DYNSYM = 2, 4, 7, 8, 11
SHF_ALLOC, SHF_EXECINSTR, SHF_TLS = 2, 4, 0x400

_SHN_XINDEX = 0xFFFF
_MAX_HEADERS = 1 << 16
_MAX_SEGMENTS = 1 << 10
"""Each look-up walks over them; the kernel executes no file with more (load_elf_phdrs)."""
_MAX_NOTES = 1 << 20
"""Bytes of notes, all sections together, in which a build id is looked for."""
_LONGEST_PATH = 4096
_MAX_READ = 1 << 28
"""More than any real symbol table: a file that claims more is not believed."""

CHECKED = 1 << 12
"""Rounds of a loop between two calls of `ElfImage.check`."""

ReadAt = Callable[[int, int], bytes]
"""(offset, size) -> that many bytes of the file, fewer at its end."""


class Section(NamedTuple):
    """A section header, in bytes; `link` is the index of a related section."""

    name: str
    type: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    align: int
    entry_size: int


class Segment(NamedTuple):
    """A program header, in bytes."""

    type: int
    flags: int
    offset: int
    address: int
    file_size: int
    align: int


class _Layout(NamedTuple):
    """Header layouts of one class: ehdr after e_ident, and each header's fields by position."""

    header: str
    section: str
    segment: str
    segment_fields: tuple[int, ...]  # positions of type, flags, offset, vaddr, filesz, align


_LAYOUTS = {
    1: _Layout(
        formats.ELF32_HEADER, formats.ELF32_SECTION, formats.ELF32_SEGMENT, (0, 6, 1, 2, 4, 7)
    ),
    2: _Layout(
        formats.ELF64_HEADER, formats.ELF64_SECTION, formats.ELF64_SEGMENT, (0, 1, 2, 3, 5, 7)
    ),
}


class ElfImage:
    """An ELF file's headers.

    Args:
        read: bytes of the file.
        size: of the file.
        source: the name of the file in errors.
        check: called now and then in long loops; it may raise.

    Attributes:
        is64: ELFCLASS64.
        order: "<" or ">", as struct spells it.
        type, machine: e_type and e_machine.
        segments: all program headers.
        debug: its separate debug file, if somebody opened it for the look-ups of functions.

    Raises:
        FormatError: the headers contradict each other or the file's size.
    """

    def __init__(
        self,
        read: ReadAt,
        size: int,
        source: str = "ELF",
        check: Callable[[], object] = lambda: None,
    ) -> None:
        self.check = check
        self._read = read
        self._size = size
        self.source = source
        self.debug: ElfImage | None = None
        ident = self.read(0, 16)
        if len(ident) < 16 or ident[:4] != b"\x7fELF":
            raise self._error("header", "not an ELF file: wrong magic")
        layout = _LAYOUTS.get(ident[4])
        if layout is None or ident[5] not in (1, 2):
            raise self._error("header", f"class {ident[4]}, data encoding {ident[5]}")
        self.is64 = ident[4] == 2
        self.order = "<" if ident[5] == 1 else ">"
        self._layout = layout
        header = self._unpack(layout.header, 16)
        self.type, self.machine, self.entry = header[0], header[1], header[3]
        self._section_headers = header[5], header[10:]
        assert self.sections is not None  # read now, as they may contradict each other
        self.segments: list[Segment] = self._segments(header[4], header[8], header[9])

    @cached_property
    def sections(self) -> list[Section]:
        """All section headers; `[]` when they were removed."""
        return self._sections(*self._section_headers)

    def rest(self) -> None:
        """Drop the section headers, most of its memory; they are read again when asked for."""
        self.__dict__.pop("sections", None)

    @classmethod
    def of_bytes(cls, data: bytes, source: str = "ELF") -> ElfImage:
        """An image in memory."""
        return cls(lambda offset, size: data[offset : offset + size], len(data), source)

    def read(self, offset: int, size: int) -> bytes:
        """`size` bytes of the file, fewer where it ends.

        Raises:
            FormatError: for an amount no real file needs.
        """
        size = self._accept(offset, size)
        return self._read(offset, size) if size else b""

    def _accept(self, offset: int, size: int) -> int:
        """Return how much of a section is in the file."""
        size = max(0, min(size, self._size - offset))
        if size > _MAX_READ:
            raise self._error(f"offset {offset:#x}", f"{size} bytes are more than plausible")
        return size

    def section(self, name: str) -> Section | None:
        """The first section of that name."""
        return next((section for section in self.sections if section.name == name), None)

    def section_of_type(self, kind: int) -> Section | None:
        """The first section of that type (SHT_*)."""
        return next((section for section in self.sections if section.type == kind), None)

    def contents(self, section: Section | None) -> bytes:
        """A section's bytes; none for one that takes no room in the file, or for None."""
        if section is None or section.type == SHT_NOBITS:
            return b""
        return self.read(section.offset, section.size)

    def size_of(self, section: Section | None) -> int:
        """Return the number of bytes that `contents` gives.

        Raises:
            FormatError: for an amount no real file needs.
        """
        if section is None or section.type == SHT_NOBITS:
            return 0
        return self._accept(section.offset, section.size)

    def linked_section(self, section: Section) -> Section | None:
        """The section that `section.link` points at: a symbol table's strings."""
        return self.sections[section.link] if section.link < len(self.sections) else None

    @cached_property
    def build_id(self) -> str:
        """NT_GNU_BUILD_ID in hex, or "": also when the first MiB of notes does not have it."""
        return self._find_note(find_build_id).hex()

    @cached_property
    def go_build_id(self) -> str:
        """The build ID of Go's linker, or "": the same."""
        return self._find_note(find_go_build_id).decode("ascii", "replace")

    def _find_note(self, find: Callable[[bytes, int, str], bytes]) -> bytes:
        """Return the first description that `find` finds in the notes of the file, or b""."""
        places = [(s.offset, s.size, s.align) for s in self.sections if s.type == SHT_NOTE]
        if not places:
            places = [(s.offset, s.file_size, s.align) for s in self.segments if s.type == PT_NOTE]
        left = _MAX_NOTES
        for offset, size, align in places:
            data = self.read(offset, min(size, left))
            left -= len(data)
            description = find(data, align, self.order)
            if description:
                return description
        return b""

    @property
    def interpreter(self) -> str:
        """The path of the dynamic linker that a program names; "" for others."""
        for segment in self.segments:
            if segment.type == PT_INTERP:
                path = self.read(segment.offset, min(segment.file_size, _LONGEST_PATH))
                return path.partition(b"\0")[0].decode("utf-8", "surrogateescape")
        return ""

    @cached_property
    def debug_link(self) -> tuple[str, int] | None:
        """.gnu_debuglink: the name of the file with the symbols, and its CRC-32."""
        data = self.contents(self.section(".gnu_debuglink"))
        name, end, _ = data.partition(b"\0")
        at = (len(name) + 4) & ~3
        if not name or not end or b"/" in name or len(data) < at + 4:
            return None
        crc: int = struct.unpack_from(f"{self.order}I", data, at)[0]
        return name.decode("utf-8", "surrogateescape"), crc

    def _sections(self, offset: int, counts: tuple[int, ...]) -> list[Section]:
        entry_size, count, names_at = counts
        if not offset:
            return []
        record = struct.Struct(self.order + self._layout.section)
        if entry_size != record.size:
            raise self._error("section headers", f"{entry_size} bytes each")
        if count == 0 or names_at == _SHN_XINDEX:
            first = self._unpack(self._layout.section, offset)
            count, names_at = count or first[5], first[6] if names_at == _SHN_XINDEX else names_at
        if count > _MAX_HEADERS:
            raise self._error("section headers", f"{count} of them")
        raw = self.read(offset, count * record.size)
        if len(raw) < count * record.size:
            raise self._error("section headers", "run past the end of the file")
        rows = list(record.iter_unpack(raw))
        names = b""
        if names_at < count and rows[names_at][1] != SHT_NOBITS:
            names = self.read(rows[names_at][4], rows[names_at][5])
        return [Section(_text(names, row[0]), *row[1:7], *row[8:10]) for row in rows]

    def _segments(self, offset: int, entry_size: int, count: int) -> list[Segment]:
        record = struct.Struct(self.order + self._layout.segment)
        if not offset or not count:
            return []
        if entry_size != record.size or count > _MAX_SEGMENTS:
            raise self._error("program headers", f"{count} of {entry_size} bytes each")
        raw = self.read(offset, count * record.size)
        if len(raw) < count * record.size:
            raise self._error("program headers", "run past the end of the file")
        fields = self._layout.segment_fields
        return [Segment(*(row[field] for field in fields)) for row in record.iter_unpack(raw)]

    def _unpack(self, layout: str, offset: int) -> tuple[int, ...]:
        record = struct.Struct(self.order + layout)
        raw = self.read(offset, record.size)
        if len(raw) < record.size:
            raise self._error(f"offset {offset:#x}", "runs past the end of the file")
        return record.unpack(raw)

    def _error(self, where: str, problem: str) -> FormatError:
        return FormatError(self.source, where, problem)


def virtual_offset(segments: list[Segment], offset: FileOffset) -> VirtualOffset | None:
    """Return the address of a byte of the file in the segments; None if they do not load it.

    A page can belong to two segments, so an executable one is preferred.
    """
    for wanted in (PF_X, 0):
        for segment in segments:
            inside = 0 <= offset - segment.offset < segment.file_size
            if segment.type == PT_LOAD and inside and segment.flags & wanted == wanted:
                return VirtualOffset(offset - segment.offset + segment.address)
    return None


def code_segment(segments: list[Segment], offset: FileOffset) -> Segment | None:
    """The executable segment of a byte of the file; None also where others have a part of it."""
    code = [segment for segment in segments if segment.type == PT_LOAD and segment.flags & PF_X]
    for one in code:
        begin, end = one.offset, one.offset + one.file_size
        if begin <= offset < end:
            shared = [at for at in code if at.offset < end and begin < at.offset + at.file_size]
            return one if shared == [one] else None
    return None


def _text(strings: bytes, offset: int) -> str:
    return strings[offset : ends_at(strings, offset)].decode("utf-8", "replace")
