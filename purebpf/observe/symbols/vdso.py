"""The functions of the vDSO, the library that the kernel maps into every process (vdso(7))."""

from __future__ import annotations

import os

from purebpf.errors import FormatError
from purebpf.observe.symbols.elf_files import ElfFunctions, Problem, functions_of
from purebpf.symbols.elf_image import ElfImage
from purebpf.symbols.frame import Reason
from purebpf.symbols.proc_maps import Mapping, parse_maps
from purebpf.syscall import proc

__all__ = ["VDSO", "is_vdso", "vdso_build_id", "vdso_functions", "vdso_image"]

VDSO = "[vdso]"


def vdso_functions(mapping: Mapping) -> ElfFunctions | Problem:
    """The functions of a process's vDSO, given its mapping.

    All processes of one word size share one image, so it is read from our own memory; a mapping of
    another size belongs to a 32-bit process, whose image we lack.
    """
    own = _own()
    if own is None:
        return Problem(Reason.NOT_FOUND, "this process does not have a vDSO")
    size = own.end - own.start
    if mapping.end - mapping.start != size:
        return Problem(Reason.UNREADABLE, "the process has a vDSO of another kind")
    try:
        return functions_of(_image(own))
    except FormatError as error:
        return Problem(Reason.NOT_ELF, f"{error.where}: {error.problem}")
    except OSError:
        return Problem(Reason.UNREADABLE, "/proc/self/mem")


def vdso_image(mapping: Mapping) -> ElfImage | None:
    """The image of a process's vDSO, given its mapping; None if it is not like ours."""
    own = _own()
    if own is None or mapping.end - mapping.start != own.end - own.start:
        return None
    try:
        return _image(own)
    except (FormatError, OSError):
        return None


def vdso_build_id() -> str:
    """The build id of our vDSO in hex, or "" where it cannot be read."""
    own = _own()
    try:
        return "" if own is None else _image(own).build_id
    except (FormatError, OSError):
        return ""


def is_vdso(build_id: str) -> bool:
    """Return True if this is the build id of our vDSO, in hex."""
    return bool(build_id) and build_id == vdso_build_id()


def _own() -> Mapping | None:
    own = parse_maps(proc.maps("self") or "")
    return next((mapping for mapping in own if mapping.file.path == VDSO), None)


def _image(own: Mapping) -> ElfImage:
    with open("/proc/self/mem", "rb", buffering=0) as memory:
        data = os.pread(memory.fileno(), own.end - own.start, own.start)
    return ElfImage.of_bytes(data, VDSO)
