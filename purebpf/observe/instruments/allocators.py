"""The allocators of processes: the functions in files that bpf_src/mem.bpf.c is attached to."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable
from itertools import islice

from purebpf.enums import IntEnum
from purebpf.errors import FormatError, KernelError, NotSupportedError, PurebpfError
from purebpf.files.regular_file import Identity, identify, opened_regular
from purebpf.loader.attach._common.probe_place import find_file, in_process
from purebpf.loader.host.debug_files import image_of
from purebpf.loader.host.process_files import probed_inode, status_of
from purebpf.observe.symbols.function_code import FunctionCode
from purebpf.symbols.budget import Budget
from purebpf.symbols.elf_image import ElfImage
from purebpf.symbols.elf_names import functions_named
from purebpf.symbols.frame import FileOffset
from purebpf.symbols.function_exits import ALWAYS, Exits
from purebpf.symbols.proc_maps import MappedFile, parse_maps
from purebpf.symbols.x86_64_code import CodeError
from purebpf.syscall import proc
from purebpf.tuples import NamedTuple

__all__ = [
    "EVERY_PROCESS",
    "Allocator",
    "AllocatorCode",
    "Function",
    "Places",
    "allocator_in",
    "allocators_of",
    "executable_allocator",
    "late_allocators",
    "library_path",
    "own_libc",
]

EVERY_PROCESS = -1
_LIBRARIES = re.compile(
    r"libc[.-]|ld-musl|lib(jemalloc|tcmalloc|mimalloc|hoard|snmalloc|rpmalloc|scudo)"
)
"""Names of files that bring malloc, from their start; executables may have their own."""
_MOST_LATE = 1024
"""Files of processes that are looked at in the end."""


class Function(IntEnum):
    """enum function of bpf_src/mem/allocators.h: the arguments of a function."""

    MALLOC = 1
    CALLOC = 2
    ALIGNED_ALLOC = 3
    POSIX_MEMALIGN = 4
    REALLOC = 5
    FREE = 6
    PASSED_THROUGH = 7
    """It is only jumped to, from another one."""
    REALLOC_ARRAY = 8
    RESIZE = 9
    DESTROY_HEAP = 10
    COPY_TEXT = 11


_BEHIND_HEAP = 0x100
"""Added to the cookie of a function whose first argument is a heap."""

_FUNCTIONS = {
    **dict.fromkeys(("malloc", "valloc", "pvalloc"), Function.MALLOC),
    "calloc": Function.CALLOC,
    "realloc": Function.REALLOC,
    **dict.fromkeys(("aligned_alloc", "memalign"), Function.ALIGNED_ALLOC),
    "posix_memalign": Function.POSIX_MEMALIGN,
    **dict.fromkeys(("free", "cfree", "free_sized", "free_aligned_sized"), Function.FREE),
    "mallocx": Function.MALLOC,
    "rallocx": Function.REALLOC,
    "xallocx": Function.RESIZE,
    **dict.fromkeys(("dallocx", "sdallocx"), Function.FREE),
}
"""Of C, POSIX, and jemalloc(3)."""
_OF_MIMALLOC = {
    **dict.fromkeys(("zalloc", "malloc_small", "zalloc_small"), Function.MALLOC),
    **dict.fromkeys(("malloc_aligned", "zalloc_aligned"), Function.MALLOC),
    **dict.fromkeys(("mallocn", "calloc_aligned"), Function.CALLOC),
    **dict.fromkeys(
        ("reallocf", "rezalloc", "realloc_aligned", "rezalloc_aligned"), Function.REALLOC
    ),
    **dict.fromkeys(("reallocn", "recalloc", "recalloc_aligned"), Function.REALLOC_ARRAY),
}
"""Behind its prefix; the alignment, and where it is to be, are the last arguments."""
_OF_MIMALLOC |= {
    f"{name}_at": function for name, function in _OF_MIMALLOC.items() if name.endswith("_aligned")
}
_TEXTS = dict.fromkeys(("strdup", "strndup"), Function.COPY_TEXT)
_IN_HEAPS = {
    **_OF_MIMALLOC,
    **dict.fromkeys(("malloc", "alloc_new"), Function.MALLOC),
    **dict.fromkeys(("calloc", "alloc_new_n"), Function.CALLOC),
    "realloc": Function.REALLOC,
    "destroy": Function.DESTROY_HEAP,
    **_TEXTS,
}
"""Behind `mi_heap_`."""
_OF_MIMALLOC |= {
    **_TEXTS,
    **dict.fromkeys(("new", "new_nothrow", "new_aligned", "new_aligned_nothrow"), Function.MALLOC),
    "new_n": Function.CALLOC,
    "new_realloc": Function.REALLOC,
    **dict.fromkeys(
        ("reallocarray", "new_reallocn", "aligned_recalloc", "aligned_offset_recalloc"),
        Function.REALLOC_ARRAY,
    ),
    **dict.fromkeys(("free_size", "free_aligned", "free_size_aligned"), Function.FREE),
}
_PREFIXES = ("_rjem_", "je_", "tc_", "mi_")
"""Of an allocator that does not take the place of malloc: in programs of Rust, for example."""
_WITHOUT_END = (Function.FREE, Function.DESTROY_HEAP)
"""All about them is known where they begin."""
_HEAP_PREFIX = "mi_heap_"
_NEW = re.compile(r"_Zn[wa]m(RKSt9nothrow_t|St11align_val_t(RKSt9nothrow_t)?)?")
_DELETE = re.compile(r"_Zd[la]Pvm?(St11align_val_t)?(RKSt9nothrow_t)?")
"""No pattern without an end: each name that fits is a probe, and anyone may map a file."""

_MOST_FILES = 16
"""That may be an allocator's, in one process."""

