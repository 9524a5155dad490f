"""pprof's profile.proto, gzipped, for `go tool pprof`, Pyroscope, Parca and Grafana.

https://github.com/google/pprof/blob/main/proto/profile.proto

An address in a file is written as its offset in that file, in a mapping that begins at zero: with
the mapping's build id, another machine can still name addresses that had no name here. Kernel and
generated code have no file; their addresses are unchanged.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Iterator
from functools import cache

from purebpf.results.formats.protobuf import field, integer, message, varint
from purebpf.results.model.profile import Labels, Profile, Row
from purebpf.results.model.spelling import MISSED_KERNEL, MISSED_USER, printable
from purebpf.results.model.stack_end import StackEnd
from purebpf.results.shape.frame_table import Numbering
from purebpf.results.shape.functions import Function, at_line
from purebpf.symbols.frame import Frame, Unknown
from purebpf.tuples import NamedTuple

__all__ = ["document"]

_UNITS = {
    "samples": ("samples", "count"),
    "calls": ("calls", "count"),
    "ns": ("time", "nanoseconds"),
    "bytes": ("space", "bytes"),
}
_LATEST_S = (1 << 63) / 1e9  # times are nanoseconds, int64
_ANY_ADDRESS = (1 << 64) - 1
_SECOND_NS = 1_000_000_000


class _Location(NamedTuple):
    """A location: where an address is, and the function it is in."""

    function: Function  # its line, too
    address: int
    build_id: str


def document(profile: Profile) -> bytes:
    """The whole file. Each row is a sample, with its labels."""
    return gzip.compress(_Writer(profile).message(), compresslevel=4, mtime=0)


def _place(entry: Frame | Unknown) -> _Location:
    address = entry.file_offset if entry.file_offset >= 0 else entry.address
    return _Location(at_line(entry), address, entry.build_id)


def _kernel_last(mapping: tuple[tuple[str, str], int]) -> bool:
    (module, _), _ = mapping
    return module == "kernel"


def _location_id(number: int) -> bytes:
    return varint(number + 1)  # ids are not zero


def _period_ns(profile: Profile) -> int:
    """Nanoseconds of a sample, as Go's own profiles have them; 0 where samples are not of time."""
    about = profile.about
    frequency, period = about.get("frequency_hz"), about.get("period")
    if profile.unit != "samples":
        return 0
    if isinstance(frequency, int) and frequency > 0:
        return _SECOND_NS // frequency
    if about.get("event") == "cpu-clock" and isinstance(period, int):
        return period
    return 0


