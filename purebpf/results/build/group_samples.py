"""Samples with the values of counters (PERF_SAMPLE_READ): one for each counter that went on. Pure.

perf(1) samples the first event of a group like `{cycles,page-faults}:S`, and reads the others with
each sample. It shows such a sample once for each event whose value has grown, with the growth as
its period (evlist__deliver_sample() in tools/perf/util/session.c), and so does this.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from purebpf.abi.perf import (
    PERF_EVENT_ATTR,
    perf_event_read_format,
    perf_event_sample_format,
)
from purebpf.tuples import NamedTuple
from purebpf.wire.perf_data import RecordedEvent
from purebpf.wire.perf_data_reader import Placed
from purebpf.wire.perf_records import Sample

__all__ = ["GroupSamples"]

_TIMES = (
    perf_event_read_format.PERF_FORMAT_TOTAL_TIME_ENABLED
    | perf_event_read_format.PERF_FORMAT_TOTAL_TIME_RUNNING
)
_ID = perf_event_read_format.PERF_FORMAT_ID
_LOST = perf_event_read_format.PERF_FORMAT_LOST


class _Layout(NamedTuple):
    """The places in the values of one event's samples.

    Attributes:
        is_group: whether it has the values of several counters.
        times: words for times, behind the first one.
        words: of a counter: its value, its id, and what it lost.
        is_inherited: whether each thread has values of its own.
    """

    is_group: bool
    times: int
    words: int
    is_inherited: bool


class GroupSamples:
    """Splits the samples of a file. Values count from 0, so it must see all samples in order.

    Args:
        events: of the file.
    """

    def __init__(self, events: Sequence[RecordedEvent]) -> None:
        self._layouts = {number: _layout(event) for number, event in enumerate(events)}
        self._numbers = {id_: number for number, event in enumerate(events) for id_ in event.ids}
        self._values: dict[tuple[int, int], int] = {}

    @property
    def is_needed(self) -> bool:
        """True if samples of the file have values with ids."""
        return any(self._layouts.values())

    def split(self, records: Iterable[Placed]) -> Iterator[Placed]:
        """Return the records; a sample with values is there for each counter that went on."""
        for placed in records:
            event, record = placed
            layout = self._layouts.get(event)
            if layout is None or not isinstance(record, Sample) or not record.values:
                yield placed
                continue
            for id_, value in _counters(record.values, layout):
                key = id_, record.tid if layout.is_inherited else 0
                growth = value - self._values.get(key, 0)
                self._values[key] = value
                number = self._numbers.get(id_)
                if growth > 0 and number is not None:
                    yield Placed(number, record._replace(id=id_, period=growth))


def _layout(event: RecordedEvent) -> _Layout | None:
    """Return the layout of an event's values; None where it has none, or none with ids."""
    attr = PERF_EVENT_ATTR.unpack(event.attr)
    reads = int(attr["read_format"])
    if not event.sample_type & perf_event_sample_format.PERF_SAMPLE_READ or not reads & _ID:
        return None
    return _Layout(
        bool(reads & perf_event_read_format.PERF_FORMAT_GROUP),
        (reads & _TIMES).bit_count(),
        2 + bool(reads & _LOST),
        bool(attr["inherit"]),
    )


def _counters(values: tuple[int, ...], layout: _Layout) -> Iterator[tuple[int, int]]:
    """Return id and value of each counter."""
    behind = 1 + layout.times
    if layout.is_group:
        for at in range(behind, len(values), layout.words):
            yield values[at + 1], values[at]
    else:
        yield values[behind], values[0]
