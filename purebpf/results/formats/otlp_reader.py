"""Reads OTLP profiles that `purebpf.results.formats.otlp` wrote, to write them in other formats.

Whatever the bytes are: indices out of range and the layout before opentelemetry-proto 1.10, where a
sample's values were field 2, are refused with words.
"""

from __future__ import annotations

from collections.abc import Sequence

from purebpf.damage import describe
from purebpf.errors import FormatError
from purebpf.results.formats.otlp import Attribute, Entry, Sample, Series, Window
from purebpf.results.formats.protobuf import Message, ProtobufError, fields, varints
from purebpf.tuples import NamedTuple

__all__ = ["ServiceProfile", "read_document"]

_KINDS = {"native": "user", "kernel": "kernel", "cpython": "python"}
_SIGN, _WORD = 1 << 63, 1 << 64


class ServiceProfile(NamedTuple):
    """One profile of a message, with its service."""

    window: Window
    series: Series


def read_document(data: bytes, where: str = "OTLP profiles") -> list[ServiceProfile]:
    """The profiles of a message.

    Args:
        data: an ExportProfilesServiceRequest.
        where: its name in errors.

    Raises:
        FormatError: it is not such a message.
    """
    try:
        top = fields(data)
        dictionary = _Dictionary(fields(_one(top, 2)))
        return [
            _read_profile(dictionary, resource, profile)
            for entry in top.get(1, [])
            for resource, profiles in [_resource_profiles(fields(entry))]
            for profile in profiles
        ]
    except (ProtobufError, IndexError, UnicodeDecodeError) as error:
        raise FormatError(where, f"{len(data)} bytes", describe(error)) from error


class _Dictionary:
    """ProfilesDictionary, whose tables are read when needed."""

    def __init__(self, tables: Message) -> None:
        self._strings = [bytes(_view(text)).decode() for text in tables.get(5, [])]
        self._tables = {
            number: [fields(entry) for entry in tables.get(number, [])] for number in (1, 2, 3, 6)
        }
        self._stacks = [self._read_stack(fields(entry)) for entry in tables.get(7, [])]

    def string(self, index: int) -> str:
        return self._strings[index] if index else ""

    def attribute(self, index: int) -> Attribute:
        entry = self._tables[6][index]
        return self.string(_number(entry, 1)), _any_value(fields(_one(entry, 2)))

    def stack(self, index: int) -> tuple[Entry, ...]:
        return self._stacks[index] if index else ()

    def _read_stack(self, stack: Message) -> tuple[Entry, ...]:
        return tuple(self._entry(self._tables[2][index]) for index in _packed(stack, 1))

    def _entry(self, location: Message) -> Entry:
        module = build_id = name = kind = ""
        if mapping_index := _number(location, 1):
            mapping = self._tables[1][mapping_index]
            module = self.string(_number(mapping, 4))
            build_id = self._text(mapping, 5, "process.executable.build_id.gnu")
        for line in location.get(3, []):
            function = self._tables[3][_number(fields(line), 1)]
            name = self.string(_number(function, 1))
        kind = self._text(location, 4, "profile.frame.type")
        offset = _number(location, 2)
        if name and not offset:  # the mapping has it, and the function is the same in other builds
            build_id = ""
        return Entry(name, module, _KINDS.get(kind, kind), build_id, offset)

    def _text(self, entry: Message, number: int, name: str) -> str:
        attributes = dict(self.attribute(index) for index in _packed(entry, number))
        return str(attributes.get(name, ""))


def _resource_profiles(entry: Message) -> tuple[tuple[Attribute, ...], Sequence[Message]]:
    attributes = []
    for resource in entry.get(1, []):
        for pair in fields(resource).get(1, []):
            pair_fields = fields(pair)
            name = bytes(_view(_one(pair_fields, 1))).decode()
            attributes.append((name, _any_value(fields(_one(pair_fields, 2)))))
    profiles = [
        fields(profile) for scope in entry.get(2, []) for profile in fields(scope).get(2, [])
    ]
    return tuple(attributes), profiles


def _read_profile(
    dictionary: _Dictionary, resource: tuple[Attribute, ...], profile: Message
) -> ServiceProfile:
    kind = fields(_one(profile, 1))
    samples: dict[Sample, int] = {}
    for raw in profile.get(2, []):
        sample = fields(raw)
        values = list(_packed(sample, 4))
        if not values:
            raise ProtobufError("a sample without values: written before opentelemetry-proto 1.10?")
        attributes = dict(dictionary.attribute(index) for index in _packed(sample, 2))
        comm = str(attributes.get("thread.name", ""))
        key = Sample(comm, dictionary.stack(_number(sample, 1)))
        samples[key] = samples.get(key, 0) + sum(values)
    window = Window(
        dictionary.string(_number(kind, 1)),
        dictionary.string(_number(kind, 2)),
        _number(profile, 3),
        _number(profile, 4),
        _number(profile, 6),
        tuple(dictionary.attribute(index) for index in _packed(profile, 11)),
        b"".join(bytes(_view(part)) for part in profile.get(7, [])),
    )
    return ServiceProfile(window, Series(resource, samples))


def _one(entry: Message, number: int) -> int | memoryview:
    values = entry.get(number)
    return values[-1] if values else memoryview(b"")


def _number(entry: Message, number: int) -> int:
    value = entry.get(number, [0])[-1]
    if isinstance(value, int):
        return value
    raise ProtobufError(f"field {number} is not a number")


def _view(value: int | memoryview) -> memoryview:
    if isinstance(value, int):
        raise ProtobufError("a number where bytes are expected")
    return value


def _packed(entry: Message, number: int) -> list[int]:
    values: list[int] = []
    for value in entry.get(number, []):
        values.extend([value] if isinstance(value, int) else varints(value))
    return values


def _any_value(value: Message) -> str | int:
    if 3 in value:
        number = _number(value, 3)
        return number - _WORD if number >= _SIGN else number
    return bytes(_view(_one(value, 1))).decode()
