"""The goroutines of a live Go program that wait. The program goes on meanwhile."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from purebpf.errors import FormatError, KernelError
from purebpf.observe.symbols.mapped_files import open_mapped
from purebpf.runtimes.golang.goroutines import Goroutine, waiting_goroutines
from purebpf.runtimes.memory import CachedMemory, UnreadableError
from purebpf.symbols.elf_image import ElfImage
from purebpf.symbols.go_inlined import GoInlined
from purebpf.symbols.go_list import list_in_code
from purebpf.symbols.go_table import has_go_table
from purebpf.symbols.proc_maps import parse_maps
from purebpf.syscall import proc
from purebpf.syscall.process_memory import open_process_memory
from purebpf.unwind.elf_frames import load_bias

__all__ = ["find_goroutines", "inlined_functions", "read_goroutines"]

_LIST = b"\0runtime.allgs\0"
_DATA = (b"\0go:func.*\0", b"\0go.func.*\0")
"""What the functions' tables lead to: since Go 1.20, and before."""
_SYMBOL = struct.Struct("<IBBHQQ")
_MOST_BYTES = 1 << 26
"""Of a symbol table."""


def find_goroutines(pid: int) -> int | None:
    """Return the address of a process's list of goroutines.

    None: it is no Go program, or a stripped one whose code does not show the list.
    """
    try:
        with _executable(pid) as (image, bias):
            listed = _symbol(image, _LIST)
            listed = list_in_code(image) if listed is None else listed
    except (KernelError, FormatError, OSError):
        return None
    return None if listed is None else bias + listed


def inlined_functions(pid: int, addresses: Iterable[int]) -> dict[int, tuple[str, ...]]:
    """Return the functions that are inlined at return addresses, the innermost first.

    Addresses without any are left out. So are addresses of processes that have ended, and of
    programs without a symbol table.

    Args:
        pid: a process of a Go program.
        addresses: of its code.
    """
    try:
        with _executable(pid) as (image, bias):
            data = next((at for name in _DATA if (at := _symbol(image, name)) is not None), None)
            if data is None:
                return {}
            inlined = GoInlined(image, data)
            found = {address: inlined.at(address - bias - 1) for address in addresses}
    except (KernelError, FormatError, OSError):
        return {}
    return {address: names for address, names in found.items() if names}


@contextmanager
def _executable(pid: int) -> Iterator[tuple[ElfImage, int]]:
    """Open the executable of a Go program; with it, the bias of its addresses.

    Raises:
        FormatError: it is none, or not mapped.
        KernelError, OSError: it cannot be read.
    """
    mappings = parse_maps(proc.maps(pid) or "")
    exe = os.readlink(f"/proc/{pid}/exe")
    mapped = next((one for one in mappings if one.file.path == exe), None)
    if mapped is None:
        raise FormatError(exe, "the executable", "is not mapped")
    fd = open_mapped(mapped, (pid,))
    try:
        size = os.fstat(fd).st_size
        image = ElfImage(lambda at, wanted: os.pread(fd, wanted, at), size, exe)
        bias = load_bias(image.segments, mapped.start, mapped.offset)
        if bias is None or not has_go_table(image):
            raise FormatError(exe, ".gopclntab", "is not there, or the file is mapped otherwise")
        yield image, bias
    finally:
        os.close(fd)


def _symbol(image: ElfImage, name: bytes) -> int | None:
    """Return the virtual offset of a symbol, by its name between two zeros."""
    table = image.section(".symtab")
    names = image.linked_section(table) if table is not None else None
    if table is None or names is None or not image.is64 or image.order != "<":
        return None
    if max(table.size, names.size) > _MOST_BYTES:
        return None
    place = image.contents(names).find(name)
    raw = image.contents(table)
    whole = raw[: len(raw) // _SYMBOL.size * _SYMBOL.size]
    wanted = (row[4] for row in _SYMBOL.iter_unpack(whole) if row[0] == place + 1)
    return next(wanted, None) if place >= 0 else None


def read_goroutines(pid: int, listed: int, most: int) -> tuple[list[Goroutine], float]:
    """Return goroutines that wait, and how many each stands for; [] where they cannot be read.

    Args:
        pid: the process.
        listed: of `find_goroutines`.
        most: how many to read.
    """
    try:
        memory = open_process_memory(pid)
        if memory is None:
            return [], 1.0
        with memory:
            return waiting_goroutines(CachedMemory(memory.read), listed, most)
    except (KernelError, UnreadableError):
        return [], 1.0
