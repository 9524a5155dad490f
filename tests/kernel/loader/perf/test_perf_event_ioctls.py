"""The ioctls of a perf event's descriptor, each by what it changes."""

from __future__ import annotations

import errno
import os
import signal

import pytest

from purebpf.abi.perf import perf_event_sample_format as bit
from purebpf.errors import KernelError
from purebpf.loader.perf.perf_event import PerfEvent
from purebpf.syscall import perf_event
from tests.kernel.page_faults import touch_pages
from tests.kernel.producers import packet_program, sample_counter

pytestmark = pytest.mark.needs("perf_event")


def faults(**attr: int) -> PerfEvent:
    return PerfEvent.sampling(
        period=1, event="page-faults", pid=0, disabled=1, sample_type=bit.PERF_SAMPLE_ID, **attr
    )


def test_the_id_is_that_of_the_reading_and_of_the_samples() -> None:
    with faults() as event:
        event.map_ring(16)
        event.enable()
        touch_pages(5)
        event.disable()
        number = perf_event.event_id(event.fileno())
        assert number == event.read().id
        assert {each.id for each in event.records()} == {number}


def test_two_events_can_share_a_ring() -> None:
    with faults() as one, faults() as two:
        one.map_ring(16)
        perf_event.set_output(two.fileno(), one.fileno())
        two.enable()
        touch_pages(31)
        two.disable()
        assert {each.id for each in one.records()} == {two.read().id}
        assert one.read().value == 0


def test_refresh_enables_for_some_overflows() -> None:
    with faults() as event:
        event.map_ring(16)
        perf_event.refresh(event.fileno(), 3)
        touch_pages(100)
        counted = event.read().value
        touch_pages(100)
        assert 3 <= counted == event.read().value


def test_a_new_period_holds_from_then_on() -> None:
    with faults() as event:
        event.map_ring(16)
        event.set_period(10)
        event.enable()
        touch_pages(997)
        event.disable()
        counted = event.read().value
        assert len(list(event.records())) in (counted // 10, counted // 10 + 1)


@pytest.mark.alone  # a BPF program at the tracepoint would hide its passes
@pytest.mark.needs("tracefs")
def test_a_filter_decides_which_passes_of_a_tracepoint_count() -> None:
    with PerfEvent.tracepoint("signal:signal_generate", pid=0, disabled=1) as event:
        perf_event.set_filter(event.fileno(), b"sig == %d" % signal.SIGUSR2)
        before = [signal.signal(number, signal.SIG_IGN) for number in (10, 12)]
        try:
            event.enable()
            for number in [signal.SIGUSR1] * 5 + [signal.SIGUSR2] * 3:
                os.kill(os.getpid(), number)
            event.disable()
        finally:
            for number, handler in zip((10, 12), before, strict=True):
                signal.signal(number, handler)
        assert event.read().value == 3


@pytest.mark.needs("bpf")
def test_only_a_perf_event_program_may_run_at_samples() -> None:
    with faults() as event, packet_program() as program:
        with pytest.raises(KernelError, match="PERF_EVENT_IOC_SET_BPF") as caught:
            event.set_bpf(program)
        assert caught.value.errno == errno.EINVAL


@pytest.mark.needs("bpf")
def test_a_program_sees_every_sample_and_one_may_run() -> None:
    with faults() as event, sample_counter() as (program, seen):
        event.set_bpf(program)
        with pytest.raises(KernelError) as caught:
            event.set_bpf(program)
        assert caught.value.errno == errno.EEXIST
        event.enable()
        touch_pages(97)
        event.disable()
        assert seen() == event.read().value >= 97
