"""Rows of profiles as the samples of services that OTLP has, by functions. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache

from purebpf.results.formats.otlp import Attribute, Entry, Sample, Series
from purebpf.results.model.profile import Labels, Row, Stack
from purebpf.symbols.file_ids import FileKey
from purebpf.symbols.frame import Frame, Unknown, is_unnamed_function

__all__ = ["Weighted", "series_of"]

Weighted = tuple[Row, int]
Resource = tuple[Attribute, ...]
_Numbers = tuple[int, ...]


def series_of(
    rows: Iterable[Weighted],
    resource: Callable[[Labels], Resource],
    used: set[FileKey] | None = None,
) -> list[Series]:
    """Return the samples by service, with equal functions added up; services ordered by name.

    Args:
        rows: with their weights.
        resource: the attributes of the service of a task.
        used: gets the path and build ID of the file of each frame.
    """
    by_service: dict[Resource, dict[tuple[str, _Numbers], int]] = {}
    stacks = _Functions(set() if used is None else used)
    resources: dict[int, Resource] = {}
    for row, weight in rows:
        labels = row.labels
        service = resources.get(labels.pid)
        if service is None:
            service = resources[labels.pid] = resource(labels)
        stack = stacks.numbers(row.kernel, "kernel") + stacks.numbers(row.user, "user")
        samples = by_service.setdefault(service, {})
        sample = labels.comm, stack
        samples[sample] = samples.get(sample, 0) + weight
    entries = cache(stacks.entries)
    return [
        Series(
            service,
            {
                Sample(comm, entries(numbers)): value
                for (comm, numbers), value in by_service[service].items()
            },
        )
        for service in sorted(by_service)
    ]


class _Functions:
    """Numbers for functions: stacks of those are compared at a tenth of the cost of frames."""

    def __init__(self, used: set[FileKey]) -> None:
        self._used = used
        self._numbers: dict[Entry, int] = {}
        self._entries: list[Entry] = []
        # rows share frames and stacks, and to hash one takes long: each is looked at once, and held
        self._frames: dict[int, tuple[Frame | Unknown, int]] = {}
        self._stacks: dict[tuple[int, str], tuple[Stack | None, _Numbers]] = {}

    def numbers(self, stack: Stack | None, kind: str) -> _Numbers:
        """The functions of a stack."""
        held = self._stacks.get((id(stack), kind))
        if held is None:
            if stack is None:
                numbers: _Numbers = (self._number(Entry("[lost]", "", kind)),)
            else:
                numbers = tuple([self._of_frame(frame) for frame in stack])
            held = self._stacks[id(stack), kind] = stack, numbers
        return held[1]

    def entries(self, numbers: _Numbers) -> tuple[Entry, ...]:
        """The stack with these functions."""
        return tuple([self._entries[number] for number in numbers])

    def _of_frame(self, frame: Frame | Unknown) -> int:
        held = self._frames.get(id(frame))
        if held is None:
            held = self._frames[id(frame)] = frame, self._number(_entry(frame))
            if frame.file_offset >= 0:
                self._used.add((frame.module, frame.build_id))
        return held[1]

    def _number(self, entry: Entry) -> int:
        number = self._numbers.get(entry)
        if number is None:
            number = self._numbers[entry] = len(self._entries)
            self._entries.append(entry)
        return number


def _entry(frame: Frame | Unknown) -> Entry:
    """A function; a place in a file where there is no name; else the reason."""
    module = frame.module.rpartition("/")[2]
    if isinstance(frame, Frame):
        start = frame.file_offset - frame.offset
        if frame.build_id and start >= 0 and is_unnamed_function(frame):
            # another build has another function there, and who has symbols can name it
            return Entry(frame.name, module, frame.kind, frame.build_id, start)
        return Entry(frame.name, module, frame.kind)
    if frame.build_id and frame.file_offset >= 0:
        return Entry("", module, frame.kind, frame.build_id, frame.file_offset)
    return Entry(f"[{frame.reason.name.lower()}]", module, frame.kind)
