"""Reading perf.data, ours or perf's, in the order of time and without holding it in memory."""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Callable, Iterator
from operator import itemgetter

from purebpf.abi.perf import PERF_EVENT_ATTR, perf_hw_id, perf_sw_ids, perf_type_id
from purebpf.abi.perf import perf_event_sample_format as bit
from purebpf.abi.perf import perf_event_type as kind
from purebpf.errors import FormatError, NotSupportedError
from purebpf.tuples import NamedTuple
from purebpf.wire import perf_data_pipe
from purebpf.wire.perf_data import (
    HEADER,
    MAGIC,
    OLD_MAGIC,
    SECTION,
    Feature,
    RecordedEvent,
    Section,
    UserRecord,
)
from purebpf.wire.perf_data_features import unpack_events
from purebpf.wire.perf_data_types import name_by_type, unpack_types
from purebpf.wire.perf_format import RecordFormat
from purebpf.wire.perf_records import Record
from purebpf.wire.perf_ring import HEADER as RECORD_HEADER

__all__ = ["Order", "PerfData", "Placed", "ReadAt"]

_CHUNK = 1 << 20
_MAX_FEATURE = 1 << 30
_WITHOUT_FEATURES = HEADER.size - 32
"""The size of a header of the first versions, which have no bitmap of features."""
_U64 = struct.Struct("=Q")
_CALL_STACK = 1 << 11
"""PERF_SAMPLE_BRANCH_CALL_STACK of include/uapi/linux/perf_event.h."""
_WHY_NOT: dict[int, str] = {
    UserRecord.AUXTRACE: (
        "it has a hardware trace (AUXTRACE records: Intel PT, CoreSight, SPE); make samples of it "
        "with: perf inject --itrace=i100us -i IN -o OUT"
    ),
    **dict.fromkeys(
        (UserRecord.COMPRESSED, UserRecord.COMPRESSED2),
        "its records are compressed (perf record -z); unpack them with: perf inject -i IN -o OUT",
    ),
}
_NAMED_KINDS: dict[int, type[perf_hw_id | perf_sw_ids]] = {
    perf_type_id.PERF_TYPE_HARDWARE: perf_hw_id,
    perf_type_id.PERF_TYPE_SOFTWARE: perf_sw_ids,
}
_PERF_NAMES = {
    "cpu-cycles": "cycles",
    "branch-instructions": "branches",
    "ref-cpu-cycles": "ref-cycles",
    "page-faults-min": "minor-faults",
    "page-faults-maj": "major-faults",
}
"""The names of perf(1) that are not the kernel's."""
_BY_TIME = itemgetter(0)

ReadAt = Callable[[int, int], bytes]
"""(offset, size) -> that many bytes of the file, fewer at its end."""


class Placed(NamedTuple):
    """A record and its event: an index into `PerfData.events`."""

    event: int
    record: Record


class Order:
    """The records that a reader of a growing file holds back, and the times of two rounds."""

    def __init__(self) -> None:
        self.held: list[tuple[int, Placed]] = []
        self.limit = self.newest = 0


