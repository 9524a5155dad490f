"""The place of a uprobe: `file:function` to a path and an offset into that file.

A symbol says where code is in memory, and the PT_LOAD segment that holds it says where that is in
the file: the section's own offset is not the same in files that were linked with a large alignment
(libbpf-rs issue 1110).
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from fnmatch import fnmatchcase
from itertools import islice

from purebpf.errors import AttachError, FormatError
from purebpf.files.path_steps import open_place
from purebpf.files.regular_file import Identity, identify, opened_regular
from purebpf.late_pattern import compile_later
from purebpf.loader.host.debug_files import debug_file, image_of
from purebpf.loader.host.process_files import (
    has_other_mounts,
    hides_mappings,
    mapped_path,
    root_of,
    status_of,
)
from purebpf.symbols.budget import Budget, OverBudgetError
from purebpf.symbols.demangle import MANGLED, demangle
from purebpf.symbols.elf_image import SHT_SYMTAB, ElfImage
from purebpf.symbols.elf_imports import imported_function, needed_libraries
from purebpf.symbols.elf_names import (
    FUNCTIONS,
    INDIRECT,
    function_of_version,
    functions_named,
    is_spelt,
)
from purebpf.symbols.frame import FileOffset
from purebpf.symbols.short_names import identifier, spellings
from purebpf.tuples import NamedTuple

__all__ = [
    "ProbePlace",
    "ProbePlaces",
    "find_file",
    "find_places",
    "in_process",
    "open_image",
    "parse_place",
]

_PLACE = compile_later(
    r"(.+)(?<!:):(?!:)((?:[^:+]|::|(?<=operator)\+\+?)+?)(?:\+(0[xX][0-9a-fA-F]+|\d+))?"
)
"""A colon alone ends the file's name; two belong to a C++ or Rust function."""
_NUMBER = compile_later(r"0[xX][0-9a-fA-F]+|\d+")
_CACHE = "/etc/ld.so.cache"
_MOST_CACHE = 32 << 20
_EVERY = -1
_OF_PROCESS = compile_later(r"/proc/(?P<pid>\d+)/(?:root(?P<path>/.*)|exe|map_files/.*)")
_LIBRARY = compile_later(r"\.so(\.|$)")
_MOST_COMPARED = 10_000
"""Names that may have been meant: some tenths of a second."""


class ProbePlace(NamedTuple):
    """A file, a function of it or a pattern of functions ("" for none), and bytes beyond it."""

    file: str
    function: str
    offset: int


class ProbePlaces(NamedTuple):
    """Offsets in a file, in order. `identity` belongs to the file with their symbols.

    It is None where the user named the offset.
    """

    path: str
    identity: Identity | None
    offsets: list[int]


def parse_place(text: str) -> ProbePlace:
    """`"libc.so.6:malloc+4"`, `"/bin/bash:0x1234"`, `"./server:db::Pool::get"`.

    Raises:
        ValueError: it is neither.
    """
    place_match = _PLACE.fullmatch(text)
    if place_match is None:
        raise ValueError(
            f"{text!r} is not a place in a file: expected 'file:function' or 'file:0x123'"
        )
    file, function, offset = place_match.groups()
    if _NUMBER.fullmatch(function):
        return ProbePlace(file, "", int(function, 0) + int(offset or "0", 0))
    return ProbePlace(file, function, int(offset or "0", 0))


def find_places(where: str, description: str, pid: int = _EVERY) -> ProbePlaces:
    """The places that `"file:pattern"` means; `pid` as for `find_file`.

    Raises:
        ValueError: it is not a place.
        AttachError: ENOENT, no such file, or no such function in it; says `description` for.
        FormatError: no ELF file, or a damaged one, and a function was named.
        OSError: it cannot be read.
    """
    place = parse_place(where)
    path = find_file(place.file, description, pid)
    if not place.function:
        return ProbePlaces(path, None, [place.offset])
    with open_image(path) as (image, identity):
        every = _function_offsets(image, place.function, FUNCTIONS)
        indirect = _function_offsets(image, place.function, INDIRECT)
        close = () if every else _similar(image, place.function)
        imported = "" if every else _explain_import(image, place.function)
    # The function that a name means may be code, though an older version is an indirect one.
    offsets = {name: offset for name, offset in every.items() if indirect.get(name) != offset}
    if not offsets:
        why = imported or _why_not(path, place.function, close, is_there=bool(every))
        raise AttachError("uprobe", errno.ENOENT, description, why=why)
    every_offset = sorted({offset + place.offset for offset in offsets.values()})
    return ProbePlaces(path, identity, every_offset)


