"""Fields that differ between events: one filter on two of them keeps all of one, none of the other.

A page fault is sampled before its page is there, a minor fault after; the other tests vary what
one event's samples have (`test_sample_filter`).
"""

from __future__ import annotations

import time
from functools import cache
from typing import NamedTuple

import pytest

from purebpf.abi.perf import perf_event_sample_format as bit
from purebpf.filter import parse
from purebpf.loader.perf.perf_event import PerfEvent
from purebpf.observe.filters.sample_filter import SampleFilter
from purebpf.syscall import perf_event as perf
from tests.kernel.page_faults import EVERYTHING, OLD, PAGES, address, knows, region, touch

pytestmark = pytest.mark.needs("bpf", "perf_event", "vmlinux_btf")


class Kind(NamedTuple):
    """Which samples."""

    event: str
    period: int = 1


BEFORE = Kind("page-faults")
AFTER = Kind("minor-faults")
SHORT = Kind("cpu-clock", 1_000_003)
LONG = Kind("cpu-clock", 0x1F0000)


@pytest.mark.parametrize(
    ("text", "kept", "rejected"),
    [
        ("phys_addr == 0", BEFORE, AFTER),
        ("phys_addr != 0", AFTER, BEFORE),
        ("phys_addr > 0xfff", AFTER, BEFORE),
        ("phys_addr & 0xfffffffffffff000", AFTER, BEFORE),
        ("data_pgsz == 0", BEFORE, AFTER),
        ("data_pgsz == 4096", AFTER, BEFORE),
        ("data_pgsz >= 4096", AFTER, BEFORE),
        ("data_pgsz in {4096, 2097152}", AFTER, BEFORE),
        ("data_pgsz < 1", BEFORE, AFTER),
        ("data_pgsz & 0xf000", AFTER, BEFORE),
        ("period == 1000003", SHORT, LONG),
        ("period != 1000003", LONG, SHORT),
        ("period > 1000003", LONG, SHORT),
        ("period <= 1000003", SHORT, LONG),
        ("period & 0x100000", LONG, SHORT),
        ("period in 2000000..9000000", LONG, SHORT),
        ("id == KEPT", BEFORE, AFTER),
        ("id != REJECTED", BEFORE, AFTER),
        ("id in {1, KEPT}", AFTER, BEFORE),
        ("!(id >= REJECTED && id <= REJECTED)", AFTER, BEFORE),
    ],
)
def test_one_filter_tells_two_events_apart(text: str, kept: Kind, rejected: Kind) -> None:
    where = EVERYTHING if "pgsz" in text else OLD
    if not knows(where):
        pytest.skip("this kernel's samples have no page sizes (Linux 5.11)")
    for kind in (kept, rejected):
        if kind.period == 1 and not is_sampled(kind):
            pytest.skip(f"this kernel samples no {kind.event}")
    with opened(kept, where) as first, opened(rejected, where) as second:
        numbers = {"KEPT": first, "REJECTED": second}
        for word, event in numbers.items():
            text = text.replace(word, str(perf.event_id(event.fileno())))
        with SampleFilter(parse(text), where) as chosen, region(PAGES) as memory:
            chosen.attach(first)
            chosen.attach(second)
            first.enable()
            second.enable()
            touch(memory)
            compute()
            first.disable()
            second.disable()
            mine = range(address(memory), address(memory) + len(memory))
            passed = [
                [each for each in event.records() if chosen.accepts(each)]
                for event in (first, second)
            ]
            counts = chosen.counts()
    # other pages of the process fault, too: those that it shares with a child are there before
    found = [
        [each for each in samples if kind.period > 1 or each.addr in mine]
        for kind, samples in zip((kept, rejected), passed, strict=True)
    ]
    assert found[1] == []
    assert len(found[0]) >= (PAGES if kept.period == 1 else 3)
    assert counts.passed == sum(map(len, passed))
    assert counts.dropped >= (PAGES if rejected.period == 1 else 3)


@cache
def is_sampled(kind: Kind) -> bool:
    """Whether there are such samples when nothing filters them."""
    with opened(kind, bit.PERF_SAMPLE_IP) as event, region(PAGES) as memory:
        event.enable()
        touch(memory)
        event.disable()
        return len(list(event.records())) >= PAGES


def compute() -> None:
    """Spend many periods of the clocks: an emulated machine's timers come when they can."""
    end = time.process_time() + 0.3
    while time.process_time() < end:
        pass


def opened(kind: Kind, sample_type: int) -> PerfEvent:
    """An event that waits, with a ring."""
    event = PerfEvent.sampling(
        period=kind.period,
        event=kind.event,
        pid=0,
        sample_type=sample_type | bit.PERF_SAMPLE_IDENTIFIER,
        disabled=1,
    )
    event.map_ring(64)
    return event