class PerfData:
    """A perf.data file.

    Args:
        read: reads at an offset: `lambda at, size: os.pread(fd, size, at)`.
        size: of the file in bytes.
        source: its name, for errors.

    Attributes:
        events: the recorded events, with names where the file has them.
        data: where the records are.

    Raises:
        FormatError: it is not a perf.data file, or not a whole one.
    """

    def __init__(self, read: ReadAt, size: int, source: str = "perf.data") -> None:
        self._read = read
        self._size = size
        self.source = source
        self._of_pipe: dict[int, bytes] = {}
        self._skipped: dict[int, int] = {}
        self._features: dict[int, Section] = {}
        events = self._describe_file() if self._has_table() else self._describe_pipe()
        self.events = self._name_events(events)
        self._check_branches()
        self._formats = _formats(self.events)
        self._numbers = {id_: n for n, event in enumerate(self.events) for id_ in event.ids}
        self._sample_id, self._trailer_id = _id_places(self.events)

    def _check_branches(self) -> None:
        """Refuse call graphs that the hardware recorded as branches: the chains lack them."""
        for event in self.events:
            branches = int(PERF_EVENT_ATTR.unpack(event.attr)["branch_sample_type"])
            has_them = event.sample_type & bit.PERF_SAMPLE_BRANCH_STACK
            if has_them and branches & _CALL_STACK:
                raise NotSupportedError(
                    f"reading {self.source}",
                    f"the user stacks of {event.name} are in branch records (perf record "
                    "--call-graph lbr). Convert it: perf script -i IN | purebpf convert - -o OUT",
                )

    def feature(self, feature: Feature) -> bytes | None:
        """The bytes of a feature, None when the file has not got it."""
        if feature in self._of_pipe:
            return self._of_pipe[feature]
        section = self._features.get(feature)
        if section is None:
            return None
        if section.size > _MAX_FEATURE:
            raise self._error(f"feature {feature.name}", f"{section.size} bytes are implausible")
        return self._exactly(section, f"feature {feature.name}")

    def records(self, order: Order | None = None) -> Iterator[Placed]:
        """The kernel's records in the order of time; those without a time as they come.

        Records from the rings of two rounds are sorted, as perf does; a file without rounds is held
        in memory as a whole.

        Args:
            order: for a file that grows: keeps records that older ones may still precede, for the
                next call. Set `data` to the part that was added since.

        Raises:
            FormatError: a record breaks its format; the offset is the file's.
            NotSupportedError: the records are compressed, or a hardware trace's.
        """
        own = order or Order()
        held, limit, newest = own.held, own.limit, own.newest
        for placed in self._read_placed():
            if placed is None:
                held.sort(key=_BY_TIME)
                cut = bisect_right(held, limit, key=_BY_TIME)
                yield from (record for _, record in held[:cut])
                del held[:cut]
                limit = newest
                continue
            time = placed.record.time
            if time == 0:
                yield placed
            else:
                newest = max(newest, time)
                held.append((time, placed))
        if order is not None:
            order.limit, order.newest = limit, newest
            return
        held.sort(key=_BY_TIME)
        yield from (record for _, record in held)

    def _read_placed(self) -> Iterator[Placed | None]:
        """Each record in the order of the file; None ends a round."""
        several = len(self.events) > 1
        numbers, formats = self._numbers, self._formats
        only = formats[0].decode
        for chunk, type_, misc, start, end in self._frames():
            if type_ >= UserRecord.FIRST:
                if type_ == UserRecord.FINISHED_ROUND:
                    yield None
                elif type_ in (UserRecord.AUXTRACE, UserRecord.COMPRESSED, UserRecord.COMPRESSED2):
                    raise NotSupportedError(f"reading {self.source}", _WHY_NOT[type_])
                continue
            if not several:
                yield Placed(0, only(type_, misc, chunk, start, end))
                continue
            number = numbers.get(self._id(chunk, type_, start, end), 0)
            yield Placed(number, formats[number].decode(type_, misc, chunk, start, end))

    def _id(self, chunk: bytes, type_: int, start: int, end: int) -> int:
        """The id of the record's event; 0: the record does not say."""
        at = start + self._sample_id if type_ == kind.PERF_RECORD_SAMPLE else end - self._trailer_id
        if not start <= at <= end - 8:
            return 0
        event_id: int = _U64.unpack_from(chunk, at)[0]
        return event_id

    def _frames(self) -> Iterator[tuple[bytes, int, int, int, int]]:
        """(bytes, type, misc, start of the body, end) of each record; read in chunks."""
        unpack, header = RECORD_HEADER.unpack_from, RECORD_HEADER.size
        offset, end_of_data = self.data.offset, self.data.offset + self.data.size
        chunk, at = b"", 0
        while True:
            while at + header <= len(chunk):
                type_, misc, size = unpack(chunk, at)
                following = at + size
                if size < header or size > end_of_data - offset:
                    raise self._error(
                        f"offset {offset}", f"a record of type {type_} claims {size} bytes"
                    )
                if following > len(chunk):
                    break
                yield chunk, type_, misc, at + header, following
                offset += size
                at = following
                if offset in self._skipped:
                    offset += self._skipped[offset]
                    chunk, at = b"", 0
            left = end_of_data - offset
            if not left:
                return
            chunk = self._exactly(Section(offset, min(left, _CHUNK)), "records")
            at = 0
            if len(chunk) < header:
                raise self._error(f"offset {offset}", f"{left} bytes are not a record")

    def _describe_file(self) -> list[RecordedEvent]:
        attrs, self.data, types, words = self._header()
        bitmap = sum(word << 64 * n for n, word in enumerate(words))
        self._features = self._sections(bitmap)
        events = self._attributes(*attrs)
        if not types.size or types.size > _MAX_FEATURE or Feature.EVENT_DESC in self._features:
            return events
        names = unpack_types(self._exactly(types, "event types"))
        return [event._replace(name=name_by_type(event, names)) for event in events]

    def _describe_pipe(self) -> list[RecordedEvent]:
        described = perf_data_pipe.describe(self._read, self._size, self.source)
        if not described.events:
            raise self._error("header", "no event: the recording did not begin")
        self.data = described.data
        self._of_pipe = described.features
        self._skipped = described.skipped
        return described.events

    def _has_table(self) -> bool:
        """Return True for the header of a file, False for the shorter header of a pipe."""
        raw = self._read(0, perf_data_pipe.HEADER_SIZE)
        if raw[:8] in (MAGIC[::-1], OLD_MAGIC[::-1]):
            raise self._error("header", "written on a machine with the other byte order")
        if raw[:8] not in (MAGIC, OLD_MAGIC):
            raise self._error("header", f"not a perf.data file: it begins with {raw[:8]!r}")
        return raw[8:] != _U64.pack(perf_data_pipe.HEADER_SIZE)

    def _header(self) -> tuple[tuple[Section, int], Section, Section, tuple[int, ...]]:
        raw = self._read(0, HEADER.size)
        if len(raw) < HEADER.size:
            raise self._error("header", f"the file ends after {len(raw)} bytes")
        _, size, entry, *rest = HEADER.unpack(raw)
        if size == _WITHOUT_FEATURES:
            rest[6:] = []
        elif size != HEADER.size:
            raise self._error("header", f"{size} bytes long, expected {HEADER.size}")
        attrs, data = Section(*rest[:2]), Section(*rest[2:4])
        if not data.size:
            raise self._error("header", "no data: the recording did not finish")
        if data.offset + data.size > self._size:
            raise self._error(
                "header",
                f"{data.size} bytes of data at {data.offset}, but the file has {self._size}",
            )
        return (attrs, entry), data, Section(*rest[4:6]), tuple(rest[6:])

    def _sections(self, bitmap: int) -> dict[int, Section]:
        """Yield the places of the features: a table behind the data, in the order of their
        numbers.
        """
        numbers = [number for number in range(256) if bitmap >> number & 1]
        at = self.data.offset + self.data.size
        raw = self._exactly(Section(at, SECTION.size * len(numbers)), "features")
        return dict(zip(numbers, map(Section._make, SECTION.iter_unpack(raw)), strict=True))

    def _attributes(self, table: Section, entry: int) -> list[RecordedEvent]:
        attr_size = entry - SECTION.size
        if attr_size < 64 or not table.size or table.size % entry or table.size > 1 << 26:  # noqa: PLR2004
            raise self._error("attributes", f"{table.size} bytes of {entry} each")
        raw = self._exactly(table, "attributes")
        events = []
        for at in range(0, table.size, entry):
            ids = Section(*SECTION.unpack_from(raw, at + attr_size))
            if ids.size % 8 or ids.size > 1 << 28:
                raise self._error("attributes", f"{ids.size} bytes of ids")
            packed = self._exactly(ids, "ids")
            numbers = struct.unpack(f"={ids.size // 8}Q", packed)
            events.append(RecordedEvent("", raw[at : at + attr_size], numbers))
        return events

    def _name_events(self, events: list[RecordedEvent]) -> tuple[RecordedEvent, ...]:
        """The events with the names that EVENT_DESC gives them, in the same order."""
        description = self.feature(Feature.EVENT_DESC)
        names = [event.name for event in unpack_events(description)] if description else []
        names += [event.name or _name_of_kind(event.attr) for event in events[len(names) :]]
        return tuple(event._replace(name=name) for event, name in zip(events, names, strict=False))

    def _exactly(self, section: Section, what: str) -> bytes:
        if section.offset + section.size > self._size:
            raise self._error(
                what,
                f"{section.size} bytes at {section.offset} run past the end of the file "
                f"({self._size} bytes): the file is truncated",
            )
        raw = self._read(section.offset, section.size)
        if len(raw) < section.size:
            raise self._error(
                what, f"another process truncated the file during the read at {section.offset}"
            )
        return raw

    def _error(self, where: str, problem: str) -> FormatError:
        return FormatError(self.source, where, problem)


