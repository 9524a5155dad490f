"""The allocators of processes: which functions of which files bpf_src/mem.bpf.c is attached to."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from enum import IntEnum
from typing import NamedTuple

from purebpf.errors import KernelError, NotSupportedError, PurebpfError
from purebpf.kernel.symbolize.probe_place import find_file, open_image
from purebpf.symbols.elf_names import functions_named
from purebpf.symbols.proc_maps import parse_maps
from purebpf.syscall import proc

__all__ = [
    "EVERY_PROCESS",
    "Allocator",
    "Function",
    "allocator_in",
    "allocators_of",
    "executable_allocator",
    "own_libc",
]

EVERY_PROCESS = -1
_LIBRARIES = re.compile(
    r"libc[.-]|ld-musl|lib(jemalloc|tcmalloc|mimalloc|hoard|snmalloc|rpmalloc|scudo)"
)
"""Names of files that bring malloc, from their start; executables may have their own."""


class Function(IntEnum):
    """enum function of bpf_src/mem/allocators.h: what a function takes."""

    MALLOC = 1
    CALLOC = 2
    ALIGNED_ALLOC = 3
    POSIX_MEMALIGN = 4
    REALLOC = 5
    FREE = 6


_FUNCTIONS = {
    **dict.fromkeys(("malloc", "valloc", "pvalloc"), Function.MALLOC),
    "calloc": Function.CALLOC,
    "realloc": Function.REALLOC,
    **dict.fromkeys(("aligned_alloc", "memalign"), Function.ALIGNED_ALLOC),
    "posix_memalign": Function.POSIX_MEMALIGN,
    **dict.fromkeys(("free", "cfree"), Function.FREE),
}
_NEW = re.compile(r"_Zn[wa]m(RKSt9nothrow_t|St11align_val_t(RKSt9nothrow_t)?)?")
_DELETE = re.compile(r"_Zd[la]Pv\w*")


class Allocator(NamedTuple):
    """A file with an allocator, in one process or in every one.

    Attributes:
        path: of the file, as this process reads it.
        pid: the process; EVERY_PROCESS: all that have it mapped.
        functions: by offset into the file.
    """

    path: str
    pid: int
    functions: tuple[tuple[int, Function], ...]

    @property
    def returning(self) -> tuple[tuple[int, Function], ...]:
        """The functions that give memory."""
        return tuple([place for place in self.functions if place[1] is not Function.FREE])


def allocators_of(pid: int, *, everywhere: bool = False) -> list[Allocator]:
    """The allocators that a process has mapped now: its libc, a replacement, its own.

    Args:
        pid: the process.
        everywhere: in every process that has those files mapped, not in this one alone.

    Raises:
        KernelError: its mappings may not be read.
    """
    at = EVERY_PROCESS if everywhere else pid
    allocators = []
    for path in _candidates(pid):
        allocator = _look_into(path, at)
        if allocator is not None:
            allocators.append(allocator)
    return allocators


def own_libc() -> list[Allocator]:
    """The C library of this machine's programs, in every process."""
    for name in ("libc.so.6", "libc.so"):
        try:
            allocator = _look_into(find_file(name, "the C library"), EVERY_PROCESS)
        except PurebpfError:
            continue
        if allocator is not None:
            return [allocator]
    return []


def allocator_in(file: str, pid: int = EVERY_PROCESS) -> Allocator:
    """The allocator of a file that a user names: a path, or a library as ld.so(8) finds it.

    Raises:
        NotSupportedError: it has no function `malloc` or `free`.
        AttachError: there is no such file.
        FormatError: it is not an ELF file.
        OSError: it cannot be read.
    """
    path = find_file(file, f"the allocator {file}")
    functions = _functions(path)
    if not functions:
        raise NotSupportedError(
            f"tracing allocations of {file}", f"{path} has no symbols of malloc and free"
        )
    return Allocator(path, pid, functions)


def executable_allocator(path: str) -> list[Allocator]:
    """That of a program that brings its own, as a static one does; nothing of a script."""
    allocator = _look_into(path, EVERY_PROCESS)
    return [] if allocator is None else [allocator]


def _candidates(pid: int) -> Iterable[str]:
    """Files of a process that may have one, as this process reads them."""
    paths = {f"/proc/{pid}/exe": None}
    for mapping in parse_maps(proc.maps(pid) or ""):
        file = mapping.file
        if not _LIBRARIES.match(os.path.basename(file.path)):
            continue
        path = f"/proc/{pid}/root{file.path}"
        if file.deleted or not os.path.exists(path):
            path = f"/proc/{pid}/map_files/{mapping.start:x}-{mapping.end:x}"
        paths[path] = None
    return paths


def _look_into(path: str, pid: int) -> Allocator | None:
    """The allocator of a file; None: it has none, or cannot be read."""
    try:
        functions = _functions(path)
    except (KernelError, PurebpfError, OSError):
        return None
    return Allocator(path, pid, functions) if functions else None


def _functions(path: str) -> tuple[tuple[int, Function], ...]:
    """The functions of an allocator: of a file with both `malloc` and `free`, else none."""
    with open_image(path) as image:
        offsets = functions_named(image, lambda name: _function_named(name) is not None)
    if "malloc" not in offsets or "free" not in offsets:
        return ()
    functions: dict[int, Function] = {}
    for name, offset in sorted(offsets.items()):
        function = _function_named(name)
        if function is not None:
            functions[int(offset)] = function
    return tuple(sorted(functions.items()))


def _function_named(name: str) -> Function | None:
    if name in _FUNCTIONS:
        return _FUNCTIONS[name]
    if _NEW.fullmatch(name):
        return Function.MALLOC
    return Function.FREE if _DELETE.fullmatch(name) else None
