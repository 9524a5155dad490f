"""OTLP profiles, for an OpenTelemetry collector, Pyroscope or our hub.

The field numbers are from opentelemetry-proto 1.10 (package opentelemetry-proto 1.45.2,
opentelemetry/proto/profiles/v1development/profiles.proto), which is not stable yet: 1.10 moved the
values of a sample from field 2 to 4. `tests/unit/results/test_otlp.py` compares with the package.
Its rules: element 0 of each table is empty, every entry is used, stacks are leaf first.

Frames are functions. Only a frame without a name keeps its place in the file, so that another
machine can name it: see docs/design/0012-agent.md.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from operator import itemgetter

from purebpf.results.formats.protobuf import field, integer, message, varint
from purebpf.results.model.spelling import printable
from purebpf.symbols.file_ids import FileIds, FileKey
from purebpf.tuples import NamedTuple

__all__ = ["Attribute", "Entry", "Sample", "Series", "Window", "document"]

Attribute = tuple[str, str | int]


class Entry(NamedTuple):
    """A frame.

    `kind` is one of `Frame.kind`, `module` the file's path or name. `name` is "" where there is
    none; then `build_id` and `file_offset` say where it is in the file, and where a function starts
    that has a name for want of a symbol.
    """

    name: str
    module: str
    kind: str
    build_id: str = ""
    file_offset: int = 0


class Sample(NamedTuple):
    """A stack, leaf first, of the threads with a name."""

    comm: str
    stack: tuple[Entry, ...]


class Series(NamedTuple):
    """The samples of a service, with their values."""

    resource: tuple[Attribute, ...]
    samples: Mapping[Sample, int]


class Window(NamedTuple):
    """The common facts of all series of a message.

    `type` and `unit` describe the values, "samples" and "count" or "off_cpu" and "nanoseconds".
    With a `period_ns`, a value counts so many nanoseconds of CPU. `facts` are attributes of the
    window; `identity` has 16 bytes.
    """

    type: str
    unit: str
    started_ns: int
    duration_ns: int
    period_ns: int = 0
    facts: tuple[Attribute, ...] = ()
    identity: bytes = b""


_FRAME_TYPES = {"user": "native", "inlined": "native", "kernel": "kernel", "python": "cpython"}
"""profile.frame.type of the semantic conventions, by `Frame.kind`."""


class _Table:
    """Messages or strings, each once. The first one is empty."""

    def __init__(self, number: int, first: bytes = b"") -> None:
        self._number = number
        self._indices: dict[Hashable, int] = {None: 0}
        self._contents: list[bytes] = [first]

    def get(self, key: Hashable) -> int | None:
        return self._indices.get(key)

    def add(self, key: Hashable, content: bytes) -> int:
        index = self._indices[key] = len(self._contents)
        self._contents.append(content)
        return index

    def encoded(self) -> bytes:
        return b"".join([message(self._number, content) for content in self._contents])


class _Encoded(dict[Entry, bytes]):
    """The index of each location, as a stack has it."""

    def __init__(self, add: Callable[[Entry], int]) -> None:
        super().__init__()
        self._add = add

    def __missing__(self, entry: Entry) -> bytes:
        encoded = self[entry] = varint(self._add(entry))
        return encoded


_VALUE = itemgetter(1)
_ID_NAMES = tuple(f"process.executable.build_id.{name}" for name in FileIds._fields)


class _Dictionary:
    """ProfilesDictionary.

    Args:
        files: see `document`.
    """

    def __init__(self, files: Mapping[FileKey, FileIds]) -> None:
        self._files = files
        self._mappings = _Table(1)
        self._locations = _Table(2)
        self._functions = _Table(3)
        self._links = _Table(4)
        self._strings = _Table(5)
        self._attributes = _Table(6)
        self._stacks = _Table(7)
        self._encoded = _Encoded(self._location)

    def string(self, text: str) -> int:
        if not text:
            return 0
        index = self._strings.get(text)
        return self._strings.add(text, printable(text).encode()) if index is None else index

    def attribute(self, attribute: Attribute) -> int:
        index = self._attributes.get(attribute)
        if index is None:
            name, value = attribute
            content = integer(1, self.string(name)) + message(2, _any_value(value))
            index = self._attributes.add(attribute, content)
        return index

    def stack(self, stack: tuple[Entry, ...]) -> int:
        if not stack:
            return 0
        index = self._stacks.get(stack)
        if index is None:
            locations = b"".join(map(self._encoded.__getitem__, stack))
            index = self._stacks.add(stack, message(1, locations))
        return index

    def _location(self, entry: Entry) -> int:
        content = integer(1, self._mapping(entry.module, entry.build_id))
        content += integer(2, entry.file_offset)
        if entry.name:
            content += message(3, integer(1, self._function(entry.name)))
        kind = _FRAME_TYPES.get(entry.kind)
        if kind is not None:
            content += _packed(4, [self.attribute(("profile.frame.type", kind))])
        return self._locations.add(entry, content)

    def _function(self, name: str) -> int:
        index = self._functions.get(name)
        return self._functions.add(name, integer(1, self.string(name))) if index is None else index

    def _mapping(self, module: str, build_id: str) -> int:
        if not module and not build_id:
            return 0
        index = self._mappings.get((module, build_id))
        if index is None:
            content = integer(4, self.string(module))
            ids = self._files.get((module, build_id), FileIds(build_id))
            attributes = [*filter(_VALUE, zip(_ID_NAMES, ids, strict=True))]
            content += _packed(5, map(self.attribute, attributes))
            index = self._mappings.add((module, build_id), content)
        return index

    def encoded(self) -> bytes:
        tables = (
            *(self._mappings, self._locations, self._functions, self._links),
            *(self._strings, self._attributes, self._stacks),
        )
        return b"".join([table.encoded() for table in tables])


def document(
    window: Window,
    series: Iterable[Series],
    version: str = "",
    files: Mapping[FileKey, FileIds] | None = None,
) -> bytes:
    """Return an ExportProfilesServiceRequest, which is a ProfilesData.

    Args:
        window: the common facts.
        series: the samples.
        version: of purebpf.
        files: the identifiers of files by `Entry.module` and `Entry.build_id`, as far as known.
    """
    dictionary = _Dictionary(files or {})
    scope = message(1, b"purebpf") + (message(2, version.encode()) if version else b"")
    parts = []
    for one in series:
        resource = b"".join([message(1, _key_value(attribute)) for attribute in one.resource])
        profile = _profile(window, one, dictionary)
        content = message(1, resource) + message(2, message(1, scope) + message(2, profile))
        parts.append(message(1, content))
    return b"".join(parts) + message(2, dictionary.encoded())


def _profile(window: Window, series: Series, dictionary: _Dictionary) -> bytes:
    parts = [message(1, _value_type(window.type, window.unit, dictionary))]
    sample, values = field(2), field(4)
    for (comm, stack), value in series.samples.items():
        content = integer(1, dictionary.stack(stack))
        if comm:
            content += _packed(2, [dictionary.attribute(("thread.name", comm))])
        number = varint(value)
        content += values + varint(len(number)) + number
        parts.append(sample + varint(len(content)) + content)
    parts.append(_fixed64(3, window.started_ns))
    parts.append(integer(4, window.duration_ns))
    if window.period_ns:
        parts.append(message(5, _value_type("cpu", "nanoseconds", dictionary)))
        parts.append(integer(6, window.period_ns))
    if window.identity:
        parts.append(message(7, window.identity))
    parts.append(_packed(11, [dictionary.attribute(fact) for fact in window.facts]))
    return b"".join(parts)


def _value_type(kind: str, unit: str, dictionary: _Dictionary) -> bytes:
    return integer(1, dictionary.string(kind)) + integer(2, dictionary.string(unit))


def _packed(number: int, values: Iterable[int]) -> bytes:
    content = b"".join([varint(value) for value in values])
    return message(number, content) if content else b""


def _fixed64(number: int, value: int) -> bytes:
    return varint(number << 3 | 1) + value.to_bytes(8, "little")


def _key_value(attribute: Attribute) -> bytes:
    name, value = attribute
    return message(1, name.encode()) + message(2, _any_value(value))


def _any_value(value: str | int) -> bytes:
    if isinstance(value, int):
        return varint(3 << 3) + varint(value)
    return message(1, printable(value).encode())
