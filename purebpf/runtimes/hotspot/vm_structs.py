"""The fields of HotSpot's C++ classes, as a JVM describes them for the Serviceability Agent.

libjvm.so exports a table of fields with their offsets, gHotSpotVMStructs, and the layout of its
entries (src/hotspot/share/runtime/vmStructs.cpp). So one reader serves all versions that have the
fields it asks for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from purebpf.runtimes.cpython.memory import Memory, UnreadableError
from purebpf.tuples import NamedTuple

__all__ = ["EXPORTS", "VmField", "read_vm_structs"]

_TABLE = "gHotSpotVMStructs"
_ENTRY = "gHotSpotVMStructEntry"
_PARTS = ("TypeNameOffset", "FieldNameOffset", "IsStaticOffset", "OffsetOffset", "AddressOffset")
_STRIDE = f"{_ENTRY}ArrayStride"
EXPORTS = (_TABLE, _STRIDE, *(f"{_ENTRY}{part}" for part in _PARTS))
"""Symbols of libjvm.so that lead to the table."""
_MOST_ENTRIES = 20_000
_LONGEST = 120


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
    at = memory.number(symbols[_TABLE])
    stride = memory.number(symbols[_STRIDE])
    kind, name, is_static, offset, address = (
        memory.number(symbols[f"{_ENTRY}{part}"]) for part in _PARTS
    )
    if not 0 < stride <= _LONGEST:
        raise UnreadableError
    fields: dict[tuple[str, str], VmField] = {}
    for _ in range(_MOST_ENTRIES):
        type_name = memory.number(at + kind)
        if not type_name:
            break
        names = _text(memory, type_name), _text(memory, memory.number(at + name))
        if wanted(*names):
            static = memory.number(at + is_static, 4)
            where = memory.number(at + address) if static else 0
            fields[names] = VmField(memory.number(at + offset), where)
        at += stride
    return fields


def _text(memory: Memory, address: int) -> str:
    """A C string, which may end close to memory that is not there."""
    for size in (_LONGEST, 24, 8):
        try:
            raw = memory.bytes(address, size)
        except UnreadableError:
            continue
        return raw.partition(b"\0")[0].decode("ascii", "replace")
    return ""
