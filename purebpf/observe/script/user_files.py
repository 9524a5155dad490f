"""Programs and libraries of this machine: their functions and static probes."""

from __future__ import annotations

import errno
import glob
import os

from purebpf.errors import AttachError, PurebpfError
from purebpf.loader.attach._common.probe_place import find_file, find_places, open_image
from purebpf.loader.attach.usdt import resolve_addresses
from purebpf.script.host import CodePlace, Datum, StaticProbe
from purebpf.symbols.elf_image import PT_LOAD
from purebpf.symbols.elf_names import function_extents, functions_named, variables
from purebpf.symbols.proc_maps import parse_maps
from purebpf.symbols.usdt import usdt_probes
from purebpf.symbols.usdt_arguments import parse_arguments
from purebpf.syscall import proc

__all__ = [
    "explain_missing",
    "find_code",
    "find_variable",
    "in_process",
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


def matching_files(pattern: str) -> list[str]:
    """List the ELF files that fit a pattern; a path without wildcards is itself."""
    if not glob.has_magic(pattern):
        return [pattern]
    return sorted(path for path in glob.glob(pattern) if _is_elf(path))


def _is_elf(path: str) -> bool:
    if not os.path.isfile(path):
        return False
    try:
        with open(path, "rb") as file:
            return file.read(len(_ELF)) == _ELF
    except OSError:
        return False


def mapped_files(pid: int) -> list[str]:
    """List the programs and libraries whose code a process has mapped."""
    text = proc.maps(pid)
    paths = {
        entry.file.path: None for entry in parse_maps(text or "") if entry.file.path.startswith("/")
    }
    return list(paths)


def in_process(path: str, pid: int) -> str:
    """Return a path that leads to a file of a process in another mount namespace.

    A name without a slash means a file that the process has mapped, or a library: `libc`.
    """
    if not _has_own_mounts(pid):
        return path
    if "/" not in path:
        path = next((each for each in mapped_files(pid) if _has_name(each, path)), path)
    seen = f"/proc/{pid}/root{path}"
    return seen if path.startswith("/") and os.path.exists(seen) else path


def _has_own_mounts(pid: int) -> bool:
    """Return True for a process in another mount namespace than this one."""
    try:
        return os.stat(f"/proc/{pid}/ns/mnt") != os.stat("/proc/self/ns/mnt")
    except OSError:
        return False


def _has_name(path: str, name: str) -> bool:
    base = os.path.basename(path)
    return base == name or base.partition(".so")[0] in (name, f"lib{name}")