Places = tuple[tuple[int, int], ...]
"""Offsets into the file, each with the cookie of its probe."""


class AllocatorCode(NamedTuple):
    """The places of a file that are probed.

    Attributes:
        entries: starts of functions, with their `Function`.
        returns: instructions of them that return; the cookie is 0.
        jumps: jumps from one function to another (tail calls), with their conditions
            (`purebpf.symbols.function_exits`).
        clears: jumps of calloc to memset, in another file; the cookie is 0.
        untraced: functions that are not probed, as it is not known where they end; and why.
        leaving: functions that are probed, and may go on in another file, which is not followed.
    """

    entries: Places = ()
    returns: Places = ()
    jumps: Places = ()
    clears: Places = ()
    untraced: tuple[tuple[str, str], ...] = ()
    leaving: tuple[str, ...] = ()


class Allocator(NamedTuple):
    """A file with an allocator, in one process or in every one.

    Attributes:
        path: of the file, as this process reads it.
        pid: the process; EVERY_PROCESS: all that have it mapped.
        code: the places of its functions.
        identity: of the file that has them, see `purebpf.files.regular_file`.
        is_named: the user asked for this file.
    """

    path: str
    pid: int
    code: AllocatorCode
    identity: Identity
    is_named: bool = False


def allocators_of(
    pid: int,
    *,
    everywhere: bool = False,
    budget: Budget | None = None,
    by_identity: dict[Identity, AllocatorCode] | None = None,
) -> list[Allocator]:
    """The allocators that a process has mapped now: its libc, a replacement, its own.

    Args:
        pid: the process.
        everywhere: in every process that has those files mapped, not in this one alone.
        budget: pays for the look.
        by_identity: stores the answers of files from one process to the next.

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
                allocators += _look_into(path, at, budget, by_identity)
        except PurebpfError:  # too much was asked for
            break
    return allocators


def late_allocators(
    files: Iterable[tuple[int, MappedFile]], traced: Collection[Identity]
) -> list[str]:
    """Return the paths of allocators that processes mapped after they were looked at.

    A process may execute another program, static or of another C library, or load one.

    Args:
        files: of processes, with their numbers; some may have ended.
        traced: files with probes, see `probed_inode`.
    """
    paths: dict[str, None] = {}
    answers: dict[Identity, AllocatorCode] = {}
    budget = Budget()
    for pid, file in islice(dict.fromkeys(files), _MOST_LATE):
        name = os.path.basename(file.path)
        if not file.path.startswith("/") or (".so" in name and not _LIBRARIES.match(name)):
            continue
        inside = f"/proc/{pid}/root{file.path}"
        path = inside if os.path.exists(inside) else file.path
        status = status_of(path)
        if status is None or (file.inode and status.st_ino != file.inode):
            continue
        try:
            with budget.on_behalf(run=0, user=status.st_uid, process=pid):
                found = _look_into(path, EVERY_PROCESS, budget, answers)
        except PurebpfError:  # too much was asked for
            break
        if any(
            one.code.entries and probed_inode(path, one.identity) not in traced for one in found
        ):
            paths[file.path] = None
    return list(paths)


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


def library_path(file: str, pid: int = EVERY_PROCESS) -> str:
    """The path of a library that a user names: a path, or a name that a process has for a file.

    Raises:
        AttachError: there is no such file.
    """
    path = file if pid == EVERY_PROCESS else in_process(file, pid)
    return find_file(path, f"the allocator {file}")


def allocator_in(file: str) -> Allocator:
    """The allocator of a file that a user names: a path, or a library as ld.so(8) finds it.

    Raises:
        NotSupportedError: it has no function `malloc` or `free`.
        AttachError: there is no such file.
        FormatError: it is not an ELF file.
        OSError: it cannot be read.
    """
    path = library_path(file)
    identity, code = _code(path, Budget())
    if not code.entries:
        raise NotSupportedError(
            f"tracing allocations of {file}", f"{path} has no symbols of malloc and free"
        )
    return Allocator(path, EVERY_PROCESS, code, identity, is_named=True)


def executable_allocator(path: str) -> list[Allocator]:
    """Return the allocator in a program itself, as a static one has; nothing for a script.

    The C library of a program of musl is the dynamic linker that it names.
    """
    found = _look_into(path, EVERY_PROCESS, Budget())
    try:
        with opened_regular(path) as fd:
            linker = image_of(fd, path, Budget().spend).interpreter
    except (KernelError, PurebpfError, OSError):
        return found
    if os.path.basename(linker).startswith("ld-musl"):
        found += _look_into(os.path.realpath(linker), EVERY_PROCESS, Budget())
    return found


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
    path: str, pid: int, budget: Budget, by_identity: dict[Identity, AllocatorCode] | None = None
) -> list[Allocator]:
    """The allocator of a file; [] if it has none, or cannot be read."""
    try:
        identity, code = _code(path, budget, by_identity)
    except (KernelError, PurebpfError, OSError):
        return []
    has_any = code.entries or code.untraced
    return [Allocator(path, pid, code, identity)] if has_any else []


def _code(
    path: str, budget: Budget, by_identity: dict[Identity, AllocatorCode] | None = None
) -> tuple[Identity, AllocatorCode]:
    """The functions of an allocator: of a file with both `malloc` and `free`, else none."""
    by_identity = {} if by_identity is None else by_identity
    with opened_regular(path) as fd, budget.on_behalf(file=path):
        identity = identify(fd)
        if identity not in by_identity:
            by_identity[identity] = (
                AllocatorCode()
            )  # also of one that cannot be read: it is not read again
            by_identity[identity] = _code_of(image_of(fd, path, budget.spend))
    return identity, by_identity[identity]


def _code_of(image: ElfImage) -> AllocatorCode:
    offsets = functions_named(image, lambda name: _function_named(name) is not None)
    offsets = _of_allocators(offsets)
    code = FunctionCode(image, follows_stubs=True)
    entries: dict[int, int] = {}
    passed: dict[int, int] = {}
    returns: dict[int, int] = {}
    jumps: dict[int, int] = {}
    clears: dict[int, int] = {}
    untraced, leaving = [], []
    for name, offset in sorted(offsets.items()):
        function = _function_named(name)
        assert function is not None
        if function not in _WITHOUT_END:
            try:
                exits = code.exits(offset)
            except (CodeError, FormatError) as error:
                untraced.append((name, str(error)))
                continue
            passed |= dict.fromkeys(exits.entered, Function.PASSED_THROUGH)
            returns |= dict.fromkeys(exits.returns, 0)
            jumps |= dict(exits.jumps)
            ends = _clearing(code, exits) if function is Function.CALLOC else {}
            clears |= ends
            if len(ends) < len(exits.leaving):
                leaving.append(name)
        entries[int(offset)] = function | (_BEHIND_HEAP if name.startswith(_HEAP_PREFIX) else 0)
    return AllocatorCode(
        _sorted(passed | entries),
        _sorted(returns),
        _sorted(jumps),
        _sorted(clears),
        tuple(untraced),
        tuple(leaving),
    )


def _sorted(places: dict[int, int]) -> Places:
    return tuple(sorted(places.items()))


def _clearing(code: FunctionCode, exits: Exits) -> dict[int, int]:
    """The jumps at the end of calloc to memset, which returns the address that calloc returns."""
    return {
        at: 0
        for at, condition in exits.leaving
        if condition == ALWAYS and code.jumps_to(at, "memset")
    }


def _of_allocators(offsets: dict[str, FileOffset]) -> dict[str, FileOffset]:
    """The functions of those allocators that both give and take memory, by their prefix."""
    kinds: dict[str, set[bool]] = {}
    for name in offsets:
        if "malloc" in name or "free" in name or "dallocx" in name:
            kinds.setdefault(_prefix_of(name), set()).add(_function_named(name) is Function.FREE)
    return {
        name: offset for name, offset in offsets.items() if len(kinds.get(_prefix_of(name), ())) > 1
    }


def _prefix_of(name: str) -> str:
    return next((prefix for prefix in _PREFIXES if name.startswith(prefix)), "")


def _function_named(name: str) -> Function | None:
    prefix = _prefix_of(name)
    plain = name.removeprefix(prefix)
    if plain in _FUNCTIONS:
        return _FUNCTIONS[plain]
    if name.startswith(_HEAP_PREFIX):
        return _IN_HEAPS.get(name.removeprefix(_HEAP_PREFIX))
    if prefix == "mi_" and plain in _OF_MIMALLOC:
        return _OF_MIMALLOC[plain]
    if _NEW.fullmatch(name):
        return Function.MALLOC
    return Function.FREE if _DELETE.fullmatch(name) else None
