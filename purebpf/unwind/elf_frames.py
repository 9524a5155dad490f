"""The sections of an ELF file that hold call frame information.

Takes the headers as `purebpf.symbols.elf_image.ElfImage` has them, by their shape: this room and
that one do not know each other.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Sequence
from typing import Protocol

from purebpf.tuples import NamedTuple
from purebpf.unwind.encoded import Bases
from purebpf.unwind.entries import FrameSection
from purebpf.unwind.fde_index import FdeIndex, frame_address, read_search_table

__all__ = [
    "ElfFile",
    "Frames",
    "Text",
    "debug_frame",
    "eh_frame",
    "load_bias",
    "read_address",
    "text_of",
]

_PT_LOAD, _PT_GNU_EH_FRAME = 1, 0x6474E550
_PF_X = 1
_SHT_NOBITS, _SHF_COMPRESSED = 8, 0x800
_ELFCOMPRESS_ZLIB = 1
_LARGEST = 1 << 27
"""Bytes of a section. The largest of Debian 12, libclang-cpp's, is 7 MB."""
_LARGEST_WHOLE = 1 << 25
"""Bytes of a section that has to be read from end to end, as it has no table; and of a table."""
_KEPT = 1 << 19
"""Bytes of a section that are read once and kept; larger ones are read in pieces."""
_PAGE = 4096
_COMPRESSED = {4: struct.Struct("<3I"), 8: struct.Struct("<I4x2Q")}
"""struct Elf32_Chdr and Elf64_Chdr, by the bytes of a word."""
_WORDS = {4: struct.Struct("<I"), 8: struct.Struct("<Q")}


class _Section(Protocol):
    @property
    def type(self) -> int: ...
    @property
    def flags(self) -> int: ...
    @property
    def address(self) -> int: ...
    @property
    def offset(self) -> int: ...
    @property
    def size(self) -> int: ...


class Segment(Protocol):
    @property
    def type(self) -> int: ...
    @property
    def flags(self) -> int: ...
    @property
    def offset(self) -> int: ...
    @property
    def address(self) -> int: ...
    @property
    def file_size(self) -> int: ...


class ElfFile(Protocol):
    """The headers of an ELF file, and a way to read its bytes."""

    is64: bool
    order: str
    machine: int
    entry: int

    @property
    def segments(self) -> Sequence[Segment]:
        """All program headers."""

    def section(self, name: str, /) -> _Section | None:
        """The first section of that name."""

    def read(self, offset: int, size: int, /) -> bytes:
        """`size` bytes of the file, fewer where it ends."""


class Text(NamedTuple):
    """The addresses, in the file, that its code lies between."""

    start: int
    end: int


class Frames(NamedTuple):
    """A section of entries, and its table of FDEs where the file has one."""

    section: FrameSection
    table: FdeIndex | None


def text_of(image: ElfFile) -> Text:
    """From the first to the last executable segment; empty where there is none."""
    code = [s for s in image.segments if s.type == _PT_LOAD and s.flags & _PF_X and s.file_size]
    if not code:
        return Text(0, 0)
    return Text(min(s.address for s in code), max(s.address + s.file_size for s in code))


def only_code(segments: Sequence[Segment]) -> Segment | None:
    """Return the only executable segment among program headers; None if there are several."""
    code = [each for each in segments if each.type == _PT_LOAD and each.flags & _PF_X]
    return code[0] if len(code) == 1 else None


def load_bias(segments: Sequence[Segment], start: int, offset: int) -> int | None:
    """Return the bias: subtract it from an address in an executable mapping to get the file's own
    address.

    Args:
        segments: the program headers.
        start: address of the mapping.
        offset: the byte of the file that is mapped there.

    Returns:
        the difference; None if no executable segment is mapped so.
    """
    for segment in segments:
        if segment.type == _PT_LOAD and segment.flags & _PF_X:
            first = segment.offset & -_PAGE
            if first <= offset < segment.offset + segment.file_size:
                return start - (segment.address + offset - segment.offset)
    return None


