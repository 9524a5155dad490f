"""ELF files with sections that lie anywhere and claim any size, most of which is a hole."""

from __future__ import annotations

import struct
from typing import NamedTuple

_HEADER, _SEGMENT, _SECTION = 64, 56, 64


class Part(NamedTuple):
    """A section: with `data`, which goes into the file, or with an `offset` and `size` anywhere."""

    name: str
    data: bytes = b""
    kind: int = 1
    flags: int = 0
    address: int = 0
    offset: int = 0
    size: int = 0
    link: str = ""
    entry_size: int = 0


class HollowFile:
    """A 64-bit x86 ELF file: pieces by their offset, zeros between them.

    Args:
        parts: the sections.
        names: the table of the sections' names, where all begin at its start; else a right one.
        segments: how many program headers.
        size: of the file; else as much as its sections claim.
    """

    def __init__(
        self, *parts: Part, names: bytes = b"", segments: int = 1, size: int | None = None
    ) -> None:
        self.bytes_read = 0
        self.pieces: dict[int, bytes] = {}
        self.size = 0
        numbers = {part.name: number for number, part in enumerate(parts, 1)}
        table = names or b"\0" + b"".join(part.name.encode() + b"\0" for part in parts)
        at = _HEADER
        self._add(at, struct.pack("<IIQQQQQQ", 1, 5, 0, 0x1000, 0x1000, 0x10000, 0x10000, 1))
        at += segments * _SEGMENT
        rows = [bytes(_SECTION)]
        for part in parts:
            place, length = (at, len(part.data)) if part.data else (part.offset, part.size)
            if part.data:
                at = self._add(at, part.data)
            elif part.kind != 8:
                self.size = max(self.size, place + length)
            name = 0 if names else table.index(b"\0" + part.name.encode() + b"\0") + 1
            rows.append(
                struct.pack(
                    "<IIQQQQIIQQ",
                    *(name, part.kind, part.flags, part.address, place, length),
                    *(numbers.get(part.link, 0), 0, 4, part.entry_size),
                )
            )
        rows.append(struct.pack("<IIQQQQIIQQ", 0, 3, 0, 0, at, len(table), 0, 0, 1, 0))
        at = self._add(at, table)
        self._add(at, b"".join(rows))
        ident = b"\x7fELF\2\1\1".ljust(16, b"\0")
        head = struct.pack(
            "<HHIQQQIHHHHHH", 3, 62, 1, 0, _HEADER, at, 0, 64, _SEGMENT, segments, _SECTION,
            len(rows), len(rows) - 1,
        )  # fmt: skip
        self._add(0, ident + head)
        if size is not None:
            self.size = size

    def read(self, offset: int, size: int) -> bytes:
        """Those bytes, as pread(2) gives them."""
        size = max(0, min(size, self.size - offset))
        self.bytes_read += size
        found = bytearray(size)
        for start, data in self.pieces.items():
            begin, end = max(start, offset), min(start + len(data), offset + size)
            if begin < end:
                found[begin - offset : end - offset] = data[begin - start : end - start]
        return bytes(found)

    def write(self, path: str) -> None:
        """Make a sparse file of it."""
        with open(path, "wb") as file:
            for start, data in self.pieces.items():
                file.seek(start)
                file.write(data)
            file.truncate(self.size)

    def _add(self, at: int, data: bytes) -> int:
        """Put it there; what is behind it."""
        self.pieces[at] = data
        self.size = max(self.size, at + len(data))
        return at + len(data)
