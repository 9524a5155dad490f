"""Programs and libraries of this machine: their functions and static probes."""

from __future__ import annotations

import errno
import glob
import os
from fnmatch import fnmatchcase

from purebpf.errors import AttachError, PurebpfError
from purebpf.files.fuse_mounts import may_meet_one
from purebpf.files.regular_file import opened_regular
from purebpf.loader.attach._common.probe_place import find_file, find_places, open_image
from purebpf.loader.attach.usdt import resolve_addresses
from purebpf.loader.host.process_files import code_mappings, root_of
from purebpf.script.host import CodePlace, Datum, StaticProbe
from purebpf.symbols.elf_image import PT_LOAD
from purebpf.symbols.elf_names import function_extents, functions_named, variables
from purebpf.symbols.usdt import usdt_probes
from purebpf.symbols.usdt_arguments import parse_arguments

__all__ = [
    "explain_missing",
    "find_code",
    "find_variable",
    "list_functions",
    "list_static_probes",
    "mapped_files",
    "matching_files",
]

_ELF = b"\x7fELF"


def list_functions(path: str) -> list[str]:
    """List the functions of a program or library; nothing if it cannot be read."""
    try:
        with open_image(find_file(path, "uprobe")) as (image, _):
            return sorted(functions_named(image, lambda _: True))
    except (PurebpfError, OSError):
        return []


def list_static_probes(path: str) -> list[StaticProbe]:
    """List the static probes of a program or library; nothing if it cannot be read."""
    try:
        with open_image(find_file(path, "usdt")) as (image, _):
            probes = resolve_addresses(image, list(usdt_probes(image)))
            return [
                StaticProbe(
                    probe.provider,
                    probe.name,
                    parse_arguments(probe.arguments, image.machine),
                    probe.offset,
                    probe.semaphore,
                )
                for probe in probes
            ]
    except (PurebpfError, OSError, ValueError):
        return []


def explain_missing(path: str, function: str) -> str:
    """Return the reason why a program does not have a function, "" if it may have it."""
    try:
        find_places(f"{path}:{function}", "uprobe")
    except AttachError as error:
        return str(error.why) if error.errno == errno.ENOENT else ""
    except (PurebpfError, OSError, ValueError):
        pass
    return ""


def find_code(path: str, address: int) -> CodePlace | None:
    """Find the function that has an address, as the file was linked; None if none is known."""
    try:
        with open_image(find_file(path, "uprobe")) as (image, _):
            images = [image] if image.debug is None else [image, image.debug]
            extents = {
                start: extent for part in images for start, extent in function_extents(part).items()
            }
            start = max((item for item in extents if item <= address), default=None)
            if start is None or address - start >= extents[start].size:
                return None
            for segment in image.segments:
                if segment.type == PT_LOAD and 0 <= address - segment.address < segment.file_size:
                    offset = address - segment.address + segment.offset
                    return CodePlace(extents[start].names[0], address - start, offset)
    except (PurebpfError, OSError, ValueError):
        pass
    return None


def find_variable(path: str, function: str, name: str) -> Datum | None:
    """Find a variable by its distance from a function, or from a file offset such as `0x1234`."""
    try:
        places = find_places(f"{path}:{function}", "uprobe")
        with open_image(places.path) as (image, _):
            images = [image] if image.debug is None else [image, image.debug]
            found = next(
                (item for part in images for item in variables(part) if item.name == name), None
            )
            start = next(
                (segment.address + places.offsets[0] - segment.offset
                 for segment in image.segments
                 if segment.type == PT_LOAD
                 and 0 <= places.offsets[0] - segment.offset < segment.file_size),
                None,
            )  # fmt: skip
    except (PurebpfError, OSError, ValueError):
        return None
    return None if found is None or start is None else Datum(found.address - start, found.size)


def matching_files(pattern: str, pid: int = 0) -> list[str]:
    """List the ELF files that fit a pattern; a path without wildcards is itself.

    A name without a slash is that of a library or a program of `PATH`.

    With a process in another root directory, the paths are those that the process has.
    """
    if not glob.has_magic(pattern):
        return [pattern if pid or "/" in pattern else _find_by_name(pattern)]
    root = root_of(pid) if pid and pattern.startswith("/") else ""
    if root and may_meet_one(f"{root}/"):  # a list of its folders might never come
        return [path for path in mapped_files(pid) if fnmatchcase(path, pattern)]
    return sorted(
        path.removeprefix(root) for path in glob.glob(glob.escape(root) + pattern) if _is_elf(path)
    )


def _find_by_name(name: str) -> str:
    """Return the path of a library or a program; the name if there is none."""
    try:
        return find_file(name, name)
    except AttachError:  # `explain_missing` tells
        return name


def _is_elf(path: str) -> bool:
    try:
        with opened_regular(path) as fd:
            return os.pread(fd, len(_ELF), 0) == _ELF
    except OSError:
        return False


def mapped_files(pid: int) -> list[str]:
    """List the programs and libraries whose code a process has mapped."""
    return list(dict.fromkeys(mapping.file.path for mapping in code_mappings(pid)))