def find_file(name: str, description: str, pid: int = _EVERY) -> str:
    """The path of a file that may be named without one; `description` is for the error.

    With a process, a name without a slash means the file that the process has mapped, else the one
    that it would find in its own root directory.

    Raises:
        AttachError: ENOENT, it is nowhere; EINVAL, it is a directory, a FIFO or the like.
    """
    root = ""
    if pid != _EVERY and "/" not in name:
        pid = pid or os.getpid()
        if path := _mapped(name, pid, description):
            return path
        root = root_of(pid)
    if "/" in name:
        folders = [""]
    elif _LIBRARY.search(name):
        cached = os.path.dirname(_look_up_library(name, root))
        preferred = [] if root else _preferred_folders()
        folders = [*preferred, *filter(None, [cached]), *_standard_folders()]
    else:
        folders = os.environ.get("PATH", os.defpath).split(":")
        library = _look_up_short(name, folders, root)
        if library:
            return root + library
    for folder in folders:
        path = root + os.path.join(folder, name)
        if _is_file(path):
            return path  # as it is: /proc/PID/root and /proc/PID/exe lead where no other path does
    if folders == [""] and status_of(name) is not None:
        why = f"{name} is {_kind_of(name)}, not a program or library"
        raise AttachError("open", errno.EINVAL, description, why=why)
    searched = f" in {', '.join(folders)}" if folders != [""] else ""
    where = f"{searched} of process {pid}, which has not mapped it" if root else searched
    why = f"file {name} does not exist{where}"
    if folders == [""]:
        try:
            os.close(open_place(name))
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ENOTDIR):
                raise AttachError("open", error.errno or 0, description, why=str(error)) from None
    raise AttachError("open", errno.ENOENT, description, why=why)


def in_process(path: str, pid: int) -> str:
    """Return a path that leads to the file that a process means by a path or name.

    A name without a slash means a file that the process has mapped, or a library: `libc`. A file
    that the process has mapped and that was replaced since is the one that it has.

    Raises:
        AttachError: ENOENT, a process with another root directory has no file of this name; EACCES,
            a process whose mappings this one may not read, and a name without a slash, or other
            mounts than ours.
    """
    if "/" not in path:
        mapped = _mapped(path, pid, path)
        return mapped or (find_file(path, path, pid) if root_of(pid) else path)
    if not path.startswith("/") or path.startswith("/proc/"):
        return path
    if mapped := mapped_path(path, pid):
        return mapped
    if root := root_of(pid):
        return root + path if status_of(root + path) else path
    if hides_mappings(pid) and has_other_mounts(pid):
        raise _unknown_file(path, pid, path, "run with CAP_SYS_PTRACE")
    return mapped_path(os.path.realpath(path), pid) or path


def _unknown_file(name: str, pid: int, description: str, fix: str) -> AttachError:
    """A process may have another file than this one by a name or path."""
    why = f"process {pid} may have another file {name}: its mappings cannot be read"
    return AttachError("open", errno.EACCES, description, why=why, fix=fix)


def _mapped(name: str, pid: int, description: str) -> str:
    """Return the path of the file that a process has mapped under a name, or "".

    Raises:
        AttachError: EACCES, its mappings cannot be read: a file of this machine with that name may
            be another one.
    """
    if path := mapped_path(name, pid):
        return path
    if hides_mappings(pid):
        others = has_other_mounts(pid)
        by_path = "" if others else "name the file by its path, or "
        raise _unknown_file(name, pid, description, f"{by_path}run with CAP_SYS_PTRACE")
    return ""


def _is_file(path: str) -> bool:
    status = status_of(path)
    return status is not None and stat.S_ISREG(status.st_mode)


def _kind_of(path: str) -> str:
    status = status_of(path)
    mode = 0 if status is None else status.st_mode
    kinds = {
        stat.S_IFDIR: "a directory",
        stat.S_IFIFO: "a FIFO",
        stat.S_IFSOCK: "a socket",
        stat.S_IFCHR: "a device",
        stat.S_IFBLK: "a device",
    }
    return kinds.get(stat.S_IFMT(mode), "not a regular file")


def _look_up_short(name: str, folders: Sequence[str], root: str) -> str:
    """Return the library that `libc` or `c` means, if no program has the name; or ""."""
    if any(_is_file(root + os.path.join(folder, name)) for folder in folders):
        return ""
    found = (_look_up_library(f"{start}{name}.so", root, is_prefix=True) for start in ("", "lib"))
    return next(filter(None, found), "")


def _look_up_library(name: str, root: str = "", *, is_prefix: bool = False) -> str:
    """Return the path of a library by ldconfig(8), in the folders of /etc/ld.so.conf too; or ""."""
    try:
        with opened_regular(root + _CACHE) as fd, open(fd, "rb", closefd=False) as file:
            cache = file.read(_MOST_CACHE)
    except OSError:
        return ""
    from purebpf.symbols.ld_cache import cached_libraries

    machine = os.uname().machine
    return next(cached_libraries(cache, name, machine, is_prefix=is_prefix), "")


def _preferred_folders() -> list[str]:
    """Return the folders that ld.so(8) searches before anything else."""
    return [folder for folder in os.environ.get("LD_LIBRARY_PATH", "").split(":") if folder]


def _standard_folders() -> Iterator[str]:
    """Return the folders that ld.so(8) searches when nothing else has the library."""
    for folder in ("/usr/lib64", "/usr/lib", "/lib64", "/lib"):
        if not folder.endswith("64"):
            yield f"{folder}/{os.uname().machine}-linux-gnu"
        yield folder