def _formats(events: tuple[RecordedEvent, ...]) -> list[RecordFormat]:
    """Return the record formats of the events.

    perf(1) lets one event ask for build ids, and writes extra records, which belong to no event, in
    the same way. perf-inject(1) adds build ids to files that were recorded without.
    """
    formats = [RecordFormat.of_attr(event.attr) for event in events]
    asked = any(form.build_id for form in formats)
    for form in formats:
        form.build_id = asked or None
    return formats


def _id_places(events: tuple[RecordedEvent, ...]) -> tuple[int, int]:
    """Return the places of an id: bytes from the start of a sample's body, and from the end of
    other records.
    """
    sample_type = events[0].sample_type
    if sample_type & bit.PERF_SAMPLE_IDENTIFIER:
        return 0, 8
    before = bit.PERF_SAMPLE_IP | bit.PERF_SAMPLE_TID | bit.PERF_SAMPLE_TIME | bit.PERF_SAMPLE_ADDR
    behind = bit.PERF_SAMPLE_STREAM_ID | bit.PERF_SAMPLE_CPU
    return 8 * (sample_type & before).bit_count(), 8 + 8 * (sample_type & behind).bit_count()


def _name_of_kind(attr: bytes) -> str:
    """The name of an event that has none in the file: perf(1)'s name, else its type and config."""
    fields = PERF_EVENT_ATTR.unpack(attr)
    number, config = int(fields["type"]), int(fields["config"])
    for member in _NAMED_KINDS.get(number, ()):
        if member.value == config and not member.name.endswith("_MAX"):
            name = member.name.split("_", 3)[3].lower().replace("_", "-")
            return _PERF_NAMES.get(name, name)
    return f"event {number}:{config:#x}"
