"""The ring buffer against a program that sends a known number of records."""

from __future__ import annotations

import asyncio
import gc
import itertools
import mmap
import os
import signal
import struct
import threading

import pytest

from purebpf.abi.bpf import BPF_RB_NO_WAKEUP
from purebpf.errors import FormatError, KernelError, SchemaError
from purebpf.loader.rings.ring_buffer import RingBuffer
from tests.kernel.producers import U64, Numbers, Source, ring_producer
from tests.kernel.ring_readers import one_waits, watched
from tests.support import probes

pytestmark = pytest.mark.needs("bpf")

MIB = 1 << 20


def numbers(count: int) -> list[int]:
    return list(range(count))


def test_every_record_arrives_once_and_in_order() -> None:
    with ring_producer(MIB) as producer, RingBuffer(producer.source, Numbers()) as ring:
        producer.send(10_007)
        assert list(ring.drain()) == numbers(10_007)
        assert list(ring.drain()) == []
        assert producer.refused == 0


def test_the_repr_of_a_reader_names_its_map() -> None:
    with ring_producer(4096) as producer:
        with RingBuffer(producer.source, Numbers()) as ring:
            assert repr(ring) == f"<RingBuffer of {producer.source.name!r}>"
        assert repr(ring) == f"<RingBuffer of {producer.source.name!r}, closed>"


def test_records_survive_many_turns_of_the_ring() -> None:
    with ring_producer(4096) as producer, RingBuffer(producer.source, Numbers()) as ring:
        found = []
        for _ in range(50):
            producer.send(149)
            found += ring.drain()
        assert found == numbers(50 * 149)
        assert producer.refused == 0


@pytest.mark.needs("atomic_fetch")
def test_nothing_is_lost_or_doubled_while_two_cpus_write() -> None:
    with ring_producer(1 << 14) as producer, RingBuffer(producer.source, Numbers()) as ring:
        senders = [
            threading.Thread(target=lambda: [producer.send(997) for _ in range(50)])
            for _ in range(2)
        ]
        for sender in senders:
            sender.start()
        found: list[int] = []
        while any(sender.is_alive() for sender in senders):
            found += ring.read(timeout=0.001)
        found += ring.drain()
        assert producer.sent == 2 * 50 * 997
        assert len(found) == len(set(found)) == producer.sent - producer.refused


