"""Reading pprof's profile.proto, by Go, Pyroscope, Parca, other profilers, and purebpf.

https://github.com/google/pprof/blob/main/proto/profile.proto
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

from purebpf.damage import describe
from purebpf.errors import FormatError
from purebpf.results.formats.protobuf import Message, ProtobufError, each_field, fields, varints
from purebpf.results.model.interned_stack import Numbered
from purebpf.results.model.profile import NO_MARKS, Labels, Profile, Stack
from purebpf.results.model.spelling import MISSED_KERNEL, MISSED_USER, UNKNOWN
from purebpf.results.model.stack_end import CUT, WHOLE, StackEnd, is_cut, is_cut_frame
from purebpf.symbols.frame import Address, FileOffset, Frame, Reason, Unknown
from purebpf.tuples import NamedTuple

__all__ = ["looks_like", "parse"]

_UNITS = {"nanoseconds": (1, "ns"), "microseconds": (1000, "ns"), "milliseconds": (10**6, "ns"),
          "seconds": (10**9, "ns"), "bytes": (1, "bytes")}  # fmt: skip
"""What to multiply with, and our unit."""
_SAMPLE_TYPE = 1
_NUMBERS = (7, 8, 9, 10, 12, 13, 14, 15)
"""Fields of numbers: frames that are left out or kept, times, the period, comments, the type."""
_LAST_FIELD = 15
_MOST_BEFORE_TYPE = 1 << 12
"""Fields that are looked at."""
_SAMPLE = 2
"""The field with a sample; the others are tables."""
_MOST_IDS = 1 << 25
"""Locations of all samples together: each takes 4 bytes of memory, and 1 in the file."""
_KERNELS = ("kernel", "[kernel", "vmlinux")
_COMMS = ("comm", "thread_name", "thread", "process_name", "process")
_INT64 = 1 << 63
_MOST_LABELS = 1 << 16
"""Sets of labels that are remembered."""


class _Function(NamedTuple):
    name: str
    file: str


class _Module(NamedTuple):
    start: int
    offset: int
    path: str
    build_id: str


_NO_MODULE = _Module(0, 0, "", "")


def looks_like(data: bytes) -> bool:
    """Return True if bytes may be a profile: the type of its samples is there, and all before it
    are fields of a profile. Go's programs write the time first.
    """
    try:
        for number, value in islice(each_field(data), _MOST_BEFORE_TYPE):
            if number == _SAMPLE_TYPE:
                return not isinstance(value, int) and bytes(value[:1]) in (b"\x08", b"\x10")
            if isinstance(value, int) != (number in _NUMBERS) or number > _LAST_FIELD:
                return False
    except ProtobufError:
        pass
    return False


def parse(data: bytes, source: str = "profile") -> Profile:
    """The profile in the bytes, unpacked.

    Among several values of a sample, the file's default type counts, else the last, as `go tool
    pprof` displays them. Frames in the kernel's mapping are the kernel's.

    Raises:
        FormatError: it is not such a profile, or not all of it; `source` is its name in errors.
    """
    try:
        return _Reader(data, source).profile()
    except (ProtobufError, LookupError, TypeError, ValueError, OverflowError) as error:
        raise FormatError(source, "pprof", f"not a whole profile: {describe(error)}") from None


class _Reader:
    """The tables of a file, which its samples refer to."""

    def __init__(self, data: bytes, source: str) -> None:
        self._source = source
        self._data = data
        message = self._message = fields(data, but=_SAMPLE)
        self._strings = [_text(text) for text in message.get(6, ())]
        self._functions = dict(map(self._function, message.get(5, ())))
        self._modules = dict(map(self._module, message.get(3, ())))
        self._table: list[Frame | Unknown] = []
        self._places: dict[int, tuple[range, bool]] = {}
        for location in message.get(4, ()):
            self._add_location(fields(location))
        paths = [module.path for module in self._modules.values()]
        program = next((path for path in paths if not path.startswith(_KERNELS)), "")
        self._program = program.rpartition("/")[2]
        self._ids = 0
        self._known_labels: dict[tuple[Any, ...], tuple[Labels, StackEnd]] = {}

    def profile(self) -> Profile:
        """All samples."""
        message = self._message
        types = [fields(value_type) for value_type in message.get(1, ())]
        kinds = [(self._string(value_type, 1), self._string(value_type, 2)) for value_type in types]
        if not kinds:
            raise ValueError("no type of samples")
        default = self._string(message, 14)
        names = [kind for kind, _ in kinds]
        at = names.index(default) if default in names else len(names) - 1
        factor, unit = _UNITS.get(kinds[at][1], (1, kinds[at][0] or "samples"))
        comments = [self._strings[number] for number in _numbers(message, 13)]
        profile = Profile(comments[0] if comments else f"pprof of {self._source}", unit=unit)
        started, elapsed = _number(message, 9), _number(message, 10)
        if 0 < started < _INT64:
            profile.about["started_s"] = started / 1e9
        if 0 < elapsed < _INT64:
            profile.about["elapsed_s"] = elapsed / 1e9
        for number, sample in each_field(self._data):
            if number == _SAMPLE:
                self._add(profile, fields(sample), at, factor, len(kinds))
        return profile

    def _add(self, profile: Profile, sample: Message, at: int, factor: int, expected: int) -> None:
        values = _numbers(sample, 2)
        if len(values) != expected:  # as pprof: it is not known which type each value has
            raise ValueError(f"a sample has {len(values)} values, and the file {expected} types")
        weight = values[at] * factor
        if not 0 <= weight < _INT64:  # what a difference has less of
            raise ValueError(f"a sample with the value {values[at]}")
        if not weight:
            return
        ids = _numbers(sample, 1)
        user, kernel = array("I"), array("I")
        for number in ids:
            entries, is_kernel = self._places[number]
            (kernel if is_kernel else user).extend(entries)
        self._ids += len(user) + len(kernel)
        if self._ids > _MOST_IDS:
            raise ValueError(f"more than {_MOST_IDS} frames")
        labels, end = self._labels(sample)
        if end != WHOLE:
            profile.about["call_graph"] = "recorded"
        stacks = self._stack(user, MISSED_USER), self._stack(kernel, MISSED_KERNEL)
        profile.add(*stacks, weight, labels, marks=NO_MARKS._replace(end=end))

    def _stack(self, numbers: array[int], missed: str) -> Stack | None:
        if not numbers:
            return ()
        if len(numbers) == 1:
            entry = self._table[numbers[0]]
            if isinstance(entry, Frame) and entry.name == missed:
                return None
        return Numbered(self._table, numbers)

    def _labels(self, sample: Message) -> tuple[Labels, StackEnd]:
        """Return the labels of a sample: most samples have the same as another, to the byte."""
        key = tuple(sample.get(3, ()))
        known = self._known_labels.get(key)
        if known is None:
            known = self._read_labels(sample)
            if len(self._known_labels) >= _MOST_LABELS:
                self._known_labels.clear()
            self._known_labels[key] = known
        return known

    def _read_labels(self, sample: Message) -> tuple[Labels, StackEnd]:
        texts: dict[str, str] = {}
        numbers: dict[str, int] = {}
        for data in sample.get(3, ()):
            label = fields(data)
            key = self._string(label, 1)
            texts[key] = self._string(label, 2)
            numbers[key] = _number(label, 3)
        comm = next((texts[key] for key in _COMMS if texts.get(key)), self._program)
        pid, tid = (_small(numbers.get(key, 0)) for key in ("pid", "tid"))
        cpu = texts.get("cpu", "")
        number = int(cpu) if cpu.isascii() and cpu.isdigit() and len(cpu) < 6 else -1
        labels = Labels(comm, pid, tid, number, texts.get("cgroup", ""), texts.get("state", ""))
        cut = texts.get("cut", "")
        return labels, StackEnd(cut if is_cut(cut) else "", _small(numbers.get("guessed", 0)))

    def _add_location(self, location: Message) -> None:
        module = self._modules.get(_number(location, 2), _NO_MODULE)
        address = _number(location, 3) % (1 << 64)
        where = FileOffset(-1)
        if module.path.startswith("/") and address >= module.start:
            where = FileOffset(min(address - module.start + module.offset, _INT64 - 1))
        is_kernel = module.path.startswith(_KERNELS)
        kind = "kernel" if is_kernel else "user"
        first = len(self._table)
        lines = [fields(source_line) for source_line in location.get(4, ())]
        for left, line in enumerate(lines, 1 - len(lines)):
            function = self._functions.get(_number(line, 1), _Function("", ""))
            if not function.name or function.name == UNKNOWN:
                continue
            file = "" if function.file == module.path else function.file
            number = _number(line, 2) if file else 0
            if not module.path and not address and is_cut_frame(function.name):
                kind = CUT
            entry = Frame(
                function.name, 0, module.path, Address(address), "inlined" if left else kind,
                module.build_id, where, file, _small(number),
            )  # fmt: skip
            is_kernel = is_kernel or function.name == MISSED_KERNEL
            self._table.append(entry)
        if len(self._table) == first:
            self._table.append(
                Unknown(
                    Reason.NOT_FOUND,
                    module.path,
                    Address(address),
                    kind,
                    "",
                    module.build_id,
                    where,
                )
            )
        self._places[_number(location, 1)] = range(first, len(self._table)), is_kernel

    def _function(self, data: Any) -> tuple[int, _Function]:
        function = fields(data)
        name = self._string(function, 2) or self._string(function, 3)
        return _number(function, 1), _Function(name, self._string(function, 4))

    def _module(self, data: Any) -> tuple[int, _Module]:
        mapping = fields(data)
        return _number(mapping, 1), _Module(
            _number(mapping, 2),
            _number(mapping, 4),
            self._string(mapping, 5),
            self._string(mapping, 6),
        )

    def _string(self, message: Mapping[int, Any], number: int) -> str:
        at = _number(message, number)
        return self._strings[at] if at else ""


def _text(data: Any) -> str:
    if isinstance(data, int):
        raise ValueError("a number where a text is expected")  # noqa: TRY004 - a sentence
    return bytes(data).decode("utf-8", "replace")


def _number(message: Mapping[int, Any], field: int) -> int:
    """The number in a field, of several the last; 0 where it is missing."""
    values = message.get(field)
    if not values:
        return 0
    if not isinstance(values[-1], int):
        raise ValueError(f"field {field} is not a number")  # noqa: TRY004 - a sentence
    return values[-1]


def _numbers(message: Mapping[int, Any], field: int) -> Sequence[int]:
    """The numbers of a repeated field, packed or not, as int64."""
    numbers: list[int] = []
    for value in message.get(field, ()):
        if isinstance(value, int):
            numbers.append(value)
        else:
            numbers += varints(value)
    if numbers and max(numbers) >= _INT64:
        return [*map(_signed, numbers)]
    return numbers


def _signed(value: int) -> int:
    return value - (1 << 64) if value >= _INT64 else value


def _small(value: int) -> int:
    return value if 0 <= value < 1 << 32 else 0
