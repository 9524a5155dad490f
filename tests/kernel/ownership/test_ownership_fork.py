"""fork(2) copies descriptors, not ownership: what a child does leaves its parent attached."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import warnings
from collections.abc import Iterator
from errno import EINVAL
from mmap import MADV_NOHUGEPAGE, PAGESIZE, mmap
from pathlib import Path

import pytest

import purebpf
from purebpf.loader.features import features
from purebpf.loader.host import cpus
from purebpf.loader.rings.perf_buffer import PerfBuffer
from purebpf.loader.rings.ring_buffer import RingBuffer
from purebpf.syscall.backend import replaced
from tests.kernel.producers import Numbers, perf_producer, ring_producer
from tests.support.host import cgroups
from tests.support.host.backends import Interposer
from tests.support.programs.children import finish, in_child, start

pytestmark = pytest.mark.needs("bpf", "tracefs")

DATA = Path(__file__).parents[2] / "data"
GETPRIORITY = {"x86_64": 140, "aarch64": 141}[os.uname().machine]
PRIME = 23


@pytest.fixture
def attached() -> Iterator[list[purebpf.Object]]:
    """An object that counts our calls; in a list, so that a test can let go of it."""
    spec = purebpf.read_object(DATA / "load_attach.bpf.o")
    spec = spec.set(target_pid=os.getpid(), target_call=GETPRIORITY)
    held = [purebpf.load(spec.only("on_tracepoint", "on_raw"))]
    held[0].attach()
    yield held
    held.pop().close()


def counts_here(held: list[purebpf.Object]) -> bool:
    """Whether both programs still count what this process does, exactly."""
    obj = held[0]
    before = obj.globals["tracepoint_hits"], obj.globals["raw_hits"]
    for _ in range(PRIME):
        os.getpriority(os.PRIO_PROCESS, 0)
    after = obj.globals["tracepoint_hits"], obj.globals["raw_hits"]
    return after == (before[0] + PRIME, before[1] + PRIME)


def test_a_child_that_just_ends(attached: list[purebpf.Object]) -> None:
    in_child(lambda: None)
    assert counts_here(attached)


def test_a_child_that_closes_everything(attached: list[purebpf.Object]) -> None:
    in_child(attached[0].close)
    assert counts_here(attached)


def test_a_child_that_closes_the_links(attached: list[purebpf.Object]) -> None:
    def body() -> None:
        for link in attached[0].links:
            link.close()
        assert attached[0].globals["raw_hits"] >= 0  # the rest is as usable as before

    in_child(body)
    assert counts_here(attached)


def test_a_child_that_drops_its_copy_gets_the_warning(attached: list[purebpf.Object]) -> None:
    def body() -> None:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            attached.clear()
            gc.collect()
        assert any(
            issubclass(each.category, ResourceWarning) and "unclosed <Object" in str(each.message)
            for each in told
        ), [str(each.message) for each in told]

    in_child(body)
    assert counts_here(attached)


def test_a_child_goes_on_counting_when_its_parent_closed(attached: list[purebpf.Object]) -> None:
    """A child that keeps what it inherited keeps the programs attached: they have two owners."""
    ready, go = os.pipe()

    def body() -> None:
        os.close(go)
        os.read(ready, 1)  # ends when the parent has called
        assert attached[0].globals["tracepoint_hits"] == PRIME
        assert attached[0].globals["raw_hits"] == PRIME

    child = start(body)
    os.close(ready)
    attached[0].close()
    for _ in range(PRIME):
        os.getpriority(os.PRIO_PROCESS, 0)
    os.close(go)
    finish(child)


_SCRIPT = """
import os, sys
import purebpf
spec = purebpf.read_object(sys.argv[1]).set(target_pid=os.getpid(), target_call=int(sys.argv[2]))
obj = purebpf.load(spec.only("on_tracepoint", "on_raw"))
obj.attach()
if not os.fork():
    sys.exit()  # the interpreter ends, and collects what it inherited
