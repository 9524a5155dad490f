"""The stream that perf writes to a pipe (`perf record -o -`): the parts of a file's header come as
records.

tools/perf/Documentation/perf.data-file-format.txt of the Linux source, "pipe-mode data": a header
of 16 bytes, then records of the tool that describe the events and the machine, among the kernel's.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from purebpf.errors import FormatError
from purebpf.tuples import NamedTuple
from purebpf.wire.perf_data import Feature, RecordedEvent, Section, UserRecord
from purebpf.wire.perf_data_types import name_by_type
from purebpf.wire.perf_ring import HEADER

__all__ = ["HEADER_SIZE", "Described", "describe"]

HEADER_SIZE = 16
"""Of the whole header, and the size that it says: by that it is known."""

_CHUNK = 1 << 20
_U32, _U64 = struct.Struct("=I"), struct.Struct("=Q")
_UPDATE = struct.Struct("=QQ")  # what is updated, and the id of the event
_NAME = 2  # EVENT_UPDATE__NAME
_SHORTEST_ATTR = 64


class Described(NamedTuple):
    """The records that describe a stream.

    Attributes:
        events: named where the stream has names.
        features: as they are in the sections of a file.
        data: where the records are.
        skipped: the raw bytes between records, by the offset behind the record that announces them.
    """

    events: list[RecordedEvent]
    features: dict[int, bytes]
    data: Section
    skipped: dict[int, int]


def describe(read: Callable[[int, int], bytes], size: int, source: str) -> Described:
    """Go through a stream of so many bytes once.

    Raises:
        FormatError: a record breaks its format.
    """
    stream = _Stream(read, size, source)
    stream.go_through()
    return stream.described()


class _Stream:
    def __init__(self, read: Callable[[int, int], bytes], size: int, source: str) -> None:
        self._read = read
        self._size = size
        self._source = source
        self._at = HEADER_SIZE
        self._events: list[RecordedEvent] = []
        self._features: dict[int, bytes] = {}
        self._build_ids: list[bytes] = []
        self._names: dict[int, str] = {}
        self._types: dict[int, str] = {}
        self._skipped: dict[int, int] = {}

    def described(self) -> Described:
        """The result of `go_through`."""
        events = [event._replace(name=self._name(event)) for event in self._events]
        features = dict(self._features)
        if self._build_ids:
            features[Feature.BUILD_ID] = b"".join(self._build_ids)
        data = Section(HEADER_SIZE, self._size - HEADER_SIZE)
        return Described(events, features, data, self._skipped)

    def _name(self, event: RecordedEvent) -> str:
        """Return the name of an event; "": the stream has none."""
        names = [self._names[id_] for id_ in event.ids if id_ in self._names]
        return names[0] if names else name_by_type(event, self._types)

    def go_through(self) -> None:
        """Take in each record of the tool; others are not looked at."""
        unpack, header = HEADER.unpack_from, HEADER.size
        chunk, start = b"", self._at  # `start`: the offset of the chunk
        while self._at < self._size:
            if self._at + header > start + len(chunk):
                chunk, start = self._read(self._at, _CHUNK), self._at
                if len(chunk) < header:
                    raise self._error(f"{self._size - self._at} bytes are not a record")
            type_, _misc, length = unpack(chunk, self._at - start)
            if length < header or self._at + length > self._size:
                raise self._error(f"a record of type {type_} claims {length} bytes")
            if type_ >= UserRecord.FIRST:
                self._take_in(type_, self._read(self._at, length))
            self._at += length
            if type_ in (UserRecord.HEADER_TRACING_DATA, UserRecord.AUXTRACE):
                self._at += self._skipped[self._at]

    def _take_in(self, type_: int, record: bytes) -> None:
        body = record[HEADER.size :]
        try:
            if type_ == UserRecord.HEADER_ATTR:
                self._take_in_event(body)
            elif type_ == UserRecord.HEADER_EVENT_TYPE:
                (config,) = _U64.unpack_from(body)
                self._types[config] = _text(body[_U64.size :])
            elif type_ == UserRecord.EVENT_UPDATE:
                what, id_ = _UPDATE.unpack_from(body)
                if what == _NAME:
                    self._names[id_] = _text(body[_UPDATE.size :])
            elif type_ == UserRecord.HEADER_FEATURE:
                (number,) = _U64.unpack_from(body)
                self._features[number] = body[_U64.size :]
            elif type_ == UserRecord.HEADER_BUILD_ID:
                self._build_ids.append(record)
            elif type_ == UserRecord.HEADER_TRACING_DATA:
                self._skip(record, _U32.unpack_from(body)[0], "tracing data")
            elif type_ == UserRecord.AUXTRACE:
                self._skip(record, _U64.unpack_from(body)[0], "a hardware trace")
        except struct.error:
            raise self._error(f"a record of type {type_} has {len(record)} bytes") from None

    def _skip(self, record: bytes, length: int, what: str) -> None:
        """Note that bytes follow a record which are not records."""
        behind = self._at + len(record)
        if behind + length > self._size:
            raise self._error(f"{length} bytes of {what} run past the end")
        self._skipped[behind] = length

    def _take_in_event(self, body: bytes) -> None:
        (size,) = _U32.unpack_from(body, 4)  # struct perf_event_attr says its own
        ids = body[size:]
        if size < _SHORTEST_ATTR or size > len(body) or len(ids) % _U64.size:
            raise self._error(f"attributes of {size} bytes in a record of {len(body)}")
        numbers = struct.unpack(f"={len(ids) // _U64.size}Q", ids)
        self._events.append(RecordedEvent("", body[:size], numbers))

    def _error(self, problem: str) -> FormatError:
        return FormatError(self._source, f"offset {self._at}", problem)


def _text(data: bytes) -> str:
    return data.partition(b"\0")[0].decode("utf-8", "surrogateescape")
