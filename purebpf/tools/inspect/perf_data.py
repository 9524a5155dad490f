"""The metadata of a perf.data file: header, events with their attributes, features.

construct's declarations read it, so they also read a file that is no use for a report: an
unfinished recording has a header, and the user wants to see it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import construct

from purebpf.abi.names import member_name
from purebpf.abi.perf import (
    PERF_EVENT_ATTR,
    perf_event_read_format,
    perf_event_sample_format,
    perf_hw_id,
    perf_sw_ids,
    perf_type_id,
)
from purebpf.enums import IntEnum
from purebpf.errors import FormatError, NotSupportedError, PurebpfError
from purebpf.tuples import NamedTuple
from purebpf.wire.declarations import FEATURES, LAYOUTS, perf_event_attr
from purebpf.wire.perf_data import MAGIC, Feature
from purebpf.wire.perf_data_features import string, unpack_build_ids, unpack_events, unpack_strings

__all__ = ["Event", "FeatureLine", "FileSection", "PerfDataReport", "describe_perf_data"]

ReadAt = Callable[[int, int], bytes]
"""(offset, size) -> that many bytes of the file, fewer at its end."""

_HEADER = LAYOUTS["PERF_FILE_HEADER"]
_SECTION = LAYOUTS["PERF_FILE_SECTION"]
_LARGEST = 1 << 26
_SMALLEST_ATTR = 64
"""PERF_ATTR_SIZE_VER0: the kernel has never had a shorter struct perf_event_attr."""
_STRINGS = ("HOSTNAME", "OSRELEASE", "VERSION", "ARCH", "CPUDESC", "CPUID")
_ALIASES = frozenset({"bp_addr", "kprobe_func", "uprobe_path", "bp_len", "kprobe_addr"})
"""Other names of config1 and config2, which have their own line."""
_PIPE = (16).to_bytes(8, sys.byteorder)
"""The size of the header that perf writes to a pipe: magic and size."""
_CONFIGS: dict[int, type[IntEnum]] = {
    perf_type_id.PERF_TYPE_HARDWARE: perf_hw_id,
    perf_type_id.PERF_TYPE_SOFTWARE: perf_sw_ids,
}
_FLAGS: dict[str, type[IntEnum]] = {
    "sample_type": perf_event_sample_format,
    "read_format": perf_event_read_format,
}
_PREFIXES = {"sample_type": "PERF_SAMPLE_", "read_format": "PERF_FORMAT_"}


class FileSection(NamedTuple):
    """A part of the file, in bytes."""

    name: str
    offset: int
    size: int


class Event(NamedTuple):
    """An entry of the table of attributes.

    `name` is from EVENT_DESC, or ""; `fields` are the nonzero ones, with the names of enums and
    flags; `ids` the numbers that its records carry.
    """

    name: str
    fields: dict[str, Any]
    ids: tuple[int, ...]


class FeatureLine(NamedTuple):
    """A feature: `value` is None where purebpf does not read it, or cannot: `problem` says why."""

    name: str
    offset: int
    size: int
    value: Any
    problem: str


class PerfDataReport(NamedTuple):
    """Everything but the records. `notes` describe the defects of the file."""

    source: str
    size: int
    sections: tuple[FileSection, ...]
    events: tuple[Event, ...]
    features: tuple[FeatureLine, ...]
    notes: tuple[str, ...]


def describe_perf_data(read: ReadAt, size: int, source: str) -> PerfDataReport:
    """Describe a perf.data file of `size` bytes.

    Raises:
        FormatError: the header or the table of attributes is damaged.
        NotSupportedError: perf wrote it to a pipe, so that it does not have this header.
    """
    file = _File(read, size, source)
    header = file.header()
    parts = {name: _place(header[name]) for name in ("attrs", "data")}
    features, notes = _features(file, header)
    names = (
        next((feature.value for feature in features if feature.name == "EVENT_DESC"), None) or ()
    )
    events = [
        event._replace(name=names[number]["name"] if number < len(names) else "")
        for number, event in enumerate(_events(file, header))
    ]
    if not header.data.size:
        notes.append("no data: the recording did not finish")
    elif sum(parts["data"]) > size:
        notes.append(f"truncated: the data ends at {sum(parts['data'])}, the file at {size}")
    sections = (
        FileSection("header", 0, int(header.size)),
        *(FileSection(name, *position) for name, position in parts.items()),
    )
    return PerfDataReport(source, size, sections, tuple(events), tuple(features), tuple(notes))


class _File(NamedTuple):
    """A file to read layouts from."""

    read: ReadAt
    size: int
    source: str

    def exactly(self, offset: int, size: int, where: str) -> bytes:
        if size > _LARGEST or offset + size > self.size:
            problem = f"{size} bytes at {offset}, but the file has {self.size}"
            raise FormatError(self.source, where, problem)
        return self.read(offset, size)

    def header(self) -> Any:
        """The header, after a look at how perf wrote it."""
        raw = self.read(0, _HEADER.sizeof())
        if raw[:8] != MAGIC:
            raise FormatError(self.source, "header", f"not a perf.data file: {raw[:8]!r}")
        if raw[8:16] == _PIPE:
            raise NotSupportedError(
                f"reading {self.source}",
                "perf wrote it to a pipe; convert it with: perf inject -i IN -o OUT",
            )
        return _HEADER.parse(self.exactly(0, _HEADER.sizeof(), "header"))


def _place(section: Any) -> tuple[int, int]:
    return int(section.offset), int(section.size)


def _events(file: _File, header: Any) -> Iterator[Event]:
    """The table of attributes."""
    entry = int(header.attr_size)
    attr_size = entry - _SECTION.sizeof()
    offset, size = _place(header.attrs)
    if attr_size < _SMALLEST_ATTR or size % entry:
        raise FormatError(file.source, "attributes", f"{size} bytes of {entry} each")
    raw = file.exactly(offset, size, "attributes")
    attr = perf_event_attr(attr_size)
    for at in range(0, size, entry):
        ids_at, ids_size = _place(_SECTION.parse(raw[at + attr_size : at + entry]))
        packed = file.exactly(ids_at, ids_size, "ids")
        ids = construct.Array(len(packed) // 8, construct.Int64un).parse(packed)
        yield Event("", _spell(attr.parse(raw[at : at + attr_size])), tuple(map(int, ids)))


_ADDRESSES = frozenset({"config1", "config2"})
_EXACT = 1 << 53


def _spell(attr: Any) -> dict[str, Any]:
    """The fields that are not zero; in a union, the member that the flags choose."""
    hidden = {
        "sample_period" if attr.freq else "sample_freq",
        "wakeup_events" if attr.watermark else "wakeup_watermark",
        "probe_offset",
        *_ALIASES,
    }
    fields = {
        name: int(attr[name])
        for name in PERF_EVENT_ATTR.fields
        if name in attr and name not in hidden and attr[name]
    }
    kind = int(attr.type)
    fields = {"type": kind, "size": fields.pop("size", 0), "config": int(attr.config)} | fields
    # addresses of probes and breakpoints, too: JSON numbers are exact up to 2^53
    spelled: dict[str, Any] = {
        name: hex(value) if name in _ADDRESSES or value > _EXACT else value
        for name, value in fields.items()
    }
    spelled["type"] = member_name(perf_type_id, kind, unknown="")
    if (names := _CONFIGS.get(kind)) is not None:
        spelled["config"] = member_name(names, int(attr.config), unknown="")
    for name, flags in _FLAGS.items():
        if name in fields:
            spelled[name] = _spell_flags(flags, fields[name], _PREFIXES[name])
    bits = {name: int(attr[name]) for name in PERF_EVENT_ATTR.bits if attr.get(name)}
    spelled["flags"] = [name if value == 1 else f"{name}={value}" for name, value in bits.items()]
    return spelled


def _spell_flags(names: type[IntEnum], value: int, prefix: str) -> list[str]:
    """The flags of a number by name; those that are newer than our tables as one number."""
    flags = [flag for flag in names if flag.bit_count() == 1 and value & flag]
    rest = value & ~sum(flags)
    return [flag.name.removeprefix(prefix) for flag in flags] + ([f"{rest:#x}"] if rest else [])


def _features(file: _File, header: Any) -> tuple[list[FeatureLine], list[str]]:
    """Return the features, in the order of their bits, and the problem with their table."""
    bitmap = sum(int(word) << 64 * position for position, word in enumerate(header.features))
    numbers = [number for number in range(256) if bitmap >> number & 1]
    table = construct.Array(len(numbers), _SECTION)
    try:
        raw = file.exactly(sum(_place(header.data)), table.sizeof(), "features")
    except FormatError as error:
        return [], [str(error)]
    return [
        _feature(file, number, *_place(section))
        for number, section in zip(numbers, table.parse(raw), strict=True)
    ], []


def _feature(file: _File, number: int, offset: int, size: int) -> FeatureLine:
    name = member_name(Feature, number, unknown="feature")
    value, problem = None, ""
    if read := _readers().get(name):
        try:
            value = read(file.exactly(offset, size, f"feature {name}"))
        except (PurebpfError, construct.ConstructError) as error:
            problem = str(error).splitlines()[-1]
    return FeatureLine(name, offset, size, value, problem)


def _readers() -> dict[str, Callable[[bytes], Any]]:
    """Return the reader of each feature, by its name: a declaration, or the reader in wire/."""
    declared = {name: _reader(layout) for name, layout in FEATURES.items()}
    return {
        **dict.fromkeys(_STRINGS, string),
        **declared,
        "NRCPUS": _reader(LAYOUTS["PERF_NRCPUS"]),
        "CMDLINE": lambda data: list(unpack_strings(data)),
        "EVENT_DESC": _read_events,
        "BUILD_ID": _read_build_ids,
    }


def _reader(layout: construct.Construct) -> Callable[[bytes], Any]:
    return lambda data: _plain(layout.parse(data))


def _read_events(data: bytes) -> list[dict[str, Any]]:
    return [{"name": event.name, "ids": list(event.ids)} for event in unpack_events(data)]


def _read_build_ids(data: bytes) -> list[dict[str, str]]:
    return [
        {"file": entry.filename, "build_id": entry.build_id.hex()}
        for entry in unpack_build_ids(data)
    ]


def _plain(value: Any) -> Any:
    """Return a value that construct parsed as types that JSON has."""
    if isinstance(value, construct.Container):
        return {name: _plain(item) for name, item in value.items() if not name.startswith("_")}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, bytes):
        return value.partition(b"\0")[0].decode("utf-8", "backslashreplace")
    return int(value)
