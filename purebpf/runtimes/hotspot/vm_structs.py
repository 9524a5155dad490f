"""The tables in which HotSpot describes itself for the Serviceability Agent.

libjvm.so exports the fields of its C++ classes with their offsets (gHotSpotVMStructs), the sizes of
the classes (gHotSpotVMTypes), constants (gHotSpotVMIntConstants), and the layout of the entries of
each table (src/hotspot/share/runtime/vmStructs.cpp). So one reader serves all versions that have
the fields it asks for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from purebpf.runtimes.memory import Memory, UnreadableError
from purebpf.tuples import NamedTuple

__all__ = [
    "ALL_EXPORTS",
    "EXPORTS",
    "VmField",
    "read_vm_constants",
    "read_vm_structs",
    "read_vm_types",
]

_STRUCTS = ("TypeNameOffset", "FieldNameOffset", "IsStaticOffset", "OffsetOffset", "AddressOffset")
_TYPES = ("TypeNameOffset", "SizeOffset")
_CONSTANTS = ("NameOffset", "ValueOffset")


def _exports(table: str, entry: str, parts: tuple[str, ...]) -> tuple[str, ...]:
    """Name the symbols of a table: its own, the size of an entry, the offsets in an entry."""
    return (table, f"{entry}ArrayStride", *(f"{entry}{part}" for part in parts))


EXPORTS = _exports("gHotSpotVMStructs", "gHotSpotVMStructEntry", _STRUCTS)
"""Symbols of libjvm.so that lead to the table of fields."""
_TYPE_EXPORTS = _exports("gHotSpotVMTypes", "gHotSpotVMTypeEntry", _TYPES)
_CONSTANT_EXPORTS = _exports("gHotSpotVMIntConstants", "gHotSpotVMIntConstantEntry", _CONSTANTS)
ALL_EXPORTS = (*EXPORTS, *_TYPE_EXPORTS, *_CONSTANT_EXPORTS)
"""Symbols of libjvm.so that lead to all of its tables."""

_MOST_ENTRIES = 16_384
_INT = 0xFFFFFFFF
_LONGEST = 120
"""Bytes of a name, and of an entry."""


class VmField(NamedTuple):
    """A field: where it is in an object, or, of a static one, its address."""

    offset: int
    address: int


def read_vm_structs(
    memory: Memory, symbols: Mapping[str, int], wanted: Callable[[str, str], bool]
) -> dict[tuple[str, str], VmField]:
    """The fields of a JVM by class and name.

    Args:
        memory: the process's.
        symbols: addresses of `EXPORTS` in it.
        wanted: tells by class and name which fields to keep.

    Raises:
        UnreadableError: the table is not there.
    """
    texts = _Texts(memory)
    fields: dict[tuple[str, str], VmField] = {}
    for kind, name, is_static, offset, address in _entries(memory, symbols, EXPORTS):
        names = texts.at(kind), texts.at(name)
        if wanted(*names):
            fields[names] = VmField(offset, address if is_static & _INT else 0)
    return fields


def read_vm_types(memory: Memory, symbols: Mapping[str, int]) -> dict[str, int]:
    """The sizes of a JVM's classes by name, in bytes.

    Args:
        memory: the process's.
        symbols: addresses of `ALL_EXPORTS` in it.

    Raises:
        UnreadableError: the table is not there.
    """
    texts = _Texts(memory)
    entries = _entries(memory, symbols, _TYPE_EXPORTS)
    return {texts.at(name): size for name, size in entries}


def read_vm_constants(memory: Memory, symbols: Mapping[str, int]) -> dict[str, int]:
    """The constants of a JVM by name: signed, of 32 bits. Arguments and errors as above."""
    texts = _Texts(memory)
    constants = {}
    for name, value in _entries(memory, symbols, _CONSTANT_EXPORTS):
        low = value & _INT
        constants[texts.at(name)] = low - (low >> 31 << 32)
    return constants


def _entries(
    memory: Memory, symbols: Mapping[str, int], exports: tuple[str, ...]
) -> Iterator[tuple[int, ...]]:
    """Yield the words of each entry, in the order of its parts; the last entry has no name."""
    at = memory.number(symbols[exports[0]])
    stride = memory.number(symbols[exports[1]])
    offsets = [memory.number(symbols[name]) for name in exports[2:]]
    if not 0 < stride <= _LONGEST or max(offsets) > stride:
        raise UnreadableError
    for _ in range(_MOST_ENTRIES):
        raw = memory.bytes(at, stride)
        words = tuple(int.from_bytes(raw[offset : offset + 8], "little") for offset in offsets)
        if not words[0]:
            return
        yield words
        at += stride
    raise UnreadableError


class _Texts:
    """C strings, each read once: classes are named by many entries."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._known: dict[int, str] = {0: ""}

    def at(self, address: int) -> str:
        """A C string, which may end close to memory that is not there."""
        if address not in self._known:
            self._known[address] = self._read(address)
        return self._known[address]

    def _read(self, address: int) -> str:
        for size in (_LONGEST, 24, 8):
            try:
                raw = self._memory.bytes(address, size)
            except UnreadableError:
                continue
            return raw.partition(b"\0")[0].decode("ascii", "replace")
        return ""
