"""Facts from the file of an interpreter: the places of `_PyRuntime` and its evaluation loop."""

from __future__ import annotations

from itertools import islice

from purebpf.runtimes.file_symbols import find_symbols
from purebpf.symbols.code_range import CodeRange
from purebpf.symbols.elf_image import ElfImage
from purebpf.tuples import NamedTuple

__all__ = ["RuntimeFile", "read_runtime_file"]

_RUNTIME, _LOOP, _VERSION = b"_PyRuntime", b"_PyEval_EvalFrameDefault", b"Py_Version"
_PREFIX = _LOOP + b"."
"""What a compiler splits off: `.cold`, `.cold.0`, `.lto_priv.0`."""
_MOST_PARTS = 16


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
        for symbol, address, size in find_symbols(image, image.section(name), _names):
            if symbol == _RUNTIME:
                runtime = address
            elif symbol == _VERSION:
                version = address
            elif size:
                loop[CodeRange(address, address + size)] = None
    parts = tuple(islice(loop, _MOST_PARTS))
    return RuntimeFile(runtime, parts, version) if runtime else None


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