_, status = os.wait()
before = obj.globals["tracepoint_hits"], obj.globals["raw_hits"]
for _ in range(23):
    os.getpriority(os.PRIO_PROCESS, 0)
after = obj.globals["tracepoint_hits"], obj.globals["raw_hits"]
obj.close()
print(status, after[0] - before[0], after[1] - before[1])
"""


def test_the_interpreter_of_a_child_may_end_as_usual() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT, str(DATA / "load_attach.bpf.o"), str(GETPRIORITY)],
        capture_output=True,
        text=True,
        check=True,
        cwd=DATA.parent.parent,
    )
    assert (done.stdout, done.stderr) == ("0 23 23\n", "")


def test_a_ring_that_a_child_closes_is_still_read() -> None:
    with ring_producer() as producer, RingBuffer(producer.source, Numbers()) as ring:
        producer.send(3)
        in_child(ring.close)
        producer.send(2)
        assert list(ring.drain()) == [0, 1, 2, 3, 4]


@pytest.mark.needs("perf_event")
def test_a_perf_buffer_that_a_child_closes_is_still_read() -> None:
    entries = cpus.possible()[-1] + 1
    with perf_producer(entries) as producer, PerfBuffer(producer.source, Numbers()) as buffer:
        producer.send(3)
        in_child(buffer.close)
        producer.send(2)
        assert sorted(buffer.drain()) == [0, 1, 2, 3, 4]
        assert (producer.refused, buffer.lost) == (0, 0)


@pytest.fixture
def without_links() -> Iterator[None]:
    """Kernels before 5.7: no bpf_link for cgroups; before 5.15, none for perf events."""
    features.forget()
    with replaced(Interposer(lambda call: EINVAL if call.command == "BPF_LINK_CREATE" else None)):
        yield
    features.forget()


@pytest.mark.needs("perf_event")
@pytest.mark.usefixtures("without_links")
def test_a_sampling_program_without_a_bpf_link_that_a_child_closes() -> None:
    spec = purebpf.read_object(DATA / "load_attach.bpf.o").set(target_pid=os.getpid())
    with (
        purebpf.load(spec.only("on_sample")) as obj,
        purebpf.PerfEvent.software("page-faults", pid=0, sample_period=1) as event,
        obj.programs["on_sample"].attach(event) as link,
    ):
        with pytest.raises(purebpf.NotSupportedError, match="without a bpf_link"):
            _ = link.info
        in_child(link.close)
        before = obj.globals["sample_hits"]
        with mmap(-1, PRIME * PAGESIZE) as memory:
            memory.madvise(MADV_NOHUGEPAGE)
            for page in range(PRIME):
                memory[page * PAGESIZE] = 1
        assert obj.globals["sample_hits"] >= before + PRIME


@pytest.mark.needs("cgroup2")
@pytest.mark.usefixtures("without_links")
def test_a_cgroup_s_program_that_a_child_closes_and_one_that_it_detaches() -> None:
    spec = purebpf.read_object(DATA / "net_cgroup.bpf.o").only("first", "second")
    used = {name: each for name, each in spec.maps.items() if not name.startswith("created")}
    with cgroups.made() as cgroup, purebpf.load(spec._replace(maps=used)) as obj:
        with obj.programs["first"].attach(cgroup) as first:
            second = obj.programs["second"].attach(cgroup)

            def body() -> None:
                with warnings.catch_warnings(record=True) as told:
                    warnings.simplefilter("always")
                    first.close()
                    gc.collect()
                assert told == [], "something that it held was forgotten"
                second.detach()

            in_child(body)
            assert ids_at(cgroup) == [obj.programs["first"].info.id]
            second.close()  # what it attached is gone already
        assert ids_at(cgroup) == []


def ids_at(cgroup: Path) -> list[int]:
    hook = purebpf.Program.query(cgroup, "cgroup/sock_create")
    return [each.id for each in hook.programs]
