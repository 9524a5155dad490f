"""Perf events that count: known amounts of work, exact counts."""

from __future__ import annotations

import ctypes
import mmap
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from purebpf.loader.host import cpus
from purebpf.loader.perf.perf_event import PerfEvent
from purebpf.loader.perf.perf_events import PerfEvents

pytestmark = pytest.mark.needs("perf_event")

PAGES = 997


@contextmanager
def fresh_pages() -> Iterator[int]:
    """The address of PAGES pages that were never touched."""
    with mmap.mmap(-1, PAGES * mmap.PAGESIZE) as memory:
        memory.madvise(mmap.MADV_NOHUGEPAGE)
        pin = ctypes.c_char.from_buffer(memory)
        yield ctypes.addressof(pin)
        del pin


def touched(event: PerfEvent) -> int:
    """What `event` counts while PAGES fresh pages are written."""
    with fresh_pages() as address:
        event.reset()
        event.enable()
        ctypes.memset(address, 1, PAGES * mmap.PAGESIZE)
        event.disable()
    return event.read().value


def test_each_fresh_page_is_one_page_fault() -> None:
    with PerfEvent.software("page-faults", pid=0, disabled=1) as event:
        touched(event)  # warms up what Python itself touches in between
        assert [touched(event) for _ in range(3)] == [PAGES] * 3


def test_reset_makes_the_count_zero_and_disable_freezes_it() -> None:
    with PerfEvent.software("task-clock", pid=0) as event:
        event.disable()
        before = event.read()
        sum(range(10_000))
        assert event.read() == before
        assert before.value > 0
        event.reset()
        assert event.read().value == 0
        assert event.read().time_enabled_ns == before.time_enabled_ns


def test_a_software_event_runs_whenever_it_is_enabled() -> None:
    with PerfEvent.software("task-clock", pid=0) as event:
        sum(range(10_000))
        event.disable()
        reading = event.read()
        assert reading.time_running_ns == reading.time_enabled_ns > 0
        assert reading.scaled == reading.value


def test_events_have_different_ids_and_lose_nothing() -> None:
    with PerfEvent.software("dummy", pid=0) as one, PerfEvent.software("dummy", pid=0) as two:
        assert one.read().id != two.read().id
        assert one.read().lost in (0, None)


def test_a_group_is_switched_as_one() -> None:
    with (
        PerfEvent.software("page-faults", pid=0, disabled=1) as leader,
        PerfEvent.software("task-clock", pid=0, group=leader) as member,
    ):
        assert member.read().value == 0
        leader.enable(group=True)
        sum(range(10_000))
        leader.disable(group=True)
        counted = member.read().value
        sum(range(10_000))
        assert member.read().value == counted > 0


def test_enable_on_exec_counts_the_program_and_not_what_came_before() -> None:
    code = "import os, sys; sys.stdin.read(); os.execv('/bin/true', ['true'])"
    child = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE)
    with PerfEvent.software("task-clock", pid=child.pid, disabled=1, enable_on_exec=1) as event:
        assert event.read().value == 0
        child.communicate()
        assert child.returncode == 0
        assert event.read().value > 0


@pytest.mark.parametrize("inherit", [0, 1])
def test_children_are_counted_when_inherited(inherit: int) -> None:
    with PerfEvent.software("page-faults", pid=0, inherit=inherit) as event:
        before = event.read().value
        with fresh_pages() as address:
            child = os.fork()
            if child == 0:
                ctypes.memset(address, 1, PAGES * mmap.PAGESIZE)
                os._exit(0)
            assert os.waitpid(child, 0) == (child, 0)
        counted = event.read().value - before
    assert (counted >= PAGES) == bool(inherit)


@pytest.fixture
def cgroups(tmp_path: Path) -> Iterator[list[Path]]:
    """Two fresh cgroups, in a cgroup2 mount of this test's own."""
    libc = ctypes.CDLL(None, use_errno=True)
    root = tmp_path / "cgroup2"
    root.mkdir()
    if libc.mount(b"none", os.fsencode(root), b"cgroup2", 0, None):
        pytest.fail(f"mount(cgroup2): {os.strerror(ctypes.get_errno())}")
    made = [root / f"purebpf-{os.getpid()}-{name}" for name in ("busy", "idle")]
    for path in made:
        path.mkdir()
    yield made
    for path in made:
        path.rmdir()
    assert libc.umount2(os.fsencode(root), 2) == 0  # MNT_DETACH


def test_a_cgroup_is_counted_and_nothing_else(cgroups: list[Path]) -> None:
    busy, idle = map(str, cgroups)
    with (
        fresh_pages() as address,
        PerfEvents.open("page-faults", cgroup=busy) as events,
        PerfEvents.open("page-faults", cgroup=idle) as others,
    ):
        child = os.fork()
        if child == 0:
            Path(busy, "cgroup.procs").write_text("0")
            ctypes.memset(address, 1, PAGES * mmap.PAGESIZE)
            os._exit(0)
        assert os.waitpid(child, 0) == (child, 0)
        assert sum(reading.value for reading in events.read()) >= PAGES
        assert sum(reading.value for reading in others.read()) == 0


@pytest.mark.alone  # a BPF program at the tracepoint would hide its passes
@pytest.mark.needs("tracefs")
def test_a_tracepoint_by_name_counts_its_passes() -> None:
    with PerfEvent.tracepoint("signal:signal_generate", pid=0) as event:
        before = signal.signal(signal.SIGUSR1, signal.SIG_IGN)
        try:
            for _ in range(31):
                os.kill(os.getpid(), signal.SIGUSR1)
        finally:
            signal.signal(signal.SIGUSR1, before)
        event.disable()
        assert event.read().value == 31
        assert event.event.name == "signal:signal_generate"


def test_one_event_for_each_online_cpu() -> None:
    with PerfEvents.open("cpu-clock") as events:
        assert tuple(event.cpu for event in events) == cpus.online()
        events.disable()
        assert all(reading.value > 0 for reading in events.read())
        assert events.event.name == "cpu-clock"


def test_a_process_is_watched_on_some_cpus_only() -> None:
    with PerfEvents.open("task-clock", cpus=[0], pid=0) as events:
        assert [(event.cpu, event.pid) for event in events] == [(0, 0)]
        assert repr(events) == "PerfEvents(task-clock on 1 CPUs)"


def test_closing_twice_is_harmless_and_using_it_afterwards_is_not() -> None:
    event = PerfEvent.software("dummy", pid=0)
    event.close()
    event.close()
    assert repr(event) == "PerfEvent(dummy, pid=0, closed)"
    with pytest.raises(ValueError, match="closed"):
        event.read()


def test_a_forgotten_event_is_a_resource_warning() -> None:
    with pytest.warns(ResourceWarning, match="unclosed"):
        PerfEvent.software("dummy", pid=0).event  # noqa: B018 - opened and dropped