def test_what_does_not_fit_is_counted_by_the_program() -> None:
    with ring_producer(4096) as producer:
        with RingBuffer(producer.source, Numbers(), lost=lambda: producer.refused) as ring:
            producer.send(1009)
            kept = list(ring.drain())
            assert kept == numbers(len(kept))
            assert len(kept) in (4096 // 16, 4096 // 16 - 1)
            assert ring.lost == 1009 - len(kept)
        with RingBuffer(producer.source, bytes) as ring:
            assert ring.lost is None


def test_discarded_records_are_not_seen() -> None:
    with (
        ring_producer(MIB, discard_odd=True) as producer,
        RingBuffer(producer.source, Numbers()) as ring,
    ):
        producer.send(1009)
        assert list(ring.drain()) == list(range(0, 1009, 2))


def test_breaking_out_and_going_on_sees_each_record_once() -> None:
    with ring_producer(MIB) as producer, RingBuffer(producer.source, Numbers()) as ring:
        producer.send(3001)
        found = [next(ring.drain())]
        found += itertools.islice(ring.read(), 2000)
        for number in ring.read(timeout=0):
            found.append(number)
            if len(found) == 2500:
                break
        found += [U64.unpack(view)[0] for view in itertools.islice(ring.views(), 100)]
        found += ring.drain()
        assert found == numbers(3001)


def test_two_loops_share_the_records_between_them() -> None:
    with ring_producer(MIB) as producer, RingBuffer(producer.source, Numbers()) as ring:
        producer.send(5000)
        one, two = ring.drain(), ring.drain()
        found = [next(one), next(two), next(one)]
        found += two
        found += one
        assert found == numbers(5000)


def test_a_drain_ends_although_the_program_goes_on_sending() -> None:
    with ring_producer(MIB) as producer, RingBuffer(producer.source, Numbers()) as ring:
        producer.send(100)
        found = []
        for number in ring.drain():
            found.append(number)
            producer.send(1)
        assert found == numbers(100)
        assert len(list(ring.drain())) == 100


def test_views_are_memory_of_the_ring_and_end_with_the_next() -> None:
    with ring_producer(4096) as producer, RingBuffer(producer.source, bytes) as ring:
        producer.send(3)
        views = ring.views()
        first = next(views)
        assert (U64.unpack(first)[0], first.readonly, len(first)) == (0, True, 8)
        second = next(views)
        with pytest.raises(ValueError, match="released"):
            bytes(first)
        assert U64.unpack(second)[0] == 1
        views.close()
        assert [U64.unpack(data)[0] for data in ring.drain()] == [2]


def test_a_loop_that_overtakes_a_view_is_not_turned_back() -> None:
    with ring_producer(4096) as producer, RingBuffer(producer.source, Numbers()) as ring:
        producer.send(10)
        views = ring.views()
        next(views)
        assert list(ring.drain()) == numbers(10)
        views.close()
        producer.send(5)
        assert list(ring.drain()) == list(range(10, 15))


def test_closing_the_ring_under_a_view_is_refused_until_it_is_given_back() -> None:
    with ring_producer(4096) as producer:
        producer.send(1)
        ring = RingBuffer(producer.source, bytes)
        views = ring.views()
        next(views)
        with pytest.raises(BufferError):
            ring.close()
        views.close()
        ring.close()


def test_a_slice_of_a_view_keeps_the_ring_mapped() -> None:
    with ring_producer(4096) as producer:
        producer.send(1)
        ring = RingBuffer(producer.source, bytes)
        views = ring.views()
        kept = next(views)[:4]
        views.close()
        with pytest.raises(BufferError):
            ring.close()
        assert bytes(kept) == bytes(4)
        kept.release()
        ring.close()


def test_a_view_keeps_its_space_until_it_is_given_back() -> None:
    with ring_producer(4096) as producer, RingBuffer(producer.source, bytes) as ring:
        producer.send(1000)
        full = producer.refused
        views = ring.views()
        next(views)
        producer.send(1)
        assert producer.refused == full + 1
        next(views)
        producer.send(1)
        assert producer.refused == full + 1
        views.close()


def test_reading_waits_for_records() -> None:
    with ring_producer(MIB) as producer, RingBuffer(producer.source, Numbers()) as ring:
        sender = threading.Thread(target=producer.send, args=(101,))
        records = ring.read()
        sender.start()
        found = list(itertools.islice(records, 101))
        sender.join()
        assert found == numbers(101)


def test_a_timeout_ends_the_loop_with_the_records_that_did_not_wake_it() -> None:
    with (
        ring_producer(MIB, flags=BPF_RB_NO_WAKEUP) as producer,
        RingBuffer(producer.source, Numbers()) as ring,
    ):
        assert list(ring.read(timeout=0.01)) == []
        producer.send(5)
        assert list(ring.read(timeout=0)) == numbers(5)


def test_a_signal_does_not_end_the_wait() -> None:
    seen = []
    with ring_producer(MIB) as producer, RingBuffer(producer.source, Numbers()) as ring:

        def on_alarm(*_: object) -> None:
            seen.append(len(seen))
            if len(seen) == 3:
                signal.setitimer(signal.ITIMER_REAL, 0)
                producer.send(1)

        before = signal.signal(signal.SIGALRM, on_alarm)
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
            assert next(ring.read()) == 0
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
    assert len(seen) == 3


def test_async_for_sees_each_record_once_across_loops() -> None:
    async def collect(ring: RingBuffer, count: int) -> list[int]:
        found: list[int] = []
        async for number in ring:
            found.append(number)
            if len(found) == count:
                break
        return found

    async def scenario() -> tuple[list[int], list[int]]:
        with ring_producer(MIB) as producer, RingBuffer(producer.source, Numbers()) as ring:
            waiting = asyncio.create_task(collect(ring, 150))
            await asyncio.sleep(0)
            producer.send(100)
            await asyncio.to_thread(producer.send, 100)
            return await waiting, await collect(ring, 50)

    assert asyncio.run(scenario()) == (numbers(150), list(range(150, 200)))


def test_a_cancelled_async_reader_leaves_the_loop_clean() -> None:
    async def scenario() -> int:
        with ring_producer(MIB) as producer, RingBuffer(producer.source, Numbers()) as ring:
            waiting = asyncio.create_task(anext(aiter(ring)))
            await one_waits()
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
            return watched()

    assert asyncio.run(scenario()) == 0


def test_a_record_shorter_than_its_type_is_refused_and_passed_over() -> None:
    class Wide(Numbers):
        size = 16

    with ring_producer(MIB) as producer, RingBuffer(producer.source, Wide()) as ring:
        producer.send(2)
        for _ in range(2):
            with pytest.raises(FormatError, match="8 bytes: its type has 16"):
                next(ring.drain())
        assert list(ring.drain()) == []


class Pairs:
    """A codec of two 8-byte numbers, of which the program sends one."""

    size = 16

    def decode(self, buffer: bytes | bytearray | memoryview, offset: int = 0, /) -> tuple[int, int]:
        return struct.unpack_from("=QQ", buffer, offset)


def test_what_a_short_record_lacks_is_zero_where_that_was_asked_for() -> None:
    with (
        ring_producer(MIB) as producer,
        RingBuffer(producer.source, Pairs(), short="zero") as ring,
    ):
        producer.send(7)
        assert list(ring.drain()) == [(number, 0) for number in range(7)]
        ring.decode_as(Pairs(), short="error")
        producer.send(1)
        with pytest.raises(FormatError, match='short="zero" makes what is missing zero'):
            next(ring.drain())
        with pytest.raises(ValueError, match='short= is "error" or "zero", not \'none\''):
            ring.decode_as(Pairs(), short="none")  # type: ignore[arg-type]


def test_an_error_in_the_loop_loses_only_its_record() -> None:
    with ring_producer(MIB) as producer, RingBuffer(producer.source, Numbers()) as ring:
        producer.send(5)
        with pytest.raises(ZeroDivisionError):
            all(1 // number for number in ring.drain())
        assert list(ring.drain()) == [1, 2, 3, 4]


def test_the_rest_can_be_read_as_another_type() -> None:
    with ring_producer(MIB) as producer, RingBuffer(producer.source, Numbers()) as ring:
        producer.send(3)
        assert next(ring.drain()) == 0
        ring.decode_as(bytes)
        assert list(ring.drain()) == [U64.pack(1), U64.pack(2)]


def test_a_map_without_a_record_type_needs_one_from_the_caller() -> None:
    with ring_producer() as producer:
        with pytest.raises(SchemaError, match="unknown record type"):
            RingBuffer(producer.source)
        with pytest.raises(SchemaError, match="not have type 'struct event'"):
            RingBuffer(producer.source, "struct event")


def test_closing_gives_everything_back_also_after_a_failure() -> None:
    before = probes.descriptors()
    with ring_producer() as producer:
        opened = probes.descriptors()
        ring = RingBuffer(producer.source, bytes)
        ring.close()
        ring.close()
        with pytest.raises(ValueError, match="the reader of 'events' is closed"):
            list(ring.drain())
        with pytest.raises(ValueError, match="closed"):
            ring.fileno()
        too_big = Source(producer.source, 4 * mmap.PAGESIZE)
        with pytest.raises(KernelError, match="mmap"):
            RingBuffer(too_big, bytes)
        assert probes.descriptors() == opened
    assert probes.descriptors() == before


def test_a_loop_over_a_ring_that_is_dropped_leaks_nothing() -> None:
    with ring_producer() as producer:
        opened = probes.descriptors()
        producer.send(3)
        records = RingBuffer(producer.source, bytes).read()
        next(records)
        del records
        gc.collect()
        assert probes.descriptors() == opened


def test_another_process_reads_on_where_the_first_stopped() -> None:
    with ring_producer(MIB) as producer:
        producer.send(10)
        child = os.fork()
        if child == 0:
            with RingBuffer(producer.source, Numbers()) as ring:
                os._exit(0 if list(ring.drain()) == numbers(10) else 1)
        assert os.waitpid(child, 0) == (child, 0)
        producer.send(2)
        with RingBuffer(producer.source, Numbers()) as ring:
            assert list(ring.drain()) == [10, 11]
