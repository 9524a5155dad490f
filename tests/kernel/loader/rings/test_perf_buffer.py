"""The perf buffer against a program that sends a known number of records."""

from __future__ import annotations

import asyncio
import itertools
import os
import struct

import pytest

from purebpf.errors import KernelError
from purebpf.loader.host import cpus
from purebpf.loader.rings.perf_buffer import PerfBuffer
from purebpf.syscall import bpf
from tests.kernel.producers import U64, Numbers, perf_producer
from tests.support import probes

pytestmark = pytest.mark.needs("bpf", "perf_event")

ENTRIES = cpus.possible()[-1] + 1


def numbers(count: int) -> list[int]:
    return list(range(count))


def pin_to(cpu: int) -> set[int]:
    """Run on `cpu` only; returns where this thread could run before."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {cpu})
    return before


def test_every_record_of_every_cpu_arrives_once() -> None:
    with perf_producer(ENTRIES) as producer, PerfBuffer(producer.source, Numbers()) as buffer:
        allowed = os.sched_getaffinity(0)
        try:
            for cpu in sorted(allowed):
                os.sched_setaffinity(0, {cpu})
                producer.send(1009)
        finally:
            os.sched_setaffinity(0, allowed)
        found = list(buffer.drain())
        assert sorted(found) == numbers(1009 * len(allowed))
        assert list(buffer.drain()) == []
        assert (producer.refused, buffer.lost) == (0, 0)


def test_the_repr_of_a_reader_names_its_map() -> None:
    with perf_producer(ENTRIES) as producer, PerfBuffer(producer.source, Numbers()) as buffer:
        assert repr(buffer) == f"<PerfBuffer of {producer.source.name!r}>"


def test_a_record_has_the_kernels_padding() -> None:
    with perf_producer(ENTRIES) as producer, PerfBuffer(producer.source, bytes) as buffer:
        producer.send(1)
        assert list(buffer.drain()) == [U64.pack(0) + bytes(4)]


def test_what_does_not_fit_is_lost_exactly_although_no_later_record_says_so() -> None:
    with perf_producer(ENTRIES) as producer, PerfBuffer(producer.source, Numbers(), pages=1) as buf:
        before = pin_to(0)
        try:
            producer.send(1009)
        finally:
            os.sched_setaffinity(0, before)
        kept = list(buf.drain())
        assert kept == numbers(len(kept))
        assert producer.refused == 1009 - len(kept) > 0
        assert buf.lost == producer.refused
        buf.close()
        assert buf.lost == 1009 - len(kept)


def test_a_lost_record_is_not_yielded_as_one_of_the_program() -> None:
    with perf_producer(ENTRIES) as producer, PerfBuffer(producer.source, Numbers(), pages=1) as buf:
        before = pin_to(0)
        try:
            producer.send(1009)
            first = list(buf.drain())
            producer.send(10)
        finally:
            os.sched_setaffinity(0, before)
        assert list(buf.drain()) == list(range(1009, 1019))
        assert buf.lost == 1009 - len(first)


def test_breaking_out_and_going_on_sees_each_record_once() -> None:
    with perf_producer(ENTRIES) as producer, PerfBuffer(producer.source, Numbers()) as buffer:
        producer.send(501)
        found = [next(buffer.drain())]
        found += itertools.islice(buffer.read(), 200)
        found += buffer.read(timeout=0)
        assert sorted(found) == numbers(501)


def test_a_watermark_that_is_not_reached_is_read_when_the_time_is_over() -> None:
    with (
        perf_producer(ENTRIES) as producer,
        PerfBuffer(producer.source, Numbers(), wakeup=1000) as buffer,
    ):
        producer.send(3)
        assert list(buffer.read(timeout=0.01)) == numbers(3)


def test_async_for_wakes_up_for_each_batch() -> None:
    async def scenario() -> list[int]:
        found: list[int] = []
        with perf_producer(ENTRIES) as producer, PerfBuffer(producer.source, Numbers()) as buffer:

            async def collect() -> None:
                async for number in buffer:
                    found.append(number)
                    if len(found) % 10 == 0:
                        return

            for _ in range(100):
                waiting = asyncio.create_task(collect())
                await asyncio.sleep(0)
                await asyncio.to_thread(producer.send, 10)
                await waiting
        return found

    assert asyncio.run(scenario()) == numbers(1000)


def test_closing_takes_the_events_out_of_the_map() -> None:
    before = probes.descriptors()
    with perf_producer(ENTRIES) as producer:
        opened = probes.descriptors()
        buffer = PerfBuffer(producer.source, Numbers())
        buffer.close()
        buffer.close()
        assert probes.descriptors() == opened
        producer.send(1)
        assert producer.refused == 1
        with pytest.raises(KernelError, match="ENOENT"):
            bpf.map_delete_elem(producer.source.fileno(), bytes(4))
        with pytest.raises(ValueError, match="the reader of 'events' is closed"):
            buffer.fileno()
        with pytest.raises(ValueError, match="the reader of 'events' is closed"):
            list(buffer.drain())
    assert probes.descriptors() == before


def test_a_map_may_be_closed_before_its_reader() -> None:
    with perf_producer(ENTRIES) as producer:
        buffer = PerfBuffer(producer.source, Numbers())
    buffer.close()


def test_a_map_with_more_entries_than_cpus_is_read() -> None:
    with perf_producer(1024) as producer, PerfBuffer(producer.source, Numbers()) as buffer:
        producer.send(1009)
        assert sorted(buffer.drain()) == numbers(1009)


@pytest.mark.needs("two_cpus")
def test_a_map_with_too_few_entries_is_refused_and_nothing_stays_open() -> None:
    with perf_producer(1) as producer:
        opened = probes.descriptors()
        with pytest.raises(KernelError, match="the map has 1 entries"):
            PerfBuffer(producer.source, Numbers())
        assert probes.descriptors() == opened
        with pytest.raises(KernelError, match="ENOENT"):
            bpf.map_delete_elem(producer.source.fileno(), struct.pack("=I", 0))