@contextmanager
def open_image(path: str) -> Iterator[tuple[ElfImage, Identity]]:
    """The ELF file at `path`, inside the `with` block; and which file that is, to find it again.

    A stripped file has its debug file in `debug`, if there is one where gdb and the symbolizer
    look: by build id, or by .gnu_debuglink.

    Raises:
        FormatError: no ELF file, or a damaged one.
        OSError: it cannot be read.
        OverBudgetError: reading it takes more than a file may cost (`purebpf.symbols.budget`).
    """
    budget = Budget()
    with opened_regular(path) as fd, budget.on_behalf(file=path), ExitStack() as held:
        image = image_of(fd, path, budget.spend)
        if not _has_symbols(image):
            owner = os.fstat(fd).st_uid
            debug = debug_file(
                image, *_as_seen(path), _has_symbols, owner=owner, spend=budget.spend
            )
            if debug is not None:
                held.callback(os.close, debug.fd)
                image.debug = debug.image
        yield image, identify(fd)


def _has_symbols(image: ElfImage) -> bool:
    return image.section_of_type(SHT_SYMTAB) is not None


def _as_seen(path: str) -> tuple[str, tuple[int, ...]]:
    """The path of a file as its processes see it, and a process in whose root directory it is.

    Debug files are beside the file itself, not beside a link to it.
    """
    match = _OF_PROCESS.fullmatch(path)
    if match is None:
        return os.path.realpath(path), ()
    inside = match["path"]
    if inside is None:
        try:
            inside = os.readlink(path).removesuffix(" (deleted)")
        except OSError:
            inside = path
    return inside, (int(match["pid"]),)


def _function_offsets(
    image: ElfImage, pattern: str, kinds: frozenset[int]
) -> dict[str, FileOffset]:
    """The functions of a file that match a pattern, and where in the file they start.

    A name may say a version: `memcpy@GLIBC_2.2.5`, or `memcpy@@GLIBC_2.14` if that has to be the
    one that programs are linked to today, which a name without a version is. A C++ or Rust function
    may also have its readable name, as `purebpf.symbols.short_names.spellings`.

    Raises:
        FormatError: a damaged file.
    """
    name, _, version = pattern.partition("@")
    if version:
        offset = function_of_version(image, name, version, kinds)
        return {} if offset is None else {pattern: offset}
    if not set(pattern) & set("*?"):
        return _functions_spelt(image, pattern, kinds)
    if "::" not in pattern and "(" not in pattern:
        return functions_named(image, lambda name: fnmatchcase(name, pattern), kinds)
    # In `f(char*)` the star is a pointer, if there is such a function.
    return _functions_spelt(image, pattern, kinds) or functions_named(
        image, lambda name: _fits(name, pattern), kinds
    )


def _functions_spelt(image: ElfImage, name: str, kinds: frozenset[int]) -> dict[str, FileOffset]:
    """The function with this symbol; without one, those with this readable name."""
    last = identifier(name)
    offsets = functions_named(
        image, lambda symbol: symbol == name or is_spelt(symbol, name, last), kinds
    )
    return {name: offsets[name]} if name in offsets else offsets


def _fits(symbol: str, pattern: str) -> bool:
    if fnmatchcase(symbol, pattern):
        return True
    return symbol.startswith(MANGLED) and any(
        fnmatchcase(spelling, pattern) for spelling in spellings(demangle(symbol))
    )


def _similar(image: ElfImage, name: str) -> Sequence[str]:
    """Names of functions that may have been meant."""
    from difflib import get_close_matches

    near = functions_named(image, lambda symbol: abs(len(symbol) - len(name)) <= 2, FUNCTIONS)
    return get_close_matches(name, islice(near, _MOST_COMPARED))


def _explain_import(image: ElfImage, pattern: str) -> str:
    """Explain where a function that the file only calls can be probed; "" if it imports no such
    function.
    """
    name = pattern.partition("@")[0].removesuffix("@plt")
    imported = imported_function(image, name)
    if imported is None:
        return ""
    libraries = [imported.library] if imported.library else list(needed_libraries(image))
    library = next((path for path in libraries if _defines(path, name)), imported.library)
    if not library:
        listed = ", ".join(libraries) or "none"
        return f"{image.source} imports {name!r}, and has no code of it; its libraries: {listed}"
    advice = f"probe it there, '{library}:{name}', with pid= for one process"
    return f"{image.source} imports {name!r} from {library}: {advice}"


def _defines(library: str, name: str) -> bool:
    """Return True if the library exists, and has a function of that name."""
    try:
        with opened_regular(find_file(library, library)) as fd:
            image = image_of(fd, library, Budget().spend)
            return bool(functions_named(image, name.__eq__))
    except (OSError, FormatError, AttachError, OverBudgetError):
        return False


def _why_not(path: str, pattern: str, close: Sequence[str], *, is_there: bool) -> str:
    """Why a file has no function to probe."""
    if is_there:
        reason = "its resolver chooses the function at run time"
        return f"{pattern!r} of {path} is an indirect function (IFUNC): {reason}; probe that"
    similar = f"; similar: {', '.join(close)}" if close else ""
    return f"{path} does not have a function {pattern!r}{similar}"
