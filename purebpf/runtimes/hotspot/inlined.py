"""The methods that a compiled method has inlined at an address.

A PcDesc leads from an address to a scope: the inlined method, its bytecode, and the scope that it
was inlined into (src/hotspot/share/code/pcDesc.hpp, scopeDesc.cpp). Return addresses have an exact
entry. Between them the next entry is the better guess.
"""

from __future__ import annotations

import struct
from bisect import bisect_left

from purebpf.runtimes.hotspot.code_cache import Blob, BlobKind
from purebpf.runtimes.hotspot.layout import ABSENT, Layout
from purebpf.runtimes.hotspot.unsigned5 import read_unsigned5
from purebpf.runtimes.memory import Memory, UnreadableError
from purebpf.tuples import NamedTuple

__all__ = ["Inlined", "InlinedMethods"]

_MOST_DEEP = 64
_DESC = struct.Struct("<iiii")
_WORD = 8
_LARGEST = 1 << 18
"""Bytes of the tables of one method."""
_END = 0x7FFFFFFF
"""The offset of the entry behind all others."""


class Inlined(NamedTuple):
    """A method that runs at an address.

    Attributes:
        method: its address.
        bytecode: the index of its instruction; below 0: not known, at its beginning.
    """

    method: int
    bytecode: int


class _Tables(NamedTuple):
    """The tables of a compiled method: offsets of code and of scopes, in order, and the scopes."""

    offsets: list[int]
    scopes: list[int]
    data: bytes
    metadata: bytes


class InlinedMethods:
    """Decodes scopes.

    Args:
        memory: the process's.
        layout: of its JVM.
    """

    def __init__(self, memory: Memory, layout: Layout) -> None:
        self._memory = memory
        self._layout = layout
        self._known: dict[tuple[int, int], _Tables | None] = {}

    def find(self, blob: Blob, pc: int) -> list[Inlined]:
        """The methods at an address of a compiled method, innermost first.

        The last one is the compiled method itself, if its tables can be read.

        Args:
            blob: the compiled method.
            pc: a return address, or the address of the next instruction.
        """
        root = Inlined(blob.method, -1)
        if blob.kind is not BlobKind.COMPILED:
            return [root]
        tables = self._tables(blob)
        if tables is None or not tables.offsets:
            return [root]
        at = min(bisect_left(tables.offsets, pc - blob.begin), len(tables.offsets) - 1)
        return self._scopes(tables, tables.scopes[at]) or [root]

    def has_place(self, blob: Blob, pc: int) -> bool:
        """Return True if a call of a compiled method returns to an address, as its tables say."""
        if blob.kind is not BlobKind.COMPILED:
            return True
        tables = self._tables(blob)
        if tables is None:
            return False
        at = bisect_left(tables.offsets, pc - blob.begin)
        return tables.offsets[at : at + 1] == [pc - blob.begin]

    def places(self, blob: Blob) -> tuple[list[int], list[tuple[Inlined, ...]]]:
        """All places of a compiled method: offsets in its code, in order, with their methods.

        An address has the methods of the first offset at or behind it.
        """
        root = (Inlined(blob.method, -1),)
        tables = self._tables(blob) if blob.kind is BlobKind.COMPILED else None
        if tables is None or not tables.offsets:
            return [0], [root]
        known: dict[int, tuple[Inlined, ...]] = {}
        for scope in tables.scopes:
            if scope not in known:
                known[scope] = tuple(self._scopes(tables, scope)) or root
        return tables.offsets, [known[scope] for scope in tables.scopes]

    def _scopes(self, tables: _Tables, scope: int) -> list[Inlined]:
        """Follow scopes to the outermost one; [] if they lead elsewhere."""
        found: list[Inlined] = []
        before = len(tables.data)
        while scope and len(found) < _MOST_DEEP:
            if not 0 < scope < before:
                return []
            before = scope
            try:
                sender, at = self._number(tables.data, scope)
                method, at = self._number(tables.data, at)
                bytecode, _ = self._number(tables.data, at)
            except ValueError:
                return []
            place = _WORD * (method - 1)
            if not 0 <= place < len(tables.metadata):
                return []
            address = int.from_bytes(tables.metadata[place : place + _WORD], "little")
            found.append(Inlined(address, bytecode - 1))
            scope = sender
        return [] if scope else found

    def _number(self, data: bytes, at: int) -> tuple[int, int]:
        return read_unsigned5(data, at, self._layout.least_byte)

    def _tables(self, blob: Blob) -> _Tables | None:
        key = blob.at, blob.compile_id
        if key not in self._known:
            try:
                self._known[key] = self._read(blob)
            except UnreadableError:
                self._known[key] = None
        return self._known[key]

    def _read(self, blob: Blob) -> _Tables:
        pcs, scopes, metadata = (
            self._of_offsets(blob) if self._layout.has_offsets else self._of_pointers(blob)
        )
        raw = self._range(*pcs)
        entries = [entry[:2] for entry in _DESC.iter_unpack(raw[: len(raw) & -_DESC.size])]
        entries = sorted(entry for entry in entries if 0 <= entry[0] < _END)
        return _Tables(
            [offset for offset, _ in entries],
            [scope for _, scope in entries],
            self._range(*scopes),
            self._range(*metadata),
        )

    def _of_pointers(self, blob: Blob) -> tuple[tuple[int, int], ...]:
        """Return the ranges of PcDescs, scopes and metadata, to JDK 22."""
        layout = self._layout
        scopes = _u64(blob, layout.nmethod_scopes)
        pcs = blob.at + _i32(blob, layout.nmethod_pcs)
        metadata = blob.at + _i32(blob, layout.nmethod_metadata)
        end = blob.at + _i32(blob, layout.nmethod_dependencies)
        return (pcs, end), (scopes, pcs), (metadata, scopes)

    def _of_offsets(self, blob: Blob) -> tuple[tuple[int, int], ...]:
        """Return the same from JDK 23 on: the data that do not change are beside the code."""
        layout = self._layout
        data = _u64(blob, layout.nmethod_immutable)
        end = data + _i32(blob, layout.nmethod_immutable_size)
        pcs = data + _i32(blob, layout.nmethod_pcs)
        scopes = data + _i32(blob, layout.nmethod_scopes)
        if layout.blob_mutable != ABSENT:
            mutable = _u64(blob, layout.blob_mutable)
            metadata = mutable + _i32(blob, layout.blob_relocation_size)
            last = mutable + _i32(blob, layout.blob_mutable_size)
        else:
            metadata = blob.end + (_i32(blob, layout.nmethod_metadata) & 0xFFFF)
            last = metadata + _LARGEST // 64
        return (pcs, scopes), (scopes, end), (metadata, last)

    def _range(self, start: int, end: int) -> bytes:
        if not 0 <= end - start <= _LARGEST:
            raise UnreadableError
        return self._memory.bytes(start, end - start)


def _u64(blob: Blob, at: int) -> int:
    return int.from_bytes(blob.header[at : at + 8], "little")


def _i32(blob: Blob, at: int) -> int:
    return int.from_bytes(blob.header[at : at + 4], "little", signed=True)
