"""Addresses of the symbols of libjvm.so that describe a process's JVM."""

from __future__ import annotations

import os
from collections.abc import Collection

from purebpf.errors import FormatError
from purebpf.observe.symbols.mapped_files import open_mapped
from purebpf.symbols.elf_image import ElfImage
from purebpf.symbols.proc_maps import Mapping, parse_maps
from purebpf.syscall import proc
from purebpf.unwind.elf_frames import load_bias

__all__ = ["find_library", "read_exports"]

_LIBRARY = "/libjvm.so"
_SYMBOL_SIZE = 24
_MOST_SYMBOLS = 1 << 16


def find_library(pid: int) -> Mapping | None:
    """The first executable mapping of a process's libjvm.so; None: it has none.

    Raises:
        KernelError: the process is another user's.
    """
    mappings = parse_maps(proc.maps(pid) or "")
    return next((one for one in mappings if one.file.path.endswith(_LIBRARY)), None)


def read_exports(mapped: Mapping, pid: int, names: Collection[str]) -> dict[str, int]:
    """The addresses of a mapped library's symbols; {} if one of them is missing.

    Raises:
        FormatError: the file is no ELF file.
        OSError: it cannot be opened.
    """
    fd = open_mapped(mapped, (pid,))
    try:
        size = os.fstat(fd).st_size
        image = ElfImage(lambda at, wanted: os.pread(fd, wanted, at), size, mapped.file.path)
        bias = load_bias(image.segments, mapped.start, mapped.offset)
        table = image.section(".dynsym")
        if bias is None or table is None or table.size > _MOST_SYMBOLS * _SYMBOL_SIZE:
            return {}
        linked = image.linked_section(table)
        if linked is None:
            raise FormatError(mapped.file.path, ".dynsym", "its strings are missing")
        strings, raw = image.contents(linked), image.contents(table)
    finally:
        os.close(fd)
    found: dict[str, int] = {}
    for at in range(0, len(raw) - _SYMBOL_SIZE + 1, _SYMBOL_SIZE):
        start = int.from_bytes(raw[at : at + 4], "little")
        name = strings[start : strings.find(b"\0", start)].decode("ascii", "replace")
        if name in names:
            found[name] = bias + int.from_bytes(raw[at + 8 : at + 16], "little")
    return found if len(found) == len(names) else {}
