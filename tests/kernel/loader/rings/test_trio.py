"""Rings under trio, and under anyio on both of its backends."""

from __future__ import annotations

import threading
from contextlib import aclosing

import anyio
import pytest
import trio
import trio.testing

from purebpf.loader.rings.ring_buffer import RingBuffer
from tests.kernel.producers import Numbers, ring_producer
from tests.support import probes

pytestmark = pytest.mark.needs("bpf")

MIB = 1 << 20


async def collect(ring: RingBuffer[int], count: int) -> list[int]:
    """The next records."""
    numbers: list[int] = []
    async with aclosing(aiter(ring)) as records:  # trio warns of what is left to collectors
        async for number in records:
            numbers.append(number)
            if len(numbers) == count:
                break
    return numbers


@pytest.mark.parametrize("backend", ["trio", "asyncio"])
def test_each_record_comes_once(backend: str) -> None:
    async def scenario() -> tuple[list[int], list[int]]:
        with ring_producer(MIB) as producer, RingBuffer(producer.source, Numbers()) as ring:
            first: list[int] = []

            async def read() -> None:
                first.extend(await collect(ring, 150))

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(read)
                await anyio.wait_all_tasks_blocked()
                producer.send(100)
                await anyio.to_thread.run_sync(producer.send, 100)
            return first, await collect(ring, 50)

    first, rest = anyio.run(scenario, backend=backend)
    assert first + rest == list(range(200))


def test_closing_from_another_thread_wakes_the_tasks() -> None:
    ended: list[str] = []

    async def read(ring: RingBuffer[int]) -> None:
        with pytest.raises(ValueError, match="closed"):
            await collect(ring, 1)
        ended.append("read")

    async def scenario() -> None:
        with ring_producer(MIB) as producer:
            ring = RingBuffer(producer.source, Numbers())
            with trio.fail_after(20):
                async with trio.open_nursery() as nursery:
                    for _ in range(2):
                        nursery.start_soon(read, ring)
                    await trio.testing.wait_all_tasks_blocked()
                    threading.Thread(target=ring.close).start()

    trio.run(scenario)
    assert ended == ["read"] * 2


def test_a_cancelled_reader_leaves_its_records_to_the_others() -> None:
    async def scenario() -> list[int]:
        with ring_producer(MIB) as producer, RingBuffer(producer.source, Numbers()) as ring:
            kept: list[int] = []

            async def read() -> None:
                kept.extend(await collect(ring, 3))

            with trio.fail_after(20):
                async with trio.open_nursery() as nursery:
                    with trio.move_on_after(0.01):
                        await collect(ring, 1)
                    nursery.start_soon(read)
                    await trio.testing.wait_all_tasks_blocked()
                    producer.send(3)
            return kept

    before = probes.descriptors()
    assert trio.run(scenario) == [0, 1, 2]
    assert probes.descriptors() == before
