"""Readers that are closed while other threads wait or drain: all are woken, nothing is left."""

from __future__ import annotations

import asyncio
import gc
import os
import pickle
import signal
import threading
import time
from collections.abc import Callable

import pytest

from purebpf.abi import syscalls
from purebpf.abi.bpf import bpf_map_type
from purebpf.loader.host import cpus
from purebpf.loader.maps.map import Map
from purebpf.loader.rings.perf_buffer import PerfBuffer
from purebpf.loader.rings.readers import Reader
from purebpf.loader.rings.ring_buffer import RingBuffer
from purebpf.loader.rings.user_ring_buffer import UserRingBuffer
from purebpf.spec import MapSpec
from tests.kernel.producers import Producer, ring_producer
from tests.kernel.ring_readers import both, one_waits, take_one, until, watched
from tests.support import probes

pytestmark = pytest.mark.needs("bpf")

SOON = 5.0


POLLING = {"poll", "ppoll", "epoll_wait", "epoll_pwait"}


class Waiting:
    """A thread that does something until it ends or fails; a failure to end is not a hang."""

    def __init__(self, what: Callable[[], object]) -> None:
        self.said = ""
        self._what = what
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._what()
            self.said = "ended"
        except Exception as error:
            self.said = f"{type(error).__name__}: {error}"

    def sleeps(self) -> None:
        """Until it sleeps in the kernel."""
        end = time.monotonic() + SOON
        path = f"/proc/self/task/{self._thread.native_id}/syscall"
        calls = syscalls.table(os.uname().machine)
        while time.monotonic() < end:
            with open(path) as file:
                number = file.read().partition(" ")[0]  # or "running"
            if number.isdecimal() and calls[int(number)] in POLLING:
                return
            time.sleep(0.001)
        pytest.fail("the thread does not wait")

    def ends(self) -> str:
        """What it said in the end."""
        self._thread.join(SOON)
        return "it is still waiting" if self._thread.is_alive() else self.said


CLOSED = "ValueError: the reader of 'events' is closed"


@both
@pytest.mark.parametrize("timeout", [None, 3600.0, 1e10, float("inf")])
def test_a_thread_that_waits_is_woken(opened, timeout: float | None) -> None:
    with opened() as (_, reader):
        waiting = [Waiting(lambda: list(reader.read(timeout))) for _ in range(2)]
        for each in waiting:
            each.sleeps()
        reader.close()
        assert [each.ends() for each in waiting] == [CLOSED, CLOSED]


def test_a_thread_that_reads_a_map_is_woken() -> None:
    spec = MapSpec("events", bpf_map_type.BPF_MAP_TYPE_RINGBUF, 0, 0, 4096)
    with Map.create(spec) as found:
        waiting = Waiting(lambda: list(found.read(type=bytes)))
        waiting.sleeps()
        found.close()
        assert waiting.ends() == CLOSED


Read = Callable[[Map, type], Reader]
RING = MapSpec("events", bpf_map_type.BPF_MAP_TYPE_RINGBUF, 0, 0, 4096)
PERF = MapSpec("events", bpf_map_type.BPF_MAP_TYPE_PERF_EVENT_ARRAY, 4, 4, len(cpus.possible()))
of_both_maps = pytest.mark.parametrize(
    ("spec", "read"),
    [
        (RING, Map.reader),
        (RING, RingBuffer),
        pytest.param(PERF, PerfBuffer, marks=pytest.mark.needs("perf_event")),
    ],
)


@of_both_maps
def test_a_thread_is_woken_when_the_map_is_closed_alone(spec: MapSpec, read: Read) -> None:
    with Map.create(spec) as found, read(found, bytes) as reader:
        waiting = Waiting(lambda: list(reader.read()))
        waiting.sleeps()
        found.close()
        assert waiting.ends() == "ValueError: the map is closed"


@of_both_maps
def test_a_task_is_woken_when_the_map_is_closed_alone(spec: MapSpec, read: Read) -> None:
    async def body() -> None:
        with Map.create(spec) as found, read(found, bytes) as reader:
            task = asyncio.create_task(collect(reader, []))
            await one_waits()
            found.close()
            with pytest.raises(ValueError, match="the map is closed"):
                await asyncio.wait_for(task, SOON)

    asyncio.run(body())


