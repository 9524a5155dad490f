"""The counters of a JVM in its own memory (`hsperfdata`, as jstat reads them). Pure.

The layout (perfMemory.hpp of OpenJDK): a header, and entries with a name and a value each.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

__all__ = ["read_counters"]

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
    if len(data) < _START + 8 or not data.startswith(_MAGIC):
        return {}
    order = "<" if data[4] == _LITTLE else ">"
    start, number = struct.unpack_from(f"{order}ii", data, _START)
    return dict(_entries(data, order, start, min(number, _MOST)))


def _entries(data: bytes, order: str, at: int, number: int) -> Iterator[tuple[str, int]]:
    for _ in range(number):
        if not 0 < at <= len(data) - _ENTRY:
            return
        size, name, vector, kind, _, _, _, value = struct.unpack_from(f"{order}iiiBBBBi", data, at)
        if size < _ENTRY or not _ENTRY <= name < size or not _ENTRY <= value <= size:
            return
        if kind == _LONG and not vector and at + value + 8 <= len(data):
            end = data.find(b"\0", at + name, at + size)
            text = data[at + name : max(end, at + name)].decode("ascii", "replace")
            yield text, struct.unpack_from(f"{order}q", data, at + value)[0]
        at += size
