"""Writes perf.data as the records come: it stores nothing, and the file is always readable.

A writer starts with the events and the facts about the machine, gets the bytes of the rings
(`write`) and the ends of the rounds in which all of them were read (`end_round`), and at last the
other features (`finish`). A process that is killed leaves a file with everything up to the last end
of a round.
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


class BinaryFile(Protocol):
    """A binary file that `write` takes everything of; seekable, since the header grows."""

    def write(self, data: Buffer, /) -> object:
        """Write all of it."""

    def seek(self, offset: int, /) -> object:
        """The next byte is written there."""


class PerfDataWriter:
    """A file that grows.

    Records must be whole when `finish` is called, and records between two `end_round` calls must
    not be older than those two calls before: perf sorts no further. This holds when every ring is
    emptied once a round. All events must agree on the place of the id in their samples
    (PERF_SAMPLE_IDENTIFIER does it), unless there is only one.

    Args:
        file: at its start, and empty.
        events: the recorded events; the first one's layout also applies to records without an id.
        features: the features known now. EVENT_DESC is added.

    Attributes:
        data_size: bytes of records so far.
    """

    def __init__(
        self,
        file: BinaryFile,
        events: Sequence[RecordedEvent],
        features: Mapping[Feature, bytes] | None = None,
    ) -> None:
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
        self._ended_at = self._readable_size = 0
        self._is_complete = False
        self._begin({**(features or {}), Feature.EVENT_DESC: self._descriptions()})

    def _descriptions(self) -> bytes:
        return pack_events(self.events, self._attr_size)

    def _begin(self, features: Mapping[Feature, bytes]) -> None:
        """The header, the ids, the table of attributes, and the features known so far.

        Only their table must be behind the data (perf.data-file-format.txt, "Feature sections").
        """
        ids_at = HEADER.size
        table, numbers = [], []
        for event in self.events:
            packed = pack_numbers(*event.ids)
            table.append(event.attr + SECTION.pack(ids_at, len(packed)))
            numbers.append(packed)
            ids_at += len(packed)
        self._attrs = Section(ids_at, sum(map(len, table)))
        place = self._attrs.offset + self._attrs.size
        self._features: dict[Feature, Section] = {}
        for feature, content in features.items():
            self._features[feature] = Section(place, len(content))
            place += len(content)
        padding = bytes(-place % 8)
        self._data_at = place + len(padding)
        self._file.write(b"".join((self._header(), *numbers, *table, *features.values(), padding)))
        self._complete()

    def write(self, records: Buffer) -> None:
        """Append records; one may continue in the next call."""
        if self._is_complete:  # what is written now replaces the table of features
            self._is_complete = False
            self._write_at(0, self._header())
            self._file.seek(self._data_at + self.data_size)
        self._file.write(records)
        self.data_size += len(records)

    def end_round(self) -> None:
        """All that was in the rings was written; says so only when there was anything."""
        if self.data_size != self._ended_at:
            self.write(_FINISHED_ROUND)
            self._ended_at = self.data_size
            self._complete()

    def finish(self, features: Mapping[Feature, bytes]) -> None:
        """Write the other features behind the data, and complete the file, which is not closed."""
        numbers = self._features.keys() | features.keys()
        place = self._data_at + self.data_size + SECTION.size * len(numbers)
        self._file.seek(place)
        self._is_complete = False
        self._write_at(0, self._header())
        for feature, content in sorted(features.items()):
            self._write_at(place, content)
            self._features[feature] = Section(place, len(content))
            place += len(content)
        self._complete()

    def _complete(self) -> None:
        """Let the header say how far the data goes: a reader finds all that was written so far.

        The header is always written in one piece, so a kill leaves this one or the one before.
        """
        table = [SECTION.pack(*section) for _, section in sorted(self._features.items())]
        self._write_at(self._data_at + self.data_size, b"".join(table))
        self._readable_size = self.data_size
        self._is_complete = True
        self._write_at(0, self._header())

    def _write_at(self, offset: int, data: bytes) -> None:
        self._file.seek(offset)
        self._file.write(data)

    def _header(self) -> bytes:
        """As far as the file is complete; the features count only while their table is there."""
        bitmap = sum(1 << feature for feature in self._features) if self._is_complete else 0
        words = [bitmap >> 64 * word & (1 << 64) - 1 for word in range(4)]
        entry = self._attr_size + SECTION.size
        data = Section(self._data_at, self._readable_size)
        return HEADER.pack(MAGIC, HEADER.size, entry, *self._attrs, *data, 0, 0, *words)