@both
def test_a_signal_handler_may_close_what_the_thread_waits_for(opened) -> None:
    with opened() as (_, reader):
        before = signal.signal(signal.SIGALRM, lambda *_: reader.close())
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        try:
            with pytest.raises(ValueError, match="closed"):
                list(reader.read(SOON))
        finally:
            signal.signal(signal.SIGALRM, before)


@both
def test_a_forked_child_that_closes_its_copy_does_not_wake_its_parent(opened) -> None:
    with opened() as (producer, reader):
        records = reader.read()
        found: list[int] = []
        waiting = Waiting(lambda: found.append(next(records)))
        waiting.sleeps()
        if not (child := os.fork()):
            reader.close()
            os._exit(0)
        assert os.waitpid(child, 0) == (child, 0)
        waiting.sleeps()
        producer.send(1)
        assert (waiting.ends(), found) == ("ended", [0])


@both
def test_waiting_leaves_no_descriptor_however_it_ends(opened) -> None:
    with opened() as (producer, reader):
        before = probes.descriptors()
        assert list(reader.read(0.01)) == []
        records = reader.read(SOON)
        threading.Timer(0.05, producer.send, (2,)).start()
        assert next(records) == 0
        del records
        gc.collect()
        assert probes.descriptors() == before
        assert list(reader.drain()) == [1]


@both
def test_draining_and_closing_at_once_is_never_more_than_a_closed_reader(opened) -> None:
    for _ in range(20):
        with opened() as (producer, reader):
            waiting = Waiting(lambda: [None for _ in iter(lambda: list(reader.drain()), None)])
            producer.send(5000)
            reader.close()
            assert waiting.ends() == CLOSED


@both
def test_two_threads_may_close_at_once(opened) -> None:
    for _ in range(20):
        with opened() as (_, reader):
            closing = [Waiting(reader.close) for _ in range(2)]
            assert [each.ends() for each in closing] == ["ended", "ended"]


def test_closing_again_unmaps_what_could_not_be_at_first() -> None:
    with ring_producer() as producer:
        reader = RingBuffer(producer.source, bytes)
        held = pickle.PickleBuffer(reader._data)
        with pytest.raises(BufferError):
            reader.close()
        held.release()
        reader.close()
        assert reader._kernels._map.closed


@pytest.mark.needs("user_ring_buffer")
def test_a_thread_that_waits_for_room_is_woken() -> None:
    spec = MapSpec("requests", bpf_map_type.BPF_MAP_TYPE_USER_RINGBUF, 0, 0, 4096)
    with Map.create(spec) as found, UserRingBuffer(found, bytes) as writer:
        assert writer.write(bytes(4000))
        waiting = Waiting(lambda: writer.write(bytes(4000), timeout=None))
        waiting.sleeps()
        writer.close()
        assert waiting.ends() == "ValueError: the user ring buffer of 'requests' is closed"


# On event loops


async def collect(reader: Reader, found: list[int]) -> None:
    async for record in reader:
        found.append(record)  # noqa: PERF401 - what came is seen while it waits


async def woken(task: asyncio.Task[None]) -> None:
    with pytest.raises(ValueError, match="the reader of 'events' is closed"):
        await asyncio.wait_for(task, SOON)
    assert watched() == 0


@both
def test_tasks_that_wait_are_woken(opened) -> None:
    async def body(reader: Reader) -> None:
        tasks = [asyncio.create_task(collect(reader, [])) for _ in range(2)]
        await one_waits()
        await asyncio.sleep(0)
        reader.close()
        for task in tasks:
            await woken(task)

    with opened() as (_, reader):
        asyncio.run(body(reader))


@both
def test_another_thread_may_close_what_a_task_waits_for(opened) -> None:
    async def body(reader: Reader) -> None:
        task = asyncio.create_task(collect(reader, []))
        await one_waits()
        await asyncio.to_thread(reader.close)
        await woken(task)

    with opened() as (_, reader):
        asyncio.run(body(reader))


