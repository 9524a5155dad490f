"""Rows of profiles as the samples of services that OTLP has, by functions. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache

from purebpf.results.formats.otlp import Attribute, Entry, Sample, Series
from purebpf.results.model.profile import Labels, Row, Stack
from purebpf.symbols.frame import Frame, Unknown, is_unnamed_function

__all__ = ["Weighted", "series_of"]

Weighted = tuple[Row, int]
Resource = tuple[Attribute, ...]


def series_of(rows: Iterable[Weighted], resource: Callable[[Labels], Resource]) -> list[Series]:
    """The samples by service, those of equal functions added up; services in their order by name.

    Args:
        rows: with their weights.
        resource: the attributes of the service of a task.
    """
    by_service: dict[Resource, dict[Sample, int]] = {}
    entry = cache(_entry)
    # rows share their stacks, and to hash one takes long: each is looked up once, and held
    known: dict[tuple[int, str], tuple[Stack | None, tuple[Entry, ...]]] = {}

    def entries(stack: Stack | None, kind: str) -> tuple[Entry, ...]:
        held = known.get((id(stack), kind))
        if held is None:
            held = known[id(stack), kind] = stack, (*_entries(stack, kind, entry),)
        return held[1]

    resources: dict[int, Resource] = {}
    for row, weight in rows:
        labels = row.labels
        service = resources.get(labels.pid)
        if service is None:
            service = resources[labels.pid] = resource(labels)
        stack = entries(row.kernel, "kernel") + entries(row.user, "user")
        samples = by_service.setdefault(service, {})
        sample = Sample(labels.comm, stack)
        samples[sample] = samples.get(sample, 0) + weight
    return [Series(service, by_service[service]) for service in sorted(by_service)]


def _entries(
    stack: Stack | None, kind: str, entry: Callable[[Frame | Unknown], Entry]
) -> Iterator[Entry]:
    if stack is None:
        yield Entry("[lost]", "", kind)
        return
    yield from map(entry, stack)


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
