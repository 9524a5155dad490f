"""ELF notes: where build ids and USDT probes are stored.

Layout: elf(5), Elf64_Nhdr; name and description are padded to the alignment of their section.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from purebpf.wire.formats import ELF_NOTE

__all__ = ["find_build_id", "find_go_build_id", "iter_notes"]

_NT_GNU_BUILD_ID = 3
_NT_GO_BUILD_ID = 4


def iter_notes(data: bytes, align: int = 4, order: str = "=") -> Iterator[tuple[bytes, int, bytes]]:
    """The owner, type and description of each note in the bytes of a section or segment.

    Args:
        data: the bytes; a last note that they cut off is yielded cut off.
        align: of the section or segment, in bytes.
        order: `<` or `>`, the file's byte order; `=` for notes of this kernel.
    """
    pad = 7 if align == 8 else 3
    header = struct.Struct(order + ELF_NOTE)
    at = 0
    while at + header.size <= len(data):
        name_size, size, kind = header.unpack_from(data, at)
        name = at + header.size
        body = name + (name_size + pad & ~pad)
        yield data[name : name + name_size], kind, data[body : body + size]
        at = body + (size + pad & ~pad)


def find_build_id(data: bytes, align: int = 4, order: str = "=") -> bytes:
    """The description of the first NT_GNU_BUILD_ID, or b""; arguments as of `iter_notes`."""
    return _find(b"GNU\0", _NT_GNU_BUILD_ID, iter_notes(data, align, order))


def find_go_build_id(data: bytes, align: int = 4, order: str = "=") -> bytes:
    """The same of the note that Go's linker writes (cmd/link/internal/ld/elf.go): it is text."""
    return _find(b"Go\0\0", _NT_GO_BUILD_ID, iter_notes(data, align, order))


def _find(name: bytes, number: int, notes: Iterator[tuple[bytes, int, bytes]]) -> bytes:
    """Return the description of the first note with an owner and a type, or b""."""
    for owner, kind, description in notes:
        if owner == name and kind == number:
            return description
    return b""
