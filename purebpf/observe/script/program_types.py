"""DWARF of programs and their debug files, for the parameters of functions and for structs."""

from __future__ import annotations

import io
import os
from functools import cached_property
from typing import IO

from purebpf.dataflow.dwarf import DebugInfo, Function
from purebpf.dataflow.program import DWARF_FAULTS
from purebpf.dataflow.types import Type
from purebpf.errors import PurebpfError
from purebpf.files.regular_file import open_regular
from purebpf.loader.attach._common.probe_place import find_file, find_places
from purebpf.loader.host.debug_files import debug_file, open_part
from purebpf.observe.script.user_files import find_code
from purebpf.script.host import Parameters, ProgramTypes
from purebpf.symbols.elf_image import PT_LOAD, ElfImage

__all__ = ["find_line", "read_types"]

_CLONES = (".isra", ".constprop", ".part", ".cold")
"""What gcc adds to the names of functions that it changed."""


class _FunctionTypes:
    """The types that the unit of a function has.

    Attributes:
        why_no_parameters: the reason why registers may not have the parameters there, or "".
    """

    def __init__(self, info: DebugInfo, function: Function, why_no_parameters: str) -> None:
        self._info, self._function = info, function
        self.why_no_parameters = why_no_parameters

    @cached_property
    def _parameters(self) -> Parameters:
        try:
            return self._function.parameters
        except DWARF_FAULTS:
            return ()

    def parameters(self) -> Parameters:
        """Return the names and the types of the parameters."""
        return self._parameters

    def named(self, tag: str, name: str) -> Type | None:
        """Return a type of the unit."""
        try:
            return self._info.named(self._function.start, tag, name)
        except DWARF_FAULTS:
            return None


def read_types(path: str, function: str) -> ProgramTypes | None:
    """Return the types for a function of a file; None if DWARF does not describe it."""
    try:
        places = find_places(f"{path}:{function}", "uprobe")
        image, info = _read_dwarf(places.path)
        address = _address(image, places.offsets[0])
        if info is None or address is None:
            return None
        described = info.function(address)
        if described is None:
            return None
        why = _explain_parameters(described, address, places.path)
    except (*DWARF_FAULTS, PurebpfError, OSError):
        return None
    return _FunctionTypes(info, described, why)


def _explain_parameters(function: Function, address: int, path: str) -> str:
    """Return the reason why registers may not have the parameters of a function, or ""."""
    if address != function.start:
        return "it is not where the function begins"
    symbol = find_code(path, address)
    if symbol is not None and any(word in symbol.function for word in _CLONES):
        return "it is a copy of the function, whose parameters the compiler changed"
    return function.unusual_call


def find_line(path: str, source: str, line: int, column: int) -> int | None:
    """Return the address of a source line, as the file was linked; None if it has no code."""
    try:
        _, info = _read_dwarf(find_file(path, "uprobe"))
        return None if info is None else info.line_address(source, line, column)
    except (*DWARF_FAULTS, PurebpfError, OSError):
        return None


class _PartsOf:
    """Reads the other files with parts of a program's DWARF."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __call__(self, part: str) -> IO[bytes] | None:
        fd = open_part(part, (), owner=os.stat(self._path).st_uid)
        if fd is None:
            return None
        with os.fdopen(fd, "rb") as stream:
            return io.BytesIO(stream.read())


def _address(image: ElfImage, offset: int) -> int | None:
    """Return the address, as the file was linked, of a file offset."""
    for segment in image.segments:
        if segment.type == PT_LOAD and 0 <= offset - segment.offset < segment.file_size:
            return segment.address + offset - segment.offset
    return None


def _read_dwarf(path: str) -> tuple[ElfImage, DebugInfo | None]:
    """Return the headers of a file, and its DWARF or its debug file's; None: there is none."""
    with os.fdopen(open_regular(path), "rb") as stream:
        data, owner = stream.read(), os.fstat(stream.fileno()).st_uid
        image = ElfImage.of_bytes(data)
        own = path
        if not _has_types(image):
            debug = debug_file(image, path, (), _has_types, owner=owner)
            if debug is None:
                return image, None
            own = debug.path
            with os.fdopen(debug.fd, "rb") as separate:
                data = separate.read()
    return image, DebugInfo(io.BytesIO(data), _PartsOf(path), f"{path}.dwp", own)


def _has_types(image: ElfImage) -> bool:
    return image.section(".debug_info") is not None