class _Writer:
    """Collects the tables while it writes the samples."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._strings: dict[str, int] = {"": 0}
        self._places = Numbering(_place, _location_id)
        missed_user = _Location(Function(MISSED_USER, "", "unknown"), 0, "")
        missed_kernel = _Location(Function(MISSED_KERNEL, "kernel", "unknown"), 0, "")
        self._missed_user = self._places.number(missed_user)
        self._missed_kernel = self._places.number(missed_kernel)
        self._known_labels: dict[tuple[Labels, StackEnd], bytes] = {}
        self._period_ns = _period_ns(profile)

    def message(self) -> bytes:
        """The Profile message."""
        profile = self._profile
        kind, unit = _UNITS.get(profile.unit, (profile.unit, "count"))
        parts = [message(1, self._value_type(kind, unit))]
        if self._period_ns:
            kind = "cpu"
            parts.append(message(1, self._value_type(kind, "nanoseconds")))
        parts += self._samples(profile.rows())
        parts += self._tables()
        parts += self._header(kind)
        parts += (message(6, printable(text).encode()) for text in self._strings)
        return b"".join(parts)

    def _value_type(self, kind: str, unit: str) -> bytes:
        return integer(1, self._string(kind)) + integer(2, self._string(unit))

    def _string(self, text: str) -> int:
        return self._strings.setdefault(text, len(self._strings))

    def _samples(self, rows: Iterable[Row]) -> Iterator[bytes]:
        """A message for each row. There are many, with many ids each: so no calls for each id."""
        ids_of, label_bytes, number = self._places.of, self._label_bytes, cache(varint)
        sample, locations, values = field(2), field(1), field(2)
        period_ns = self._period_ns
        for user, kernel, weight, labels, _, marks in rows:
            ids = self._missed_user if user is None else b"".join(ids_of(user))
            if kernel is None or kernel:
                ids = (self._missed_kernel if kernel is None else b"".join(ids_of(kernel))) + ids
            value = number(weight)
            if period_ns:
                value += number(weight * period_ns)
            content = locations + number(len(ids)) + ids
            content += values + number(len(value)) + value + label_bytes(labels, marks.end)
            yield sample + number(len(content)) + content

    def _label_bytes(self, labels: Labels, end: StackEnd) -> bytes:
        encoded = self._known_labels.get((labels, end))
        if encoded is None:
            encoded = b"".join(self._labels(labels, end))
            self._known_labels[labels, end] = encoded
        return encoded

    def _labels(self, labels: Labels, end: StackEnd) -> Iterator[bytes]:
        cpu = str(labels.cpu) if labels.cpu >= 0 else ""  # pprof does not show a number 0
        texts = (
            *(("comm", labels.comm), ("cgroup", labels.cgroup)),
            *(("state", labels.state), ("cpu", cpu), ("cut", end.cut)),
        )
        for name, text in texts:
            if text:
                content = integer(1, self._string(name)) + integer(2, self._string(text))
                yield message(3, content)
        for name, number in (("pid", labels.pid), ("tid", labels.tid), ("guessed", end.guessed)):
            if number:
                yield message(3, integer(1, self._string(name)) + integer(3, number))

    def _tables(self) -> Iterator[bytes]:
        """Mappings, locations and functions; their ids are numbers from 1."""
        mappings: dict[tuple[str, str], int] = {}
        functions: dict[Function, int] = {}
        for number, place in enumerate(self._places, 1):
            function, module = place.function._replace(line=0), place.function.module
            at = 0
            if module:
                at = mappings.setdefault((module, place.build_id), len(mappings) + 1)
            where = integer(2, place.function.line) if place.function.line else b""
            line = message(
                4, integer(1, functions.setdefault(function, len(functions) + 1)) + where
            )
            yield message(4, integer(1, number) + integer(2, at) + integer(3, place.address) + line)
        flags = integer(7, 1)  # has_functions
        if any(entry.file for entry in functions):
            flags += integer(8, 1) + integer(9, 1) + integer(10, 1)  # filenames, lines, inlines
        # the first mapping is what pprof calls the program
        for (module, build_id), number in sorted(mappings.items(), key=_kernel_last):
            names = integer(5, self._string(module)) + integer(6, self._string(build_id))
            content = integer(1, number) + integer(3, _ANY_ADDRESS) + names + flags
            yield message(3, content)
        for known_function, number in functions.items():
            name = self._string(known_function.name)
            names = (
                integer(2, name)
                + integer(3, name)
                + integer(4, self._string(known_function.file or known_function.module))
            )
            yield message(5, integer(1, number) + names)

    def _header(self, kind: str) -> Iterator[bytes]:
        about = self._profile.about
        for number, name in ((9, "started_s"), (10, "elapsed_s")):
            seconds = about.get(name)
            if isinstance(seconds, int | float) and 0 <= seconds < _LATEST_S:
                yield integer(number, int(seconds * 1e9))
        if self._period_ns:
            yield message(11, self._value_type("cpu", "nanoseconds")) + integer(12, self._period_ns)
        yield integer(14, self._string(kind))
        loss = self._profile.loss
        lost = ", ".join(f"{cause.name}={cause.lost}" for cause in loss.causes)
        for comment in (self._profile.title, f"seen={loss.seen} {lost}".strip()):
            yield integer(13, self._string(comment))
