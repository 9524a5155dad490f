"""A symbol table as a file that is read by slices, as a cache stores it.

    header    magic (with the byte order), rows, entries, bytes of strings, regions, CRC-32 of these
    columns   keys (u64) of the rows; sizes (u64), names (u32) and ranks (u8) of the entries; each
              padded to 8 bytes
    highs     u64, one for each BLOCK of rows
    regions   u64 start and end of each
    strings   the names, NUL behind each

It has the byte order of the machine that wrote it, and is of no use to another.
"""

from __future__ import annotations

import struct
import sys
from array import array
from collections.abc import Callable, Iterator
from typing import Any
from zlib import crc32

from purebpf.errors import FormatError
from purebpf.symbols.longest_name import LONGEST_NAME
from purebpf.symbols.symbol_table import BLOCK, Columns, SymbolTable

__all__ = ["fits", "open_table", "pieces"]

_MAGIC = b"purebpf symbols2" + (b"<" if sys.byteorder == "little" else b">")
_HEADER = struct.Struct("=17s7xIIQII")
_CODES = "QQIB"
_PAGE = 1 << 13
_KEEP_PAGES = 128
_MAX_REGIONS = 1 << 16

_TOP = (1 << 64) - 1

ReadAt = Callable[[int, int], bytes]


def fits(table: SymbolTable) -> bool:
    """Return True if the table can be stored: one with addresses above 128 GiB cannot."""
    return isinstance(table.columns.keys, array)


def pieces(table: SymbolTable) -> Iterator[bytes]:
    """The contents of the file, one piece after the other.

    Args:
        table: one that is in memory, as `read_symbols` makes it, and `fits`.
    """
    columns = table.columns
    tables: list[bytes] = getattr(table.strings, "tables", [])
    regions = array("Q", (edge for region in columns.regions for edge in region))
    sizes = len(table), len(columns.names), sum(map(len, tables)), len(columns.regions)
    yield _header(*sizes)
    for column in columns[: len(_CODES)]:
        data = bytes(column) if isinstance(column, array | bytearray) else b""
        yield data
        yield bytes(-len(data) % 8)
    blocks = range(-(-len(table) // BLOCK))
    yield array("Q", [min(table.high(block), _TOP) for block in blocks]).tobytes()
    yield regions.tobytes()
    yield from tables


def open_table(read: ReadAt, size: int, source: str) -> SymbolTable:
    """Open the table in a file; it reads little now, and more when needed.

    Args:
        read: (offset, size) -> those bytes of the file.
        size: the file's, in bytes.
        source: its name in errors.

    Raises:
        FormatError: it is another kind of file, of another version or machine, or truncated. `find`
            of the table raises it as well, and any exception of `read`, if the file is changed
            later.
    """
    raw = read(0, _HEADER.size)
    if len(raw) < _HEADER.size:
        raise FormatError(source, "header", "truncated")
    _, rows, entries, strings, regions, _ = _HEADER.unpack(raw)
    if raw != _header(rows, entries, strings, regions):
        raise FormatError(source, "header", "not a symbol table of this version")
    pages = _Pages(read, source)
    at = _HEADER.size
    columns = []
    for code, length in zip(_CODES, (rows, entries, entries, entries), strict=True):
        columns.append(_Column(pages, at, length, code))
        width = array(code).itemsize
        at += length * width + -length * width % 8
    blocks = -(-rows // BLOCK)
    end = at + 8 * blocks + 16 * regions + strings
    if end != size or regions > _MAX_REGIONS:
        raise FormatError(source, "size", f"{size} bytes, expected {end}")
    edges = array("Q", pages.exactly(at, 8 * blocks + 16 * regions))
    highs = edges[:blocks]
    bounds = list(zip(edges[blocks::2], edges[blocks + 1 :: 2], strict=True))
    names = _Names(pages, size - strings, size)
    keys, sizes, offsets, ranks = columns
    table = Columns(keys, sizes, offsets, ranks, bounds)
    in_memory = 64 * (len(highs) + len(bounds))
    return SymbolTable(table, names, in_memory=in_memory, highs=highs, pages=pages)


def _header(rows: int, entries: int, strings: int, regions: int) -> bytes:
    crc = crc32(struct.pack("=IIQI", rows, entries, strings, regions))
    return _HEADER.pack(_MAGIC, rows, entries, strings, regions, crc)


class _Pages:
    """Complete reads of a file, and the pages kept from them, by kind."""

    def __init__(self, read: ReadAt, source: str) -> None:
        self._read = read
        self._source = source
        self._kept: list[dict[int, Any]] = []

    @property
    def nbytes(self) -> int:
        """Memory that the pages take."""
        return _PAGE * sum(map(len, self._kept))

    def forget(self) -> None:
        """Drop the pages: they are read again when needed."""
        for known in self._kept:
            known.clear()

    def keep(self, known: dict[int, Any]) -> None:
        """Count the memory of a reader's pages."""
        self._kept.append(known)

    def exactly(self, offset: int, size: int) -> bytes:
        """Return exactly these bytes; raise FormatError when there are fewer."""
        block = self._read(offset, size) if size else b""
        if len(block) != size:
            raise self.error(f"offset {offset:#x}", "truncated")
        return block

    def error(self, where: str, problem: str) -> FormatError:
        """Return the error to raise."""
        return FormatError(self._source, where, problem)


class _Column:
    """Numbers of one width in a file, a page of them at a time."""

    def __init__(self, pages: _Pages, offset: int, length: int, code: str) -> None:
        self._pages = pages
        self._offset = offset
        self._length = length
        self._code = code
        self._width = array(code).itemsize
        self._each = _PAGE // self._width
        self._known: dict[int, array[int]] = {}
        pages.keep(self._known)

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, at: int) -> int:
        page, place = divmod(at, self._each)
        known = self._known.get(page)
        if known is None or place >= len(known):
            known = self._load(page, place)
        return known[place]

    def _load(self, page: int, place: int) -> array[int]:
        if page * self._each + place >= self._length:
            raise self._pages.error(f"row {page * self._each + place}", f"of {self._length}")
        count = min(self._each, self._length - page * self._each)
        data = self._pages.exactly(self._offset + page * _PAGE, count * self._width)
        if len(self._known) >= _KEEP_PAGES:
            self._known.pop(next(iter(self._known)))
        column = self._known[page] = array(self._code, data)
        return column


class _Names:
    """Strings in a file."""

    nbytes = 0

    def __init__(self, pages: _Pages, begin: int, end: int) -> None:
        self._pages = pages
        self._begin = begin
        self._end = end
        self._known: dict[int, bytes] = {}
        pages.keep(self._known)

    def get(self, offset: int) -> bytes:
        """The name that starts there."""
        at = self._begin + offset
        text = b""
        while at < self._end and len(text) <= LONGEST_NAME:
            page = at // _PAGE
            piece = self._page(page)[at - max(page * _PAGE, self._begin) :]
            name, nul, _ = piece.partition(b"\0")
            text += name
            if nul:
                break
            at += len(piece)
        return text

    def _page(self, number: int) -> bytes:
        known = self._known.get(number)
        if known is None:
            begin = max(number * _PAGE, self._begin)
            end = min((number + 1) * _PAGE, self._end)
            known = self._pages.exactly(begin, end - begin)
            if len(self._known) >= _KEEP_PAGES:
                self._known.pop(next(iter(self._known)))
            self._known[number] = known
        return known
