"""The functions of the vDSO, the library that the kernel maps into every process (vdso(7))."""

from __future__ import annotations

import os
from functools import cache

from purebpf.errors import FormatError, KernelError
from purebpf.observe.symbols.elf_files import ElfFunctions, Problem, functions_of
from purebpf.symbols.elf_image import ElfImage
from purebpf.symbols.frame import Reason
from purebpf.symbols.proc_maps import Mapping, parse_maps
from purebpf.syscall import proc
from purebpf.syscall.process_memory import open_process_memory

__all__ = ["VDSO", "is_own_kind", "is_vdso", "vdso_build_id", "vdso_bytes", "vdso_functions"]

VDSO = "[vdso]"

_32_BITS = 1 << 32
_MOST = 1 << 16
"""Bytes of a vDSO of 32 bits. Linux 6.18 has 8 KiB."""


def vdso_functions(content: bytes) -> ElfFunctions | Problem:
    """The functions of a vDSO, as `vdso_bytes` returns it."""
    if not content:
        return Problem(Reason.UNREADABLE, "the vDSO of the process cannot be read")
    try:
        return functions_of(ElfImage.of_bytes(content, VDSO))
    except FormatError as error:
        return Problem(Reason.NOT_ELF, f"{error.where}: {error.problem}")


def vdso_bytes(mapping: Mapping, pid: int | None) -> bytes:
    """The vDSO of a process; nothing where it cannot be read.

    All 64-bit processes share one image, which is read from our own memory. That of a 32-bit
    process, below 4 GiB, is read from its memory.

    Args:
        mapping: of the process.
        pid: the process; None: it cannot be read.
    """
    size = mapping.end - mapping.start
    if not is_own_kind(mapping):
        return _of_process(mapping, pid) if pid and size <= _MOST else b""
    own = _own()
    return own if len(own) == size else b""


def is_own_kind(mapping: Mapping) -> bool:
    """Return True if a process has the vDSO of 64-bit processes, given its mapping."""
    return mapping.end > _32_BITS


def vdso_build_id() -> str:
    """The build id of our vDSO in hex, or "" where it cannot be read."""
    own = _own()
    try:
        return ElfImage.of_bytes(own, VDSO).build_id if own else ""
    except FormatError:
        return ""


def is_vdso(build_id: str) -> bool:
    """Return True if this is the build id of our vDSO, in hex."""
    return bool(build_id) and build_id == vdso_build_id()


@cache
def _own() -> bytes:
    """Our own vDSO; nothing if there is none, or it cannot be read."""
    for mapping in parse_maps(proc.maps("self") or ""):
        if mapping.file.path == VDSO:
            try:
                with open("/proc/self/mem", "rb", buffering=0) as memory:
                    return os.pread(memory.fileno(), mapping.end - mapping.start, mapping.start)
            except OSError:
                return b""
    return b""


def _of_process(mapping: Mapping, pid: int) -> bytes:
    try:
        memory = open_process_memory(pid)
    except KernelError:
        return b""
    if memory is None:
        return b""
    with memory:
        return memory.read(mapping.start, mapping.end - mapping.start)
