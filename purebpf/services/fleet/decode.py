"""The messages of hosts, as deliveries: OTLP by the layout of opentelemetry-proto 1.10.

Read by `protobuf`, in C: a hub has 1,000 such messages a minute. The agent's, and those from other
profilers that count CPU time. Whatever the bytes are, the answer is a value or a `RefusedError`
that names the fault.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.profiles.v1development.profiles_service_pb2 import (
    ExportProfilesServiceRequest,
)

from purebpf.errors import PurebpfError
from purebpf.results.model.spelling import printable
from purebpf.services.fleet.charging import FREE_SIZE, WalkError, charge
from purebpf.services.fleet.ids import frame_id, series_id, stack_id, text_id
from purebpf.services.fleet.rows import COLUMNS, Delivery, Frame, Sample, Series, Window

__all__ = ["ALL_MEMORY", "LITTLE_MEMORY", "CostlyError", "RefusedError", "decode"]

_MOST_ATTRIBUTES = 64
_MOST_SERVICES = 4096
_MOST_PROFILES = 1 << 14
_MOST_FRAMES = 1 << 12
ALL_MEMORY, LITTLE_MEMORY = 80 << 20, 16 << 20
"""Bytes of memory that the rows of a message may take: few bytes can refer to many. Rows of little
memory take a fraction of a second.
"""
_MOST_PARSED = 64 << 20
"""Bytes of memory that `protobuf` may take for a message."""
_COST_WINDOW, _COST_FACT = 2000, 100
_COST_SERIES, _COST_SAMPLE, _COST_FRAME, _COST_STACK, _COST_INDEX = 800, 320, 400, 200, 32
"""Bytes of memory for each, as Python keeps them. An index takes eight, and 0.2 microseconds."""
_LONGEST_LABEL = 1 << 10
_LONGEST_NAME = 1 << 12
_LONGEST_ID = 64
_MOST_ELEMENTS, _MOST_DEPTH = 8, 3
"""How much of an array of labels is shown."""
_DEEP = f"a stack of more than {_MOST_FRAMES} frames"
_AHEAD_NS = 600 * 10**9
_MOST = (1 << 63) - 1
_MOST_FACT = 1 << 42
"""Of what a window says of itself: sums of them have to fit into 64 bits."""
_MOST_PPM = 10**6
_MOST_WINDOW_NS = 1 << 56
"""How long a window may be, and all of its samples: two years of a CPU."""
_MOST_OFFSET_NS = 1 << 62
_DAY_NS = 86400 * 10**9
_FACTS = "purebpf."
_KINDS = {
    ("samples", "count"): "cpu",
    ("cpu", "nanoseconds"): "cpu",
    ("off_cpu", "nanoseconds"): "offcpu",
    ("run_queue", "nanoseconds"): "runqueue",
}
_FRAME_KINDS = {"native": "user", "kernel": "kernel", "cpython": "python"}
_NUMBERS = ("expected", "seen", "unknown_ppm", "bpf_run_ns", "agent_cpu_ns", "rss_bytes",
            "spool_bytes", "dropped_windows")  # fmt: skip


class RefusedError(PurebpfError):
    """A message that no second try makes any better; says why."""


class CostlyError(RefusedError):
    """A message that takes more than it may."""


class _Sender(NamedTuple):
    """The sender of a message: `host` "" is any, `now_ns` is the time of arrival."""

    host: str
    sent_ns: int
    now_ns: int
    oldest_ns: int


def decode(
    data: bytes,
    *,
    host: str = "",
    sent_ns: int = 0,
    now_ns: int,
    oldest_ns: int = 0,
    memory: int = ALL_MEMORY,
) -> list[Delivery]:
    """The windows of a message.

    Args:
        data: an ExportProfilesServiceRequest.
        host: the host that may have sent it; "" for any.
        sent_ns: when it was sent, by the sender's clock; 0: unknown.
        now_ns: when it came.
        oldest_ns: windows that began before are refused.
        memory: bytes that its rows may take.

    Raises:
        CostlyError: it would take more memory.
        RefusedError: it is not such a message, or not an accepted one.
    """
    message = ExportProfilesServiceRequest()
    if len(data) > FREE_SIZE:
        try:
            charge(data, message.DESCRIPTOR, _MOST_PARSED)
        except WalkError as error:
            raise CostlyError(f"too much for one message: {error}") from None
    try:
        message.ParseFromString(data)
    except DecodeError:
        raise RefusedError("not an OTLP profiles message") from None
    try:
        return _Message(message, _Sender(host, sent_ns, now_ns, oldest_ns), memory).deliveries()
    except IndexError:
        raise RefusedError("an index is beyond its table") from None


class _Message:
    """A message; its tables are read when needed, once."""

    def __init__(self, message: Any, sender: _Sender, memory: int) -> None:
        self._message, self._sender = message, sender
        self._tables = message.dictionary
        self._names: dict[int, str] = {}
        self._attributes: dict[int, tuple[str, str | int]] = {}
        self._locations: dict[int, tuple[Frame, ...]] = {}
        self._stacks: dict[int, tuple[int, tuple[int, ...]]] = {}
        self._by_number: dict[int, Frame] = {}
        self._build_ids: dict[int, str] = {}
        self._deliveries: dict[int, Delivery] = {}
        self._taken_ns: dict[int, int] = {}
        self._memory = self._left = memory

    def _spend(self, nbytes: int) -> None:
        """Charge the memory of an object before its creation."""
        self._left -= nbytes
        if self._left < 0:
            raise CostlyError(
                f"too much for one message: more than {self._memory >> 20} MiB of stacks and labels"
            )

    def deliveries(self) -> list[Delivery]:
        resources = self._message.resource_profiles
        if len(resources) > _MOST_SERVICES:
            raise RefusedError(f"{len(resources)} services in a message: {_MOST_SERVICES} at most")
        profiles = sum(len(scope.profiles) for one in resources for scope in one.scope_profiles)
        if profiles > _MOST_PROFILES:
            raise RefusedError(f"{profiles} profiles in a message: {_MOST_PROFILES} at most")
        for entry in resources:
            attributes = self._pairs(entry.resource.attributes)
            for scope in entry.scope_profiles:
                for profile in scope.profiles:
                    self._read(attributes, profile)
        return list(self._deliveries.values())

    def _read(self, attributes: Mapping[str, str], profile: Any) -> None:
        kind_names = (
            self._string(profile.sample_type.type_strindex),
            self._string(profile.sample_type.unit_strindex),
        )
        kind = _KINDS.get(kind_names)
        if kind is None:
            wanted = ", ".join("/".join(names) for names in _KINDS)
            raise RefusedError(f"samples of {'/'.join(kind_names)!r}: known are {wanted}")
        host = attributes.get("host.name", "")
        if self._sender.host not in ("", host):
            raise RefusedError(f"this token is that of {self._sender.host}, not of {host!r}")
        self._spend(_COST_WINDOW + _COST_FACT * len(profile.attribute_indices))
        facts = self._facts(profile.attribute_indices)
        window = self._window(kind, host, profile, facts)
        delivery = self._deliveries.get(window.delivery)
        if delivery is None:
            delivery = Delivery(window, [], {}, {}, {})
            self._deliveries[window.delivery] = delivery
        self._take_samples(delivery, attributes, profile, kind_names[1] == "count")

    def _window(self, kind: str, host: str, profile: Any, facts: Mapping[str, str | int]) -> Window:
        started_ns = profile.time_unix_nano
        if started_ns > self._sender.now_ns + _AHEAD_NS:
            ahead_s = (started_ns - self._sender.now_ns) / 1e9
            raise RefusedError(f"a window that begins in {ahead_s:.0f} s: is the clock right?")
        if started_ns < self._sender.oldest_ns:
            ago = (self._sender.now_ns - started_ns) // _DAY_NS
            most = (self._sender.now_ns - self._sender.oldest_ns) // _DAY_NS
            raise RefusedError(f"a window that began {ago} days ago: {most} at most")
        if not started_ns or max(profile.duration_nano, profile.period) > _MOST_WINDOW_NS:
            raise RefusedError("a window without a time, or a length beyond all reason")
        if len(profile.profile_id) > _LONGEST_ID:
            raise RefusedError(f"an id of {len(profile.profile_id)} bytes: {_LONGEST_ID} at most")
        identity = profile.profile_id.hex() or f"{started_ns}"
        lost = tuple(
            sorted(
                (name.removeprefix("lost."), _whole(value))
                for name, value in facts.items()
                if name.startswith("lost.")
            )
        )
        numbers = {name: _whole(facts.get(name, 0)) for name in _NUMBERS}
        numbers["unknown_ppm"] = min(_MOST_PPM, numbers["unknown_ppm"])
        offset_ns = self._sender.now_ns - self._sender.sent_ns if self._sender.sent_ns else 0
        return Window(
            ts_us=started_ns // 1000,
            host=host,
            kind=kind,
            delivery=text_id((host, kind, identity)),
            start_id=str(facts.get("start_id", "")),
            duration_ns=profile.duration_nano,
            period_ns=profile.period,
            lost=lost,
            clock_offset_ns=max(-_MOST_OFFSET_NS, min(_MOST_OFFSET_NS, offset_ns)),
            **numbers,
        )

    def _take_samples(
        self, delivery: Delivery, attributes: Mapping[str, str], profile: Any, is_counted: bool
    ) -> None:
        """Add the samples of a profile; a period makes time of counts."""
        factor = profile.period if is_counted else 1
        if not factor:
            raise RefusedError("samples are counted, and the period is missing")
        known = {column: attributes.get(name, "") for name, column in COLUMNS.items()}
        rest = tuple(
            sorted((name, text) for name, text in attributes.items() if name not in COLUMNS)
        )
        flat = [text for pair in rest for text in pair]
        size = _COST_SERIES + 2 * sum(map(len, (*known.values(), *flat)))
        series: dict[str, int] = {}
        comms: dict[tuple[int, ...], str] = {}
        sums: dict[tuple[int, int], int] = {}
        for sample in profile.samples:
            if not sample.values:
                raise RefusedError("a sample without values: sent before opentelemetry-proto 1.10?")
            key = tuple(sample.attribute_indices)
            comm = comms.get(key)
            if comm is None:
                self._spend(_COST_STACK + _COST_INDEX * len(key))
                comm = comms[key] = self._comm(key)
            number = series.get(comm)
            if number is None:
                self._spend(size)
                number = series[comm] = series_id((*known.values(), comm, *flat))
                delivery.series[number] = Series(number, **known, comm=comm, labels=rest)
            stack, frames = self._stack(sample.stack_index)
            if stack not in delivery.stacks:
                self._spend(_COST_STACK + _COST_INDEX * len(frames))
                delivery.stacks[stack] = frames
                delivery.frames.update((frame, self._by_number[frame]) for frame in frames)
            value = sum(sample.values) * factor
            if not 0 <= value <= _MOST:
                raise RefusedError(f"a value of {value}")
            place = number, stack
            if place not in sums:
                self._spend(_COST_SAMPLE)
            sums[place] = sums.get(place, 0) + value
        window = delivery.window.delivery
        self._taken_ns[window] = self._taken_ns.get(window, 0) + sum(sums.values())
        if self._taken_ns[window] > _MOST_WINDOW_NS:
            raise RefusedError(f"a window with samples of {self._taken_ns[window] // 10**9} s")
        delivery.samples.extend(Sample(*place, value) for place, value in sums.items())

    def _stack(self, index: int) -> tuple[int, tuple[int, ...]]:
        known = self._stacks.get(index)
        if known is None:
            places = _entry(self._tables.stack_table, index).location_indices if index else ()
            if len(places) > _MOST_FRAMES:
                raise RefusedError(_DEEP)
            self._spend(_COST_STACK + _COST_INDEX * len(places))
            count = 0
            for place in places:
                count += len(self._location(place))
                if count > _MOST_FRAMES:
                    raise RefusedError(_DEEP)
            self._spend(_COST_INDEX * count)
            frames = tuple(frame.frame for place in places for frame in self._location(place))
            known = self._stacks[index] = stack_id(frames), frames
        return known

    def _location(self, index: int) -> tuple[Frame, ...]:
        """The functions of a place, the innermost first."""
        known = self._locations.get(index)
        if known is None:
            location = _entry(self._tables.location_table, index)
            if len(location.lines) > _MOST_FRAMES:
                raise RefusedError(_DEEP)
            self._spend(
                _COST_FRAME * (1 + len(location.lines))
                + _COST_INDEX * len(location.attribute_indices)
            )
            known = self._locations[index] = tuple(self._functions(location))
            self._by_number.update((frame.frame, frame) for frame in known)
        return known

    def _functions(self, location: Any) -> Iterable[Frame]:
        module = build_id = ""
        mapping = None
        if location.mapping_index:
            mapping = _entry(self._tables.mapping_table, location.mapping_index)
            module = self._string(mapping.filename_strindex).rpartition("/")[2]
            build_id = self._build_id(location.mapping_index, mapping)
        kind = self._text(location.attribute_indices, "profile.frame.type")
        kind = _FRAME_KINDS.get(kind, kind)
        nameless = not location.lines
        for line in location.lines:
            function = _entry(self._tables.function_table, line.function_index)
            name = self._string(function.name_strindex)
            if build_id and name.startswith(f"{module}!0x"):  # so agents call what has no symbol
                nameless = True
            elif name:
                yield Frame(frame_id(name, module, "", -1), name, module, "", -1, kind)
        if nameless:
            offset = location.address
            if mapping is not None and mapping.memory_start <= offset:
                offset += mapping.file_offset - mapping.memory_start
            offset = min(offset, _MOST)
            number = frame_id("", module, build_id, offset)
            yield Frame(number, "", module, build_id, offset, kind)

    def _build_id(self, index: int, mapping: Any) -> str:
        known = self._build_ids.get(index)
        if known is None:
            known = self._text(mapping.attribute_indices, "process.executable.build_id.gnu")
            self._build_ids[index] = known
        return known

    # Strings and attributes

    def _string(self, index: int) -> str:
        text = self._names.get(index)
        if text is None:
            text = _cut(_entry(self._tables.string_table, index), _LONGEST_NAME) if index else ""
            self._spend(_COST_STACK + len(text))
            self._names[index] = text
        return text

    def _attribute(self, index: int) -> tuple[str, str | int]:
        known = self._attributes.get(index)
        if known is None:
            entry = _entry(self._tables.attribute_table, index)
            self._spend(_COST_FRAME)
            known = self._string(entry.key_strindex), _value(entry.value)
            self._attributes[index] = known
        return known

    def _text(self, indices: Iterable[int], name: str) -> str:
        for index in indices:
            key, value = self._attribute(index)
            if key == name:
                return str(value)
        return ""

    def _comm(self, indices: Iterable[int]) -> str:
        return self._text(indices, "thread.name")

    def _facts(self, indices: Any) -> dict[str, str | int]:
        if len(indices) > _MOST_ATTRIBUTES:
            raise RefusedError(f"{len(indices)} attributes of a window")
        pairs = (self._attribute(index) for index in indices)
        return {
            name.removeprefix(_FACTS): value for name, value in pairs if name.startswith(_FACTS)
        }

    def _pairs(self, attributes: Any) -> dict[str, str]:
        if len(attributes) > _MOST_ATTRIBUTES:
            raise RefusedError(f"{len(attributes)} labels: {_MOST_ATTRIBUTES} at most")
        return {_cut(entry.key, _LONGEST_LABEL): str(_value(entry.value)) for entry in attributes}


def _entry(table: Any, index: int) -> Any:
    if index < 0:
        raise IndexError(index)
    return table[index]


def _value(value: Any) -> str | int:
    which = value.WhichOneof("value")
    if which == "int_value":
        return int(value.int_value)
    if which == "string_value":
        return _cut(value.string_value, _LONGEST_LABEL)
    return _cut("".join(_spell(value, _MOST_DEPTH)), _LONGEST_LABEL)


def _spell(value: Any, depth: int) -> Iterator[str]:
    """Pieces of the text of a value: `[a, b]` and `{k: v}`, with `...` where it is cut."""
    which = value.WhichOneof("value")
    if which in ("array_value", "kvlist_value"):
        elements = getattr(value, which).values
        is_array = which == "array_value"
        yield "[" if is_array else "{"
        for number, element in enumerate(elements[:_MOST_ELEMENTS] if depth else ()):
            yield ", " if number else ""
            if not is_array:
                yield f"{element.key[:_LONGEST_LABEL]}: "
            yield from _spell(element if is_array else element.value, depth - 1)
        if len(elements) > (_MOST_ELEMENTS if depth else 0):
            yield "..."
        yield "]" if is_array else "}"
    elif which == "bytes_value":
        yield value.bytes_value[:_LONGEST_LABEL].hex()
    elif which is not None:
        yield str(getattr(value, which))[:_LONGEST_LABEL]


def _cut(text: str, most: int) -> str:
    """A text without control characters, cut before it is looked at."""
    return printable(text[:most])[:most]


def _whole(value: str | int) -> int:
    return min(value, _MOST_FACT) if isinstance(value, int) and value > 0 else 0
