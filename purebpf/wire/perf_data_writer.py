"""Writing perf.data as the records come: nothing is kept, and the header is completed at the end.

A writer is made with the events, gets the bytes of the rings (`write`) and the ends of the rounds
in which all of them were read (`end_round`), and at last the features (`finish`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from purebpf.wire.perf_data import (
    HEADER,
    MAGIC,
    SECTION,
    Feature,
    RecordedEvent,
    Section,
    UserRecord,
    shortest_attr,
)
from purebpf.wire.perf_data_features import pack_events, pack_numbers
from purebpf.wire.perf_ring import HEADER as RECORD_HEADER
from purebpf.wire.perf_ring import Buffer

__all__ = ["PerfDataWriter"]

_SIZE_IN_ATTR = slice(4, 8)
_FINISHED_ROUND = RECORD_HEADER.pack(UserRecord.FINISHED_ROUND, 0, RECORD_HEADER.size)


class Target(Protocol):
    """A binary file that `write` takes everything of; seekable, since the header comes last."""

    def write(self, data: Buffer, /) -> object:
        """Write all of it."""

    def seek(self, offset: int, /) -> object:
        """The next byte is written there."""


class PerfDataWriter:
    """A file that grows.

    Records must be whole when `finish` is called, and those between two `end_round` calls must
    not be older than what was there two calls before: perf sorts no further. That holds when every
    ring is emptied once a round. All events must agree on where their samples keep their id
    (PERF_SAMPLE_IDENTIFIER does it), unless there is only one.

    Args:
        file: at its start, and empty.
        events: what was recorded; the first one's layout is also that of records without an id.

    Attributes:
        data_size: bytes of records so far.
    """

    def __init__(self, file: Target, events: Sequence[RecordedEvent]) -> None:
        self._file = file
        self._attr_size = shortest_attr([event.attr for event in events])
        size_field = self._attr_size.to_bytes(4, "little")
        self.events = tuple(
            event._replace(
                attr=event.attr[: _SIZE_IN_ATTR.start]
                + size_field
                + event.attr[_SIZE_IN_ATTR.stop : self._attr_size].ljust(self._attr_size - 8, b"\0")
            )
            for event in events
        )
        self.data_size = 0
        self._ended_at = 0
        self._begin()

    def _begin(self) -> None:
        """The header without sizes, the ids, and the table of attributes."""
        ids_at = HEADER.size
        table, numbers = [], []
        for event in self.events:
            packed = pack_numbers(*event.ids)
            table.append(event.attr + SECTION.pack(ids_at, len(packed)))
            numbers.append(packed)
            ids_at += len(packed)
        self._attrs = Section(ids_at, sum(map(len, table)))
        self._data_at = self._attrs.offset + self._attrs.size
        self._file.write(bytes(HEADER.size) + b"".join(numbers) + b"".join(table))

    def write(self, records: Buffer) -> None:
        """Append records; one may continue in the next call."""
        self._file.write(records)
        self.data_size += len(records)

    def end_round(self) -> None:
        """All that was in the rings was written; says so only when there was anything."""
        if self.data_size != self._ended_at:
            self.write(_FINISHED_ROUND)
            self._ended_at = self.data_size

    def finish(self, features: Mapping[Feature, bytes]) -> None:
        """Write the features behind the data, and then the header.

        EVENT_DESC is added. The file is not closed.
        """
        found = {**features, Feature.EVENT_DESC: pack_events(self.events, self._attr_size)}
        offset = self._data_at + self.data_size + SECTION.size * len(found)
        table, bitmap = [], 0
        for feature in sorted(found):
            table.append(SECTION.pack(offset, len(found[feature])))
            offset += len(found[feature])
            bitmap |= 1 << feature
        self._file.write(b"".join(table))
        for feature in sorted(found):
            self._file.write(found[feature])
        self._file.seek(0)
        self._file.write(self._header(bitmap))

    def _header(self, bitmap: int) -> bytes:
        words = [bitmap >> 64 * word & (1 << 64) - 1 for word in range(4)]
        entry = self._attr_size + SECTION.size
        data = Section(self._data_at, self.data_size)
        return HEADER.pack(MAGIC, HEADER.size, entry, *self._attrs, *data, 0, 0, *words)