@both
def test_a_signal_handler_may_close_what_a_task_waits_for(opened) -> None:
    async def body(reader: Reader) -> None:
        before = signal.signal(signal.SIGALRM, lambda *_: reader.close())
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        try:
            await woken(asyncio.create_task(collect(reader, [])))
        finally:
            signal.signal(signal.SIGALRM, before)

    with opened() as (_, reader):
        asyncio.run(body(reader))


@both
def test_a_new_reader_with_the_number_of_a_closed_one_is_watched(opened) -> None:
    async def body() -> list[int]:
        found: list[int] = []
        with opened() as (_, reader):
            number = reader.fileno()
            first = asyncio.create_task(collect(reader, []))
            await one_waits()
        with opened() as (producer, reader):
            assert reader.fileno() == number
            second = asyncio.create_task(collect(reader, found))
            await until(first.done)
            await asyncio.sleep(0)
            producer.send(3)
            await until(lambda: len(found) == 3)
            second.cancel()
            await asyncio.gather(first, second, return_exceptions=True)
        return found

    assert asyncio.run(body()) == [0, 1, 2]


@both
def test_a_cancelled_task_leaves_the_others_waiting(opened) -> None:
    async def body(producer: Producer, reader: Reader) -> list[int]:
        found: list[int] = []
        tasks = [asyncio.create_task(collect(reader, found)) for _ in range(3)]
        await one_waits()
        await asyncio.sleep(0)
        for number, task in enumerate((tasks[2], tasks[0])):
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            assert watched() == 1
            producer.send(5)
            await until(lambda number=number: len(found) == 5 + 5 * number)  # type: ignore[misc]
        tasks[1].cancel()
        await asyncio.gather(tasks[1], return_exceptions=True)
        assert watched() == 0
        return found

    with opened() as (producer, reader):
        assert asyncio.run(body(producer, reader)) == list(range(10))


@both
def test_what_a_cancelled_task_had_taken_goes_to_one_that_waits(opened) -> None:
    async def body(producer: Producer, reader: Reader) -> list[int]:
        found: list[int] = []

        producer.send(5)
        first = asyncio.create_task(take_one(reader, found))
        await until(lambda: bool(found))
        taken = reader._taken
        reader._taken = type(taken)(iter(()), reader._decoder)  # the other finds nothing yet
        second = asyncio.create_task(collect(reader, found))
        await one_waits()
        reader._taken = taken
        first.cancel()
        await until(lambda: len(found) == 5)
        second.cancel()
        await asyncio.gather(first, second, return_exceptions=True)
        return found

    with opened() as (producer, reader):
        assert asyncio.run(body(producer, reader)) == list(range(5))


@both
def test_a_reader_that_is_closed_while_a_task_begins_to_wait(opened, monkeypatch) -> None:
    duplicate = os.dup

    def too_late(fd: int) -> int:
        reader.close()
        return duplicate(fd)

    async def body(reader: Reader) -> None:
        await woken(asyncio.create_task(collect(reader, [])))

    with opened() as (_, reader):
        monkeypatch.setattr(os, "dup", too_late)
        asyncio.run(body(reader))


@both
def test_loops_of_two_threads_are_woken(opened) -> None:
    with opened() as (_, reader):
        waiting = [Waiting(lambda: asyncio.run(collect(reader, []))) for _ in range(2)]
        for each in waiting:
            each.sleeps()
        reader.close()
        assert [each.ends() for each in waiting] == [CLOSED, CLOSED]


@both
def test_a_loop_that_does_not_run_lets_go_as_well(opened) -> None:
    async def start(reader: Reader) -> asyncio.Task[None]:
        task = asyncio.create_task(collect(reader, []))
        await one_waits()
        return task

    loop = asyncio.new_event_loop()
    with opened() as (_, reader):
        task = loop.run_until_complete(start(reader))
        reader.close()
        loop.run_until_complete(woken(task))
    loop.close()
