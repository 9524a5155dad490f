"""Readers on an event loop: a cancelled task leaves nothing registered and loses no record."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager

import pytest

from purebpf.kernel import cpus
from purebpf.kernel.perf_buffer import PerfBuffer
from purebpf.kernel.readers import Reader
from purebpf.kernel.ring_buffer import RingBuffer
from tests.kernel.producers import Numbers, Producer, perf_producer, ring_producer

pytestmark = pytest.mark.needs("bpf")


@contextmanager
def ring() -> Iterator[tuple[Producer, Reader]]:
    with ring_producer() as producer, RingBuffer(producer.source, Numbers()) as reader:
        yield producer, reader


@contextmanager
def perf() -> Iterator[tuple[Producer, Reader]]:
    with (
        perf_producer(len(cpus.possible())) as producer,
        PerfBuffer(producer.source, Numbers()) as reader,
    ):
        yield producer, reader


READERS = [ring, pytest.param(perf, marks=pytest.mark.needs("perf_event"))]
both = pytest.mark.parametrize("opened", READERS)
Opened = Callable[[], "contextmanager[tuple[Producer, Reader]]"]


def registered(reader: Reader) -> bool:
    """Whether the running loop still watches the reader; it no longer does afterwards."""
    return asyncio.get_running_loop().remove_reader(reader.fileno())


async def collect(source: AsyncIterator[int], found: list[int], enough: int) -> None:
    async for record in source:
        found.append(record)
        if len(found) == enough:
            return


async def until(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110 - the code under test offers no event
        await asyncio.sleep(0)


async def waits(reader: Reader) -> None:
    """Until some task waits for `reader` on this loop."""
    selector = asyncio.get_running_loop()._selector  # type: ignore[attr-defined]
    await until(lambda: reader.fileno() in selector.get_map())


@both
def test_a_cancelled_task_leaves_nothing_registered(opened) -> None:
    async def body(producer: Producer, reader: Reader) -> list[int]:
        found: list[int] = []
        task = asyncio.create_task(collect(aiter(reader), found, 100))
        await waits(reader)
        producer.send(3)
        await until(lambda: len(found) == 3)
        await waits(reader)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not registered(reader)
        producer.send(4)
        await collect(aiter(reader), found, 7)
        assert not registered(reader)
        return found

    with opened() as (producer, reader):
        assert asyncio.run(body(producer, reader)) == list(range(7))


@both
def test_a_loop_that_times_out_can_be_continued(opened) -> None:
    async def body(producer: Producer, reader: Reader) -> list[int]:
        found: list[int] = []
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(collect(aiter(reader), found, 1), 0.05)
        assert found == []
        assert not registered(reader)
        producer.send(2)
        await collect(aiter(reader), found, 2)
        return found

    with opened() as (producer, reader):
        assert asyncio.run(body(producer, reader)) == [0, 1]


@both
def test_a_task_that_is_cancelled_between_two_records_loses_neither(opened) -> None:
    async def body(producer: Producer, reader: Reader) -> list[int]:
        found: list[int] = []

        async def slow() -> None:
            async for record in reader:
                found.append(record)
                await asyncio.sleep(3600)

        producer.send(5)
        task = asyncio.create_task(slow())
        await until(lambda: bool(found))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not registered(reader)
        await collect(aiter(reader), found, 5)
        return found

    with opened() as (producer, reader):
        assert asyncio.run(body(producer, reader)) == list(range(5))


@both
def test_a_loop_that_ends_with_a_task_waiting(opened) -> None:
    """asyncio.run cancels what still waits; another loop can then read on."""

    async def leave(reader: Reader) -> asyncio.Task[None]:
        task = asyncio.create_task(collect(aiter(reader), [], 1))
        await waits(reader)
        return task

    async def body(producer: Producer, reader: Reader) -> list[int]:
        found: list[int] = []
        producer.send(1)
        await collect(aiter(reader), found, 1)
        return found

    with opened() as (producer, reader):
        assert asyncio.run(leave(reader)).cancelled()
        assert asyncio.run(body(producer, reader)) == [0]


@both
def test_closing_the_reader_after_its_task_was_cancelled(opened) -> None:
    async def body(reader: Reader) -> None:
        task = asyncio.create_task(collect(aiter(reader), [], 1))
        await waits(reader)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        reader.close()
        with pytest.raises(ValueError, match="closed"):
            await collect(aiter(reader), [], 1)

    with opened() as (_, reader):
        asyncio.run(body(reader))
