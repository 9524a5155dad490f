"""The side band against children that do a known thing."""

from __future__ import annotations

import ctypes
import mmap
import os
import select
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from purebpf.errors import FormatError
from purebpf.loader.perf.perf_events import PerfEvents
from purebpf.observe.processes.change_decoder import Change
from purebpf.observe.processes.sideband import SideBand
from purebpf.symbols.address_spaces import AddressSpaces, MappedCode
from purebpf.syscall import proc
from purebpf.wire.perf_records import Comm, Exit, Fork
from tests.support import probes

pytestmark = pytest.mark.needs("perf_event")

TRUE = os.path.realpath("/bin/true")


def of(pid: int, changes: list[Change]) -> list[Change]:
    return [change for change in changes if change.pid == pid]


def executable_mappings(maps: str) -> set[tuple[int, int, int, str]]:
    """(start, length, offset, file) of the file mappings of code in a /proc/PID/maps text."""
    found = set()
    for line in maps.splitlines():
        span, rights, offset, _, inode, *path = line.split(maxsplit=5)
        if "x" in rights and inode != "0":
            start, end = (int(number, 16) for number in span.split("-"))
            found.add((start, end - start, int(offset, 16), path[0]))
    return found


def test_a_child_is_seen_from_fork_to_exit() -> None:
    before = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    with SideBand() as band:
        child = subprocess.Popen([TRUE])
        child.wait()
        after = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        seen = of(child.pid, band.drain())
    assert [type(change) for change in seen[:2]] == [Fork, Comm]
    assert seen[0][:4] == (child.pid, os.getpid(), child.pid, threading.get_native_id())
    assert (seen[1].comm, seen[1].exec) == ("true", True)
    assert isinstance(seen[-1], Exit)
    mapped = [change for change in seen if isinstance(change, MappedCode)]
    assert len(mapped) == len(seen) - 3
    assert mapped[0].file.path == TRUE
    (status,) = {(os.major(s.st_dev), os.minor(s.st_dev), s.st_ino) for s in [os.stat(TRUE)]}
    if dict(proc.mounts()).get("/") != "overlay":  # which has numbers of its own
        assert mapped[0].file[1:4] == status
    assert [change.time for change in seen] == sorted(change.time for change in seen)
    assert before < seen[0].time < seen[-1].time < after


