"""Facts from the file of an interpreter: the places of `_PyRuntime` and its evaluation loop."""

from __future__ import annotations

import struct
import sys
from array import array
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import islice

from purebpf.errors import FormatError
from purebpf.symbols.elf_image import ElfImage, Section
from purebpf.tuples import NamedTuple

__all__ = ["CodeRange", "RuntimeFile", "cold_part", "read_runtime_file"]

_SYMBOL = struct.Struct("<IBBHQQ")
_RUNTIME, _LOOP, _VERSION = b"_PyRuntime", b"_PyEval_EvalFrameDefault", b"Py_Version"
_PREFIX = _LOOP + b"."
"""What a compiler splits off: `.cold`, `.cold.0`, `.lto_priv.0`."""
_MOST_SYMBOLS = 1 << 20
_MOST_PARTS = 16
_MOST_CODE = 1 << 20
"""Bytes of an evaluation loop: those of CPython have 30 to 200 thousand."""
_MOST_JUMPS = 10_000
_JCC = 0x0F
_JCC_KINDS = range(0x80, 0x90)


class CodeRange(NamedTuple):
    """Addresses in the file, `start` up to `end`."""

    start: int
    end: int


class RuntimeFile(NamedTuple):
    """Addresses in the file, as it is linked.

    Attributes:
        runtime: of `_PyRuntime`.
        loop: the parts of the evaluation loop that symbols name; () where none does.
        version: of the number `Py_Version` (since 3.11); 0: there is none.
    """

    runtime: int
    loop: tuple[CodeRange, ...]
    version: int


def read_runtime_file(image: ElfImage) -> RuntimeFile | None:
    """The interpreter in a file; None: it has none.

    By its symbols, or the section `.PyRuntime` (since 3.10), which stripping leaves.
    """
    if not image.is64 or image.order != "<":
        return None
    section = image.section(".PyRuntime")
    runtime, version = (section.address if section else 0), 0
    loop: dict[CodeRange, None] = {}
    for name in (".dynsym", ".symtab"):
        for symbol, address, size in _symbols(image, image.section(name)):
            if symbol == _RUNTIME:
                runtime = address
            elif symbol == _VERSION:
                version = address
            elif size:
                loop[CodeRange(address, address + size)] = None
    parts = tuple(islice(loop, _MOST_PARTS))
    return RuntimeFile(runtime, parts, version) if runtime else None


def _symbols(image: ElfImage, table: Section | None) -> list[tuple[bytes, int, int]]:
    """Yield the requested symbols that a table defines: name, address, size."""
    if table is None or table.size > _MOST_SYMBOLS * _SYMBOL.size:
        return []
    try:
        strings = image.contents(image.linked_section(table))
        wanted = _names(strings)
        if not wanted:
            return []
        raw = image.contents(table)
    except FormatError:
        return []
    symbols = []
    for at in _places(raw, wanted):
        name, _, _, section, address, size = _SYMBOL.unpack_from(raw, at)
        if section:
            symbols.append((wanted[name], address, size))
    return symbols


def _places(raw: bytes, wanted: dict[int, bytes]) -> Iterator[int]:
    """Return the places of the symbols with these names: a table of 10,000 is searched in a
    millisecond.
    """
    words = array("I", raw[: len(raw) - len(raw) % _SYMBOL.size])
    if sys.byteorder == "big":
        words.byteswap()
    names = words[:: _SYMBOL.size // words.itemsize]
    for name in wanted:
        at = -1
        with suppress(ValueError):
            while True:
                at = names.index(name, at + 1)
                yield at * _SYMBOL.size


def _names(strings: bytes) -> dict[int, bytes]:
    """Return the places of the requested names in a string table."""
    names = {}
    for name in (_RUNTIME, _LOOP, _VERSION):
        at = strings.find(b"\0" + name + b"\0")
        if at >= 0:
            names[at + 1] = name
    at = strings.find(b"\0" + _PREFIX)
    while at >= 0 and len(names) < _MOST_PARTS:
        end = strings.find(b"\0", at + 1)
        names[at + 1] = strings[at + 1 : end]
        at = strings.find(b"\0" + _PREFIX, at + 1)
    return names


def cold_part(
    code: bytes, loop: CodeRange, function: Callable[[int], tuple[int, int] | None]
) -> CodeRange | None:
    """The part of the evaluation loop that the compiler put elsewhere, without its symbol.

    Conditional jumps leave a function for its own cold part only: the target of most of them.

    Args:
        code: the instructions of `loop`; not more than a MiB of them is looked at.
        loop: where they are.
        function: where the code around an address starts and ends, by call frame information.
    """
    targets: Counter[tuple[int, int]] = Counter()
    code = code[:_MOST_CODE]
    jumps = 0
    other_part: tuple[int, int] | None = None
    at = code.find(_JCC)
    while 0 <= at <= len(code) - 6 and jumps < _MOST_JUMPS:
        if code[at + 1] in _JCC_KINDS:
            target = (
                loop.start + at + 6 + int.from_bytes(code[at + 2 : at + 6], "little", signed=True)
            )
            if not loop.start <= target < loop.end:
                jumps += 1
                if other_part is None or not other_part[0] <= target < other_part[1]:
                    other_part = function(target)
                if other_part is not None and other_part[0] != loop.start:
                    targets[other_part] += 1
        at = code.find(_JCC, at + 1)
    common = targets.most_common(1)
    return CodeRange(*common[0][0]) if common and common[0][1] > 1 else None
