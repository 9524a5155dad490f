"""Both kinds of readers with their producers, and what an event loop knows of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from purebpf.loader.host import cpus
from purebpf.loader.rings.perf_buffer import PerfBuffer
from purebpf.loader.rings.readers import Reader
from purebpf.loader.rings.ring_buffer import RingBuffer
from tests.kernel.producers import Numbers, Producer, perf_producer, ring_producer

Opened = Callable[[], "contextmanager[tuple[Producer, Reader]]"]


@contextmanager
def ring() -> Iterator[tuple[Producer, Reader]]:
    with ring_producer(1 << 20) as producer, RingBuffer(producer.source, Numbers()) as reader:
        yield producer, reader


@contextmanager
def perf() -> Iterator[tuple[Producer, Reader]]:
    with (
        perf_producer(len(cpus.possible())) as producer,
        PerfBuffer(producer.source, Numbers()) as reader,
    ):
        yield producer, reader


both = pytest.mark.parametrize(
    "opened", [ring, pytest.param(perf, marks=pytest.mark.needs("perf_event"))]
)


def watched() -> int:
    """How many descriptors the running loop watches, besides its own."""
    selector = asyncio.get_running_loop()._selector  # type: ignore[attr-defined]
    return len(selector.get_map()) - 1


async def until(condition: Callable[[], bool]) -> None:
    """Let the tasks run until that is so; a failure to become so is not a hang."""
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110 - the code under test offers no event
            await asyncio.sleep(0)


async def one_waits() -> None:
    """Until some task waits for a reader on this loop."""
    await until(lambda: watched() == 1)


async def take_one(reader: Reader, found: list[int]) -> None:
    """Take a record, and keep the task busy with it for ever."""
    async for record in reader:
        found.append(record)
        await asyncio.sleep(3600)