def read_address(image: ElfFile, address: int, size: int) -> bytes:
    """Bytes of the file by the address that it loads them at; fewer where the segment ends."""
    for segment in image.segments:
        inside = address - segment.address
        if segment.type == _PT_LOAD and 0 <= inside < segment.file_size:
            return image.read(segment.offset + inside, min(size, segment.file_size - inside))
    return b""


def eh_frame(image: ElfFile) -> Frames | None:
    """`.eh_frame` by the section headers, or else by the segment PT_GNU_EH_FRAME."""
    header_address, header = _search_table(image)
    eh_section = image.section(".eh_frame")
    if eh_section is not None and eh_section.type != _SHT_NOBITS and eh_section.size:
        size, address, ends = eh_section.size, eh_section.address, False
        read = _reader(image, eh_section.offset, size)
    else:
        at = frame_address(header, header_address)
        segment = next((s for s in image.segments if s.type == _PT_LOAD and _holds(s, at)), None)
        if at is None or segment is None:
            return None
        size, address, ends = segment.address + segment.file_size - at, at, True
        read = _reader(image, segment.offset + at - segment.address, size)
    if size > _LARGEST:
        return None
    got = image.section(".got.plt") or image.section(".got")
    text = image.section(".text")
    bases = Bases(text.address if text else None, got.address if got else None, None, _peek(image))
    word = _word_size(image)
    section = FrameSection(read, size, address, is_terminated=ends, word=word, bases=bases)
    table = read_search_table(header, header_address, address)
    return Frames(section, table) if table or size <= _LARGEST_WHOLE else None


def debug_frame(image: ElfFile) -> Frames | None:
    """`.debug_frame`, which may be compressed."""
    section = image.section(".debug_frame")
    if section is None or section.type == _SHT_NOBITS or not 0 < section.size <= _LARGEST_WHOLE:
        return None
    word = _word_size(image)
    if not section.flags & _SHF_COMPRESSED:
        read, size = _reader(image, section.offset, section.size), section.size
        return Frames(FrameSection(read, size, 0, is_debug=True, word=word), None)
    data = image.read(section.offset, section.size)
    header = _COMPRESSED[word]
    if len(data) < header.size:
        return None
    kind, size, _ = header.unpack_from(data)
    if kind != _ELFCOMPRESS_ZLIB or size > _LARGEST_WHOLE:
        return None
    try:
        data = zlib.decompressobj().decompress(data[header.size :], size)
    except zlib.error:
        return None
    size = len(data)
    unpacked = FrameSection(lambda at, n: data[at : at + n], size, 0, is_debug=True, word=word)
    return Frames(unpacked, None)


def _search_table(image: ElfFile) -> tuple[int, bytes]:
    """Address and bytes of .eh_frame_hdr."""
    for segment in image.segments:
        if segment.type == _PT_GNU_EH_FRAME and segment.file_size <= _LARGEST_WHOLE:
            return segment.address, image.read(segment.offset, segment.file_size)
    section = image.section(".eh_frame_hdr")
    if section is None or section.type == _SHT_NOBITS or section.size > _LARGEST_WHOLE:
        return 0, b""
    return section.address, image.read(section.offset, section.size)


def _reader(image: ElfFile, offset: int, size: int) -> Callable[[int, int], bytes]:
    """Reads a part of the file by offsets in that part. Small parts are read once, when needed."""
    if size > _KEPT:
        return lambda at, wanted: image.read(offset + at, max(0, min(wanted, size - at)))
    kept: list[bytes] = []

    def read(at: int, wanted: int) -> bytes:
        if not kept:
            kept.append(image.read(offset, size))
        return kept[0][at : at + wanted]

    return read


def _word_size(image: ElfFile) -> int:
    return 8 if image.is64 else 4


def _peek(image: ElfFile) -> Callable[[int], int | None]:
    layout = _WORDS[_word_size(image)]

    def peek(address: int) -> int | None:
        data = read_address(image, address, layout.size)
        return int(layout.unpack(data)[0]) if len(data) == layout.size else None

    return peek


def _holds(segment: Segment, address: int | None) -> bool:
    return address is not None and 0 <= address - segment.address < segment.file_size
