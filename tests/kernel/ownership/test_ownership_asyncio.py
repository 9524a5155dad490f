"""Readers on an event loop: a cancelled task leaves nothing registered and loses no record."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from purebpf.loader.rings.readers import Reader
from tests.kernel.producers import Producer
from tests.kernel.ring_readers import both, one_waits, take_one, until, watched

pytestmark = pytest.mark.needs("bpf")


async def collect(source: AsyncIterator[int], found: list[int], enough: int) -> None:
    async for record in source:
        found.append(record)
        if len(found) == enough:
            return


@both
def test_a_cancelled_task_leaves_nothing_registered(opened) -> None:
    async def body(producer: Producer, reader: Reader) -> list[int]:
        found: list[int] = []
        task = asyncio.create_task(collect(aiter(reader), found, 100))
        await one_waits()
        producer.send(3)
        await until(lambda: len(found) == 3)
        await one_waits()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert watched() == 0
        producer.send(4)
        await collect(aiter(reader), found, 7)
        assert watched() == 0
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
        assert watched() == 0
        producer.send(2)
        await collect(aiter(reader), found, 2)
        return found

    with opened() as (producer, reader):
        assert asyncio.run(body(producer, reader)) == [0, 1]


@both
def test_a_task_that_is_cancelled_between_two_records_loses_neither(opened) -> None:
    async def body(producer: Producer, reader: Reader) -> list[int]:
        found: list[int] = []

        producer.send(5)
        task = asyncio.create_task(take_one(reader, found))
        await until(lambda: bool(found))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert watched() == 0
        await collect(aiter(reader), found, 5)
        return found

    with opened() as (producer, reader):
        assert asyncio.run(body(producer, reader)) == list(range(5))


@both
def test_a_loop_that_ends_with_a_task_waiting(opened) -> None:
    """asyncio.run cancels what still waits; another loop can then read on."""

    async def leave(reader: Reader) -> asyncio.Task[None]:
        task = asyncio.create_task(collect(aiter(reader), [], 1))
        await one_waits()
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
        await one_waits()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        reader.close()
        with pytest.raises(ValueError, match="closed"):
            await collect(aiter(reader), [], 1)

    with opened() as (_, reader):
        asyncio.run(body(reader))
