"""The allocators of processes: which functions of which files bpf_src/mem.bpf.c is attached to."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from enum import IntEnum
from itertools import islice
from typing import NamedTuple

from purebpf.errors import KernelError, NotSupportedError, PurebpfError
from purebpf.files.regular_file import Identity, identify, opened_regular
from purebpf.loader.attach._common.probe_place import find_file
from purebpf.loader.host.debug_files import image_of
from purebpf.symbols.budget import Budget
from purebpf.symbols.elf_image import ElfImage
from purebpf.symbols.elf_names import functions_named
from purebpf.symbols.proc_maps import parse_maps
from purebpf.syscall import proc

__all__ = [
    "EVERY_PROCESS",
    "Allocator",
    "Function",
    "Functions",
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
    """enum function of bpf_src/mem/allocators.h: the arguments of a function."""

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
_DELETE = re.compile(r"_Zd[la]Pvm?(St11align_val_t)?(RKSt9nothrow_t)?")
"""No pattern without an end: each name that fits is a probe, and anyone may map a file."""

_MOST_FILES = 16
"""That may be an allocator's, in one process."""

Functions = tuple[tuple[int, "Function"], ...]
"""By offset into the file."""


class Allocator(NamedTuple):
    """A file with an allocator, in one process or in every one.

    Attributes:
        path: of the file, as this process reads it.
        pid: the process; EVERY_PROCESS: all that have it mapped.
        functions: by offset into the file.
        identity: of the file that has them, see `purebpf.files.regular_file`.
        is_named: the user asked for this file.
    """

    path: str
    pid: int
    functions: Functions
    identity: Identity
    is_named: bool = False

    @property
    def returning(self) -> Functions:
        """The functions that give memory."""
        return tuple([place for place in self.functions if place[1] is not Function.FREE])


def allocators_of(
    pid: int,
    *,
    everywhere: bool = False,
    budget: Budget | None = None,
    known: dict[Identity, Functions] | None = None,
) -> list[Allocator]:
    """The allocators that a process has mapped now: its libc, a replacement, its own.

    Args:
        pid: the process.
        everywhere: in every process that has those files mapped, not in this one alone.
        budget: pays for the look.
        known: stores the answers of files from one process to the next.

    Raises:
        KernelError: its mappings may not be read.
    """
    at = EVERY_PROCESS if everywhere else pid
    budget = budget or Budget()
    owner = proc.owner(pid)
    allocators = []
    for path in islice(_candidates(pid), _MOST_FILES):
        try:
            with budget.on_behalf(run=0, user=owner, process=pid):
                allocators += _look_into(path, at, budget, known)
        except PurebpfError:  # too much was asked for
            break
    return allocators


def own_libc() -> list[Allocator]:
    """The C library of this machine's programs, in every process."""
    for name in ("libc.so.6", "libc.so"):
        try:
            path = find_file(name, "the C library")
        except PurebpfError:
            continue
        if allocators := _look_into(path, EVERY_PROCESS, Budget()):
            return allocators
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
    identity, functions = _functions(path, Budget())
    if not functions:
        raise NotSupportedError(
            f"tracing allocations of {file}", f"{path} has no symbols of malloc and free"
        )
    return Allocator(path, pid, functions, identity, is_named=True)


def executable_allocator(path: str) -> list[Allocator]:
    """Return the allocator in a program itself, as a static one has; nothing for a script."""
    return _look_into(path, EVERY_PROCESS, Budget())


def _candidates(pid: int) -> Iterable[str]:
    """Files of a process that may have one, as this process reads them."""
    pid = proc.with_memory(pid)
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


def _look_into(
    path: str, pid: int, budget: Budget, known: dict[Identity, Functions] | None = None
) -> list[Allocator]:
    """The allocator of a file; [] if it has none, or cannot be read."""
    try:
        identity, functions = _functions(path, budget, known)
    except (KernelError, PurebpfError, OSError):
        return []
    return [Allocator(path, pid, functions, identity)] if functions else []


def _functions(
    path: str, budget: Budget, known: dict[Identity, Functions] | None = None
) -> tuple[Identity, Functions]:
    """The functions of an allocator: of a file with both `malloc` and `free`, else none."""
    known = {} if known is None else known
    with opened_regular(path) as fd, budget.on_behalf(file=path):
        identity = identify(fd)
        if identity not in known:
            known[identity] = ()  # also of one that cannot be read: it is not read again
            known[identity] = _functions_in(image_of(fd, path, budget.spend))
    return identity, known[identity]


def _functions_in(image: ElfImage) -> Functions:
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
