"""The identifiers of files that are open for their symbols."""

from __future__ import annotations

import os

from purebpf.symbols.elf_image import ElfImage
from purebpf.symbols.file_ids import FileIds, FileKey, hash_of_ends

__all__ = ["note_ids"]

_MOST = 4096


def note_ids(ids: dict[FileKey, FileIds], key: FileKey, fd: int, size: int) -> None:
    """Add the identifiers of an open ELF file, by its path and build ID.

    If several such files differ, nobody can tell later which one a frame is in: then only the build
    ID stays.

    Raises:
        FormatError: the headers are malformed.
        OSError: the file cannot be read.
    """

    def read(offset: int, size: int) -> bytes:
        return os.pread(fd, size, offset)

    found = FileIds(key[1], ElfImage(read, size, key[0]).go_build_id, hash_of_ends(read, size))
    if len(ids) >= _MOST and key not in ids:
        del ids[next(iter(ids))]
    if ids.setdefault(key, found) != found:
        ids[key] = FileIds(key[1])