def test_the_mappings_of_a_program_are_those_of_proc_maps() -> None:
    code = "import sys; sys.stdout.write('ready'); sys.stdout.flush(); sys.stdin.read()"
    with SideBand(pages=64) as band:
        child = subprocess.Popen(
            [sys.executable, "-S", "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert child.stdout is not None
        assert child.stdout.read(5) == b"ready"
        maps = Path(f"/proc/{child.pid}/maps").read_text()
        child.communicate()
        seen = of(child.pid, band.drain())
        assert band.lost == 0
    mapped = {
        (change.start, change.end - change.start, change.offset, change.file.path)
        for change in seen
        if isinstance(change, MappedCode) and change.file.inode
    }
    assert mapped == executable_mappings(maps)


def test_only_code_is_reported() -> None:
    with SideBand() as band:
        with mmap.mmap(-1, 4096), mmap.mmap(-1, 8192, prot=mmap.PROT_READ | mmap.PROT_EXEC):
            pass
        mine = of(os.getpid(), band.drain())
    mapped = [change for change in mine if isinstance(change, MappedCode)]
    assert [change.end - change.start for change in mapped] == [8192]


def test_threads_and_names() -> None:
    libc = ctypes.CDLL(None)
    numbers = []

    def work() -> None:
        numbers.append(threading.get_native_id())
        libc.prctl(15, b"a name of 15 by", 0, 0, 0)

    with SideBand() as band:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        seen: list[Change] = []
        while not any(isinstance(change, Exit) for change in seen):  # which join() does not await
            seen += of(os.getpid(), band.drain())
    (tid,) = numbers
    mine = [change for change in seen if getattr(change, "tid", 0) == tid]
    assert [type(change) for change in mine] == [Fork, Comm, Exit]
    assert (mine[1].comm, mine[1].exec) == ("a name of 15 by", False)


def test_drains_follow_each_other_in_time() -> None:
    lists = []
    with SideBand() as band:
        for _ in range(5):
            children = [subprocess.Popen([TRUE]) for _ in range(4)]
            lists.append(band.drain())
            for child in children:
                child.wait()
        lists.append(band.drain())
        assert band.lost == 0
    times = [change.time for changes in lists for change in changes]
    assert times == sorted(times)
    assert len(times) > 100


def run_until_awake(band: SideBand) -> int:
    """Run processes until it is to be drained; the bytes of the fullest ring then."""
    with select.epoll() as poll:
        for fd in band.fds:
            poll.register(fd, select.EPOLLIN)
        assert poll.poll(0) == []
        while not poll.poll(0):
            subprocess.run([TRUE], check=True)
        return max(len(ring) for ring in band._rings)


@pytest.mark.parametrize("is_patient", [False, True])
def test_a_half_full_ring_wakes_the_poller(is_patient: bool) -> None:
    with SideBand(pages=1, is_patient=is_patient) as band:  # no room to be patient
        assert 2048 <= run_until_awake(band) < 4096
        assert band.drain()


@pytest.mark.parametrize(("is_patient", "kib"), [(False, 32), (True, 96)])
def test_who_is_patient_is_woken_less_often(is_patient: bool, kib: int) -> None:
    with SideBand(is_patient=is_patient) as band:
        assert kib << 10 <= run_until_awake(band) < (kib << 10) + 16384
        assert band.drain()
        assert band.lost == 0


def test_what_found_no_room_is_counted() -> None:
    with SideBand(pages=1) as band:
        for _ in range(40):
            subprocess.run([TRUE], check=True)
        kept = len(band.drain())
        lost = band.lost
        assert kept > 0
        assert lost > 0
    assert band.lost >= lost


def test_a_burst_of_processes_waits_in_the_ring() -> None:
    """A tool that starts on a busy machine reads nothing for a second."""
    allowed = os.sched_getaffinity(0)
    with SideBand() as band:
        os.sched_setaffinity(0, {min(allowed)})  # of their children, too
        try:
            pids = set()
            for _ in range(150):
                with subprocess.Popen([TRUE]) as process:
                    pids.add(process.pid)
        finally:
            os.sched_setaffinity(0, allowed)
        happened = band.drain()
        assert band.lost == 0
    assert pids <= {change.pid for change in happened}


def test_closing_gives_every_descriptor_back() -> None:
    before = probes.descriptors()
    band = SideBand()
    band.close()
    band.close()
    with pytest.raises(ValueError, match="is closed"):
        band.drain()
    with pytest.raises(ValueError, match="power of two"):
        SideBand(pages=3)
    assert probes.descriptors() == before


def test_a_ring_that_makes_no_sense_is_counted_and_passed_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise FormatError("perf ring", "head 9, tail 0", "9 unread bytes in a ring of 8")

    with SideBand() as band:
        subprocess.run([TRUE], check=True)
        before, ring = band.lost, band._rings[0]
        reached = ring.head
        with monkeypatch.context() as patched:
            patched.setattr("purebpf.loader.perf.perf_ring.unread", refuse)
            assert band.drain() == []
        assert band.lost == before + len(band.fds)
        assert len(ring) <= ring.head - reached, "it is not met again"
        child = subprocess.Popen([TRUE])
        child.wait()
        assert of(child.pid, band.drain()), "what comes later is read"


def test_build_ids_that_another_event_asks_for_are_not_believed() -> None:
    """The kernel goes through the newest event first, and leaves its bit in the header of all."""
    with (
        SideBand() as band,
        PerfEvents.open("dummy", mmap=1, mmap2=1, build_id=1) as events,
    ):
        for event in events:
            event.map_ring()
        child = subprocess.Popen([TRUE])
        child.wait()
        seen = of(child.pid, band.drain())
    files = [change.file for change in seen if isinstance(change, MappedCode)]
    assert [file for file in files if file.path == TRUE]
    assert all(file.inode for file in files if file.path.startswith("/"))
    assert band.lost == 0


def test_address_spaces_take_its_records() -> None:
    spaces = AddressSpaces()
    with SideBand() as band:
        child = subprocess.Popen([TRUE])
        child.wait()
        changes = band.drain()
    for change in changes:
        spaces.feed(change)
    (first, *_) = [each for each in of(child.pid, changes) if isinstance(each, MappedCode)]
    assert spaces.has_exited(child.pid)
    assert spaces.parent(child.pid) == os.getpid()
    found = spaces.find(child.pid, first.start)
    assert found is not None
    assert found.file.path == TRUE
    assert found.offset == first.offset


def test_other_processes_may_be_passed_over() -> None:
    known: set[int] = set()
    with SideBand(pids=known) as band:
        for is_known in (False, True):
            child = subprocess.Popen(["sh", "-c", "read line; exec true"], stdin=subprocess.PIPE)
            if is_known:
                known.add(child.pid)
            child.communicate(b"\n")
        seen = band.drain()
    assert {change.pid for change in seen} == known
    assert [change.comm for change in seen if isinstance(change, Comm) and change.exec][
        -1
    ] == "true"
    assert isinstance(seen[-1], Exit)


def test_threads_may_be_passed_over() -> None:
    with SideBand(threads=False) as band:
        threads = [threading.Thread(target=bool) for _ in range(5)]
        for thread in threads:
            thread.start()
            thread.join()
        child = subprocess.Popen([TRUE])
        child.wait()
        changes = band.drain()
    assert not [c for c in of(os.getpid(), changes) if isinstance(c, Fork | Exit)]
    seen = of(child.pid, changes)
    assert (type(seen[0]), type(seen[-1])) == (Fork, Exit)
