"""The counters of a JVM in its own memory (`hsperfdata`, as jstat reads them). Pure.

The layout (perfMemory.hpp of OpenJDK): a header, and entries with a name and a value each.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

__all__ = ["find_counter", "read_counters"]

_MAGIC = b"\xca\xfe\xc0\xc0"
_LITTLE = 1
_START, _ENTRY = 24, 20
"""Of the header's two last words: where the entries begin, and how many there are."""
_MOST = 10_000
_LONG = ord("J")


def read_counters(data: bytes) -> dict[str, int]:
    """The counters by name, such as `sun.gc.collector.0.invocations`; {} for other data.

    Entries that are damaged, or are not written yet, end the list.
    """
    order = _order(data)
    return {name: struct.unpack_from(f"{order}q", data, at)[0] for name, at in _entries(data)}


def find_counter(data: bytes, wanted: str) -> int | None:
    """The place of a counter's value; None: there is no such counter."""
    return next((at for name, at in _entries(data) if name == wanted), None)


def _order(data: bytes) -> str:
    return "<" if data[4:5] == bytes([_LITTLE]) else ">"


def _entries(data: bytes) -> Iterator[tuple[str, int]]:
    """Yield names, and the places of values."""
    if len(data) < _START + 8 or not data.startswith(_MAGIC):
        return
    order = _order(data)
    at, number = struct.unpack_from(f"{order}ii", data, _START)
    number = min(number, _MOST)
    for _ in range(number):
        if not 0 < at <= len(data) - _ENTRY:
            return
        size, name, vector, kind, _, _, _, value = struct.unpack_from(f"{order}iiiBBBBi", data, at)
        if size < _ENTRY or not _ENTRY <= name < size or not _ENTRY <= value <= size:
            return
        if kind == _LONG and not vector and at + value + 8 <= len(data):
            end = data.find(b"\0", at + name, at + size)
            text = data[at + name : max(end, at + name)].decode("ascii", "replace")
            yield text, at + value
        at += size
