"""CPUs that go offline while they are sampled, and numbers of CPUs with holes between them."""

from __future__ import annotations

import os
import select
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from purebpf.loader.host import cpus
from purebpf.loader.perf.perf_events import PerfEvents
from purebpf.loader.rings.perf_buffer import PerfBuffer
from purebpf.observe.processes.sideband import SideBand
from purebpf.tools.profile import ProfileOptions, Profiler
from tests.kernel.producers import Numbers, perf_producer

pytestmark = pytest.mark.needs("bpf", "perf_event", "hotplug")

SYS = Path("/sys/devices/system/cpu")
PATIENCE_S = 60


def switch(cpu: int, state: int) -> None:
    (SYS / f"cpu{cpu}" / "online").write_text(str(state))


@pytest.fixture(autouse=True)
def _all_online() -> Iterator[None]:
    """Whatever a test does, the CPUs are back afterwards."""
    possible = set(cpus.online())
    yield
    for cpu in possible - set(cpus.online()):
        switch(cpu, 1)
    assert set(cpus.online()) == possible


@contextmanager
def without(cpu: int) -> Iterator[None]:
    """That CPU is offline inside."""
    switch(cpu, 0)
    try:
        yield
    finally:
        switch(cpu, 1)


@contextmanager
def busy() -> Iterator[None]:
    """A thread that never sleeps, so that there is something to sample."""
    over = threading.Event()

    def spin() -> None:
        while not over.is_set():
            sum(range(1000))

    spinner = threading.Thread(target=spin)
    spinner.start()
    try:
        yield
    finally:
        over.set()
        spinner.join()


def seen(profiler: Profiler) -> list[int]:
    """How often the program ran, for each possible CPU."""
    return [cpu.seen for cpu in profiler._sampling.loaded.maps["stats"][0]]


def wait_for_samples(profiler: Profiler, cpu: int) -> None:
    """Until that CPU has been sampled some more."""
    enough = seen(profiler)[cpu] + 5
    deadline = time.monotonic() + PATIENCE_S
    while seen(profiler)[cpu] < enough:
        assert time.monotonic() < deadline, seen(profiler)
        time.sleep(0.01)


def test_sampling_goes_on_when_a_cpu_goes() -> None:
    with busy(), Profiler(ProfileOptions(pids=(os.getpid(),), frequency=99)) as profiler:
        wait_for_samples(profiler, 0)
        wait_for_samples(profiler, 1)
        with without(1):
            frozen = seen(profiler)[1]
            wait_for_samples(profiler, 0)
            assert seen(profiler)[1] == frozen
        wait_for_samples(profiler, 0)
        profile = profiler.stop()
    about, loss = profile.about, profile.loss
    assert about["cpus"] == list(cpus.online())
    assert profile.total == about["counted"] > 0
    assert loss.seen == sum(about[what] for what in ("counted", "idle", "filtered"))
    assert loss.expected is not None
    assert loss.missed <= loss.tolerance + 0.5 * loss.expected, "what was offline was not due"


@pytest.mark.nightly
def test_stopping_while_a_cpu_is_gone() -> None:
    with busy(), Profiler(ProfileOptions(pids=(os.getpid(),), frequency=99)) as profiler:
        wait_for_samples(profiler, 1)
        with without(1):
            wait_for_samples(profiler, 0)
            profile = profiler.stop()
    assert profile.total == profile.about["counted"] > 0
    assert profile.loss.seen >= profile.total


@pytest.mark.nightly
def test_waiting_while_a_cpu_goes_does_not_spin(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its event hangs up: poll(2) would report that for ever."""
    calls = 0
    new_poll = select.poll

    class CountingPoll:
        """poll(2) as the session waits with, and how often it returned."""

        def __init__(self) -> None:
            self._poll = new_poll()
            self.register, self.unregister = self._poll.register, self._poll.unregister

        def poll(self, timeout: float | None = None) -> list[tuple[int, int]]:
            nonlocal calls
            calls += 1
            return self._poll.poll(timeout)

    options = ProfileOptions(pids=(os.getpid(),), frequency=99, duration_s=10)
    with Profiler(options) as profiler, without(1):
        monkeypatch.setattr(select, "poll", CountingPoll)
        profiler.wait()
        profiler.stop()
    assert 0 < calls < 500  # a loop would call it ten thousand times


@pytest.mark.nightly
def test_a_profile_begins_with_a_hole_in_the_cpus() -> None:
    last = max(cpus.online())
    if last < 2:
        pytest.fail("the guests of the matrix have three CPUs")
    with without(1):
        assert cpus.online() == (0, *range(2, last + 1))
        assert cpus.possible() == tuple(range(last + 1))
        with busy(), Profiler(ProfileOptions(pids=(os.getpid(),), frequency=99)) as profiler:
            wait_for_samples(profiler, 0)
            profile = profiler.stop()
        assert profile.about["cpus"] == list(cpus.online())
        with (
            perf_producer(len(cpus.possible())) as producer,
            PerfBuffer(producer.source, Numbers()) as buffer,
        ):
            for cpu in cpus.online():
                os.sched_setaffinity(0, {cpu})
                producer.send(2)
            os.sched_setaffinity(0, set(cpus.online()))
            assert sorted(buffer.drain()) == list(range(2 * len(cpus.online())))


@pytest.mark.nightly
def test_a_cpu_that_comes_later_is_not_sampled() -> None:
    switch(1, 0)
    with busy(), Profiler(ProfileOptions(pids=(os.getpid(),), frequency=99)) as profiler:
        switch(1, 1)
        wait_for_samples(profiler, 0)
        profile = profiler.stop()
    assert 1 not in profile.about["cpus"]  # type: ignore[operator]


def test_events_of_a_cpu_that_is_gone_can_be_read_and_switched() -> None:
    with PerfEvents.sampling(frequency=99) as events, without(1):
        counts = events.read()
        events.disable()
        events.enable()
        again = events.read()
    assert len(counts) == len(again) == len(events)
    assert again[1].value >= counts[1].value >= 0


def test_a_perf_buffer_outlives_a_cpu() -> None:
    with (
        perf_producer(len(cpus.possible())) as producer,
        PerfBuffer(producer.source, Numbers()) as buffer,
    ):
        os.sched_setaffinity(0, {1})
        producer.send(3)
        os.sched_setaffinity(0, {0})
        with without(1):
            producer.send(2)
            assert sorted(buffer.read(0)) == [0, 1, 2, 3, 4]
            assert buffer.lost == 0
        os.sched_setaffinity(0, set(cpus.online()))


def test_the_side_band_outlives_a_cpu() -> None:
    with SideBand() as band, without(1):
        child = os.fork()
        if not child:
            os._exit(0)
        os.waitpid(child, 0)
        assert any(getattr(record, "pid", 0) == child for record in band.drain())
        assert band.lost >= 0
