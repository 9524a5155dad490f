"""Samples of groups of events, as perf(1) splits them."""

from __future__ import annotations

from collections.abc import Sequence

from purebpf.abi.perf import PERF_EVENT_ATTR, perf_event_read_format, perf_event_sample_format
from purebpf.results.build.group_samples import GroupSamples
from purebpf.wire.perf_data import RecordedEvent
from purebpf.wire.perf_data_reader import Placed
from purebpf.wire.perf_records import Comm, Sample

_READ = perf_event_sample_format.PERF_SAMPLE_READ
_GROUP = perf_event_read_format.PERF_FORMAT_GROUP
_ID = perf_event_read_format.PERF_FORMAT_ID
_ENABLED = perf_event_read_format.PERF_FORMAT_TOTAL_TIME_ENABLED
_LOST = perf_event_read_format.PERF_FORMAT_LOST
COMM = Placed(0, Comm(7, 7, "app", exec=False))


def events(read_format: int, *, inherit: int = 0, sample_type: int = _READ) -> list[RecordedEvent]:
    attr = PERF_EVENT_ATTR.pack(sample_type=sample_type, read_format=read_format, inherit=inherit)
    return [
        RecordedEvent("cycles", bytes(attr), (11, 12)),
        RecordedEvent("faults", bytes(attr), (21,)),
    ]


def split(
    of: Sequence[RecordedEvent], *values: tuple[int, ...], tids: Sequence[int] = ()
) -> list[tuple[int, int, int]]:
    """Event, id and period of each sample that comes out."""
    tids = tids or [7] * len(values)
    samples = [
        Placed(0, Sample(0, tid=tid, values=one)) for tid, one in zip(tids, values, strict=True)
    ]
    found = GroupSamples(of).split([COMM, *samples])
    assert next(found) == COMM
    return [
        (event, record.id, record.period) for event, record in found if isinstance(record, Sample)
    ]


def test_each_counter_of_a_group_that_went_on_has_a_sample() -> None:
    group = events(_GROUP | _ID)
    assert split(group, (2, 100, 11, 3, 21), (2, 250, 11, 3, 21), (2, 250, 11, 8, 21)) == [
        (0, 11, 100),
        (1, 21, 3),
        (0, 11, 150),
        (1, 21, 5),
    ]


def test_times_and_lost_counts_stand_between() -> None:
    group = events(_GROUP | _ID | _ENABLED | _LOST)
    assert split(group, (2, 999, 100, 11, 0, 3, 21, 0)) == [(0, 11, 100), (1, 21, 3)]


def test_a_counter_that_is_read_alone_has_its_growth_as_period() -> None:
    alone = events(_ID | _ENABLED)
    assert split(alone, (40, 999, 11), (40, 999, 11), (70, 999, 11), (5, 9, 12)) == [
        (0, 11, 40),
        (0, 11, 30),
        (0, 12, 5),
    ]


def test_threads_that_inherit_count_for_themselves() -> None:
    group = events(_GROUP | _ID, inherit=1)
    values = [(2, 100, 11, 1, 21), (2, 60, 11, 0, 21), (2, 110, 11, 1, 21)]
    assert split(group, *values, tids=(7, 8, 7)) == [
        (0, 11, 100),
        (1, 21, 1),
        (0, 11, 60),
        (0, 11, 10),
    ]


def test_an_unknown_id_belongs_to_no_event() -> None:
    assert split(events(_GROUP | _ID), (2, 100, 99, 3, 21)) == [(1, 21, 3)]


def test_values_without_ids_stay_one_sample() -> None:
    without = GroupSamples(events(_GROUP))
    assert not without.is_needed
    assert split(events(_GROUP), (2, 100, 3)) == [(0, 0, 0)]
    assert not GroupSamples(events(_GROUP | _ID, sample_type=0)).is_needed
    assert GroupSamples(events(_GROUP | _ID)).is_needed
