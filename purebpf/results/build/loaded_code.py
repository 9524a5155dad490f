"""Kernel code that a recording describes by itself: its modules and BPF programs. Pure.

The addresses of both differ from boot to boot, so this kernel's symbols at those addresses say
nothing about them.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator

from purebpf.abi.perf import perf_event_type
from purebpf.errors import FormatError
from purebpf.symbols.intervals import Segments, flatten
from purebpf.tuples import NamedTuple
from purebpf.wire.perf_data import KERNEL
from purebpf.wire.perf_encode import MISC_KERNEL
from purebpf.wire.perf_records import Mmap, Mmap2, Other

__all__ = ["BPF", "LoadedCode", "LoadedRange", "module_name", "pack_ksymbol", "read_ksymbol"]

BPF = "[bpf]"
"""The module of BPF programs."""


_KSYMBOL = struct.Struct("=QIHH")  # addr, len, ksym_type, flags, then the name
_UNREGISTER = 1
_TYPE_BPF = 1
_ALIGN = 8
_GUEST = "[guest"


class LoadedRange(NamedTuple):
    """Addresses of code that was loaded while the kernel ran; `name` "": several had them."""

    start: int
    end: int
    name: str
    module: str


class LoadedCode:
    """The modules and BPF programs of a recording.

    Attributes:
        modules: by the name that the kernel gives them, the mapping that perf wrote.
    """

    def __init__(self) -> None:
        self.modules: dict[str, Mmap | Mmap2] = {}
        self._programs: dict[tuple[int, int, str], LoadedRange] = {}
        self._ranges: tuple[Segments, list[LoadedRange]] | None = None

    def add_mapping(self, mapping: Mmap | Mmap2) -> None:
        """Note a mapping of the kernel that is not the kernel's own code."""
        if not mapping.filename.startswith((KERNEL, _GUEST)):
            self.modules[module_name(mapping.filename)] = mapping
            self._ranges = None

    def add_symbol(self, record: Other) -> None:
        """Note a KSYMBOL record. Raises FormatError for one that breaks its format."""
        code = read_ksymbol(record.body)
        if code is not None:
            self._programs[code.start, code.end, code.name] = code
            self._ranges = None

    def find(self, address: int) -> LoadedRange | None:
        """The module or program of an address; the one that begins last, where several have it."""
        if self._ranges is None:
            ranges = sorted(_settle([*self._programs.values(), *self._modules()]))
            starts, ends = [code.start for code in ranges], [code.end for code in ranges]
            self._ranges = flatten(starts, ends), ranges
        segments, ranges = self._ranges
        owner = segments.owner(address)
        return None if owner < 0 else ranges[owner]

    def _modules(self) -> Iterator[LoadedRange]:
        for name, mapping in self.modules.items():
            end = min(mapping.addr + mapping.length, (1 << 64) - 1)
            yield LoadedRange(mapping.addr, end, name, name)


def _settle(ranges: Iterable[LoadedRange]) -> list[LoadedRange]:
    """One range for each start; without a name if code of several names began there."""
    settled: dict[int, LoadedRange] = {}
    for code in ranges:
        known = settled.setdefault(code.start, code)
        if known.name != code.name:
            settled[code.start] = known._replace(end=max(known.end, code.end), name="")
    return list(settled.values())


def read_ksymbol(body: bytes) -> LoadedRange | None:
    """The code that a KSYMBOL record announces; None for the end of some.

    Raises:
        FormatError: the record is too short.
    """
    if len(body) < _KSYMBOL.size:
        raise FormatError("ksymbol record", "body", f"{len(body)} bytes")
    start, length, type_, flags = _KSYMBOL.unpack_from(body)
    if flags & _UNREGISTER:
        return None
    name = body[_KSYMBOL.size :].partition(b"\0")[0].decode("utf-8", "surrogateescape")
    module = BPF if type_ == _TYPE_BPF or name.startswith("bpf_") else "kernel"
    return LoadedRange(start, min(start + length, (1 << 64) - 1), name, module)


def pack_ksymbol(code: LoadedRange) -> Other:
    """The record that announces a BPF program."""
    name = code.name.encode("utf-8", "surrogateescape") + b"\0"
    body = _KSYMBOL.pack(code.start, code.end - code.start, _TYPE_BPF, 0)
    body += name + bytes(-len(name) % _ALIGN)
    return Other(perf_event_type.PERF_RECORD_KSYMBOL, MISC_KERNEL, body)


def module_name(filename: str) -> str:
    """The kernel's name for a module, given its file or `[name]`, as perf writes them."""
    return filename.rpartition("/")[2].partition(".ko")[0].strip("[]").replace("-", "_")
