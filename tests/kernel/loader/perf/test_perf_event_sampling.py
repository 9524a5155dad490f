"""Perf events that sample: as many records as the count and the period say."""

from __future__ import annotations

import ctypes
import errno
import os

import pytest

from purebpf.abi.perf import PERF_EVENT_ATTR, perf_type_id
from purebpf.abi.perf import perf_event_sample_format as bit
from purebpf.errors import KernelError
from purebpf.loader.perf.perf_event import PerfEvent
from purebpf.loader.perf.perf_events import PerfEvents
from purebpf.syscall import backend
from purebpf.wire.perf_records import Lost, Sample
from tests.kernel.page_faults import touch_pages

pytestmark = pytest.mark.needs("perf_event")


@pytest.mark.parametrize("period", [1, 7])
def test_there_is_a_sample_for_every_period_of_the_count(period: int) -> None:
    where = bit.PERF_SAMPLE_TID | bit.PERF_SAMPLE_ADDR
    with PerfEvent.sampling(
        period=period, event="page-faults", pid=0, sample_type=where, disabled=1
    ) as event:
        event.map_ring(64)
        event.enable()
        touch_pages(997)
        event.disable()
        records = list(event.records())
        counted = event.read().value
    assert counted >= 997
    assert len(records) == counted // period
    assert {(each.pid, each.tid) for each in records} == {(os.getpid(), os.getpid())}
    assert len({each.addr for each in records}) == len(records)


def test_a_software_event_that_records_its_period_samples_every_count() -> None:
    """The kernel then ignores the period (perf_swevent_event in kernel/events/core.c)."""
    with PerfEvent.sampling(
        period=7, event="page-faults", pid=0, sample_type=bit.PERF_SAMPLE_PERIOD, disabled=1
    ) as event:
        event.map_ring(64)
        event.enable()
        touch_pages(997)
        event.disable()
        assert sum(each.period for each in event.records()) == event.read().value


def test_cpu_clock_samples_name_this_thread_and_its_callers() -> None:
    kind = bit.PERF_SAMPLE_IP | bit.PERF_SAMPLE_TID | bit.PERF_SAMPLE_TIME
    with PerfEvent.sampling(
        period=100_000,
        event="cpu-clock",
        pid=0,
        sample_type=kind | bit.PERF_SAMPLE_CALLCHAIN,
    ) as event:
        event.map_ring(64)
        while event.read().value < 20_000_000:
            sum(range(1000))
        event.disable()
        samples = [each for each in event.records() if isinstance(each, Sample)]
        counted = event.read().value
    assert 0 < len(samples) <= counted // 100_000 + 1
    assert {each.tid for each in samples} == {os.getpid()}
    assert all(len(each.callchain) >= 2 for each in samples)
    assert [each.time for each in samples] == sorted(each.time for each in samples)


def test_a_full_ring_counts_what_it_lost_exactly() -> None:
    with PerfEvent.sampling(
        period=1, event="page-faults", pid=0, sample_type=bit.PERF_SAMPLE_IP, disabled=1
    ) as event:
        ring = event.map_ring(1)
        event.enable()
        touch_pages(997)
        event.disable()
        kept = sum(isinstance(each, Sample) for each in event.records())
        reading = event.read()
        assert kept == (ring.size - 1) // 16  # it is full a byte early, to differ from empty
        if reading.lost is not None:
            assert reading.lost == reading.value - kept


def test_breaking_out_of_the_records_loses_none() -> None:
    with PerfEvent.sampling(
        period=1, event="page-faults", pid=0, sample_type=bit.PERF_SAMPLE_ADDR, disabled=1
    ) as event:
        event.map_ring(8)
        event.enable()
        touch_pages(20)
        event.disable()
        expected = event.read().value
        first = [next(event.records()) for _ in range(5)]
        rest = list(event.records())
    assert len({each.addr for each in first + rest}) == len(first) + len(rest) == expected


def test_a_lost_record_tells_how_many_when_room_comes_back() -> None:
    with PerfEvent.sampling(
        period=1, event="page-faults", pid=0, sample_type=bit.PERF_SAMPLE_IP, disabled=1
    ) as event:
        event.map_ring(1)
        event.enable()
        touch_pages(997)
        event.disable()
        kept = sum(isinstance(each, Sample) for each in event.records())
        missed = event.read().value - kept
        assert missed > 0
        event.enable()
        touch_pages(1)
        event.disable()
        assert [each.lost for each in event.records() if isinstance(each, Lost)] == [missed]


class WithoutPmu(backend.KernelBackend):
    """A machine without performance counters, as most virtual ones."""

    def __init__(self) -> None:
        super().__init__()
        self.opened: list[tuple[int, int]] = []

    def perf_event_open(self, attr: int, pid: int, cpu: int, group: int, flags: int) -> int:
        data = ctypes.string_at(attr, PERF_EVENT_ATTR.size)
        kind = int(PERF_EVENT_ATTR.unpack(data)["type"])
        self.opened.append((kind, cpu))
        if kind == perf_type_id.PERF_TYPE_HARDWARE:
            return -errno.ENOENT
        return super().perf_event_open(attr, pid, cpu, group, flags)


def test_cpu_clock_replaces_cycles_and_says_why() -> None:
    with backend.replaced(WithoutPmu()), PerfEvent.sampling(99, pid=0) as event:
        assert event.event.name == "cpu-clock"
        assert event.event.fell_back
        assert event.event.asked == "cpu-cycles"
        assert "ENOENT" in event.event.why_not


def test_the_fallback_is_decided_once_for_all_cpus() -> None:
    without = WithoutPmu()
    with backend.replaced(without), PerfEvents.sampling(99) as events:
        hardware = [cpu for kind, cpu in without.opened if kind == perf_type_id.PERF_TYPE_HARDWARE]
        assert hardware == [events[0].cpu]
        assert events.event.fell_back
        assert {event.event for event in events} == {events.event}


def test_an_event_asked_for_by_name_is_never_replaced() -> None:
    with (
        backend.replaced(WithoutPmu()),
        pytest.raises(KernelError, match="cpu-cycles") as caught,
    ):
        PerfEvent.sampling(99, event="cpu-cycles", pid=0)
    assert caught.value.errno == errno.ENOENT
    assert "use a software event" in caught.value.fix


@pytest.mark.parametrize(
    "rate", [{}, {"frequency": 1, "period": 1}, {"frequency": 0}, {"period": -1}]
)
def test_a_rate_is_one_positive_number(rate: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=r"frequency and period|must be positive"):
        PerfEvent.sampling(**rate, pid=0)


def test_records_need_a_ring_and_an_event_has_one() -> None:
    with PerfEvent.software("dummy", pid=0) as event:
        with pytest.raises(ValueError, match="does not have a ring"):
            next(event.records())
        with pytest.raises(ValueError, match="must be a power of two, not 3"):
            event.map_ring(3)
        event.map_ring(1)
        with pytest.raises(ValueError, match="already has a ring"):
            event.map_ring(1)
        assert list(event.records()) == []
