"""Under a storm of SIGPROF, as a sampling profiler of Python makes one, everything is exact."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

import purebpf
from purebpf.loader.host import cpus
from purebpf.loader.rings.perf_buffer import PerfBuffer
from purebpf.loader.rings.ring_buffer import RingBuffer
from purebpf.tools.profile import ProfileOptions, Profiler
from tests.kernel.producers import Numbers, perf_producer, ring_producer
from tests.support.programs.storm import sigprof_storm

pytestmark = pytest.mark.needs("bpf")

DATA = Path(__file__).parents[2] / "data"
GETPRIORITY = {"x86_64": 140, "aarch64": 141}[os.uname().machine]
PRIME = 211


@pytest.mark.parametrize(
    ("name", "programs"),
    [
        ("load_counter.bpf.o", ()),
        ("load_tail.bpf.o", ()),
        ("load_run.bpf.o", ("long_verified",)),  # interrupted in the verifier: EAGAIN
    ],
)
def test_objects_load_under_a_storm_of_signals(name: str, programs: tuple[str, ...]) -> None:
    spec = purebpf.read_object(DATA / name)
    spec = spec.only(*programs) if programs else spec
    with sigprof_storm() as handled:
        rounds = 0
        while rounds < 3 or handled() < 20:
            purebpf.load(spec).close()
            rounds += 1


@pytest.mark.needs("tracefs")
def test_attaching_and_counting() -> None:
    spec = purebpf.read_object(DATA / "load_attach.bpf.o")
    spec = spec.set(target_pid=os.getpid(), target_call=GETPRIORITY)
    with sigprof_storm() as handled, purebpf.load(spec.only("on_tracepoint", "on_raw")) as obj:
        obj.attach()
        calls = 0
        while calls < PRIME or handled() < 20:
            os.getpriority(os.PRIO_PROCESS, 0)
            calls += 1
        counted = obj.globals["tracepoint_hits"], obj.globals["raw_hits"]
    assert counted == (calls, calls)


@pytest.mark.parametrize("timeout", [0, 0.05])
def test_reading_a_ring_buffer(timeout: float) -> None:
    with (
        ring_producer(1 << 16) as producer,
        RingBuffer(producer.source, Numbers()) as ring,
        sigprof_storm() as handled,
    ):
        found: list[int] = []
        sent = 0
        while sent < PRIME or handled() < 20:
            producer.send(1)
            sent += 1
            found += ring.read(timeout if sent % 50 == 0 else 0)
        found += ring.drain()
        assert (producer.sent, producer.refused) == (sent, 0)
    assert found == list(range(sent))


@pytest.mark.needs("perf_event")
def test_reading_a_perf_buffer() -> None:
    with (
        perf_producer(len(cpus.possible())) as producer,
        PerfBuffer(producer.source, Numbers()) as buffer,
        sigprof_storm() as handled,
    ):
        found: list[int] = []
        sent = 0
        while sent < PRIME or handled() < 20:
            producer.send(1)
            sent += 1
            found += buffer.read(0.05 if sent % 50 == 0 else 0)
        found += buffer.drain()
        assert (producer.sent, producer.refused, buffer.lost) == (sent, 0, 0)
    assert sorted(found) == list(range(sent))


@pytest.mark.needs("perf_event")
def test_a_profile_is_complete_under_a_storm_of_signals() -> None:
    options = ProfileOptions(pids=(os.getpid(),), frequency=199)
    with sigprof_storm() as handled, Profiler(options) as profiler:
        start = time.process_time()
        while handled() < 200 or time.process_time() < start + 0.3:
            sum(range(1000))
        profile = profiler.stop()
    about = profile.about
    assert profile.total == about["counted"] > 0
    assert {row.labels.pid for row in profile.rows()} == {os.getpid()}
    assert profile.loss.seen == sum(about[what] for what in ("counted", "idle", "filtered"))
