"""Page faults on both sides of every test of a sample filter, and what filtered events keep."""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from purebpf.abi.perf import perf_event_sample_format as bit
from purebpf.filter import parse
from purebpf.filter.sample_layout import from_sample
from purebpf.loader.perf.perf_event import PerfEvent
from purebpf.loader.types.kernel_btf import kernel_btf
from purebpf.observe.filters.sample_filter import SampleFilter
from purebpf.wire.perf_records import Sample
from tests.support import expected

PAGES = 48
OLD = (
    bit.PERF_SAMPLE_IP
    | bit.PERF_SAMPLE_TID
    | bit.PERF_SAMPLE_TIME
    | bit.PERF_SAMPLE_ADDR
    | bit.PERF_SAMPLE_ID
    | bit.PERF_SAMPLE_CPU
    | bit.PERF_SAMPLE_PERIOD
    | bit.PERF_SAMPLE_WEIGHT
    | bit.PERF_SAMPLE_DATA_SRC
    | bit.PERF_SAMPLE_TRANSACTION
    | bit.PERF_SAMPLE_PHYS_ADDR
    | bit.PERF_SAMPLE_CGROUP
)
"""Every part of a sample that Linux 5.10 has and a filter can ask about, but for the weight."""

EVERYTHING = OLD | bit.PERF_SAMPLE_DATA_PAGE_SIZE | bit.PERF_SAMPLE_CODE_PAGE_SIZE
LIBC = ctypes.CDLL(None)


def prepares_samples() -> bool:
    """Whether this kernel lets programs see all of a sample (Linux 6.3)."""
    found = from_sample(kernel_btf()) is not None
    if expected.kernel():
        assert found == (expected.kernel() not in ("5.10", "6.1"))
    return found


def events(sample_type: int, **options: int) -> PerfEvent:
    return PerfEvent.sampling(
        period=1, event="page-faults", pid=0, sample_type=sample_type, disabled=1, **options
    )


@contextmanager
def region(pages: int) -> Iterator[mmap.mmap]:
    with mmap.mmap(-1, pages * mmap.PAGESIZE) as memory:
        memory.madvise(mmap.MADV_NOHUGEPAGE)
        yield memory


def address(memory: mmap.mmap) -> int:
    pin = ctypes.c_char.from_buffer(memory)
    found = ctypes.addressof(pin)
    del pin
    return found


def touch_pages(count: int) -> None:
    """Write to fresh pages: a page fault each."""
    with region(count) as memory:
        LIBC.memset(ctypes.c_void_p(address(memory)), 1, ctypes.c_size_t(len(memory)))


def touch(memory: mmap.mmap) -> None:
    """Fault in half of the pages in user mode and half in the kernel, on every CPU in turn."""
    allowed = os.sched_getaffinity(0)
    start, half = address(memory), PAGES // 2
    try:
        for place, cpu in enumerate(sorted(allowed)[:2]):
            os.sched_setaffinity(0, {cpu})
            base = start + place * half // 2 * mmap.PAGESIZE
            LIBC.memset(ctypes.c_void_p(base), 1, ctypes.c_size_t(half // 2 * mmap.PAGESIZE))
            with open("/dev/zero", "rb", buffering=0) as file:
                view = memoryview(memory)
                first = (half + place * (half // 2)) * mmap.PAGESIZE
                file.readinto(view[first : first + half // 2 * mmap.PAGESIZE])
                view.release()
    finally:
        os.sched_setaffinity(0, allowed)


def identity(sample: Sample) -> tuple[int, ...]:
    """What the two events' samples of one fault have in common."""
    return (sample.ip, sample.tid, sample.addr, sample.cpu)


def filtered(text: str, sample_type: int = EVERYTHING) -> tuple[list[Sample], list[Sample]]:
    """The samples of an unfiltered and of a filtered event of one run of faults."""
    with (
        region(PAGES) as memory,
        SampleFilter(parse(text), sample_type) as chosen,
        events(sample_type) as plain,
        events(sample_type) as event,
    ):
        plain.map_ring(64)
        event.map_ring(64)
        chosen.attach(event)
        plain.enable()
        event.enable()
        touch(memory)
        event.disable()
        plain.disable()
        start = address(memory)
        mine = range(start, start + len(memory))
        every = [each for each in plain.records() if each.addr in mine]
        kept = [each for each in event.records() if chosen.accepts(each)]
        counts = chosen.counts()
        assert counts.passed == len(kept)
        assert counts.seen == event.read().value
        assert chosen.in_kernel or chosen.why_user_space
    assert len(every) == PAGES
    return every, [each for each in kept if each.addr in mine]


def knows(sample_type: int) -> bool:
    try:
        events(sample_type).close()
    except OSError:
        return False
    return True


def run_in(work: Callable[[], None], **who: int) -> None:
    """Run `work` in a child with another name, user or group."""
    child = os.fork()
    if child == 0:
        try:
            if "gid" in who:
                os.setgid(who["gid"])
            if "uid" in who:
                os.setuid(who["uid"])
            work()
        finally:
            os._exit(0)
    os.waitpid(child, 0)


def kept_of_child(text: str, sample_type: int, prepare: Callable[[], None], **who: int) -> int:
    """How many of the faults of a child that `prepare` readies an inherited event kept."""
    with (
        region(PAGES) as memory,
        SampleFilter(parse(text), sample_type) as chosen,
        events(sample_type, cpu=0, inherit=1) as event,
    ):
        event.map_ring(64)
        chosen.attach(event)
        event.enable()
        start = address(memory)

        def work() -> None:
            prepare()
            os.sched_setaffinity(0, {0})
            LIBC.memset(ctypes.c_void_p(start), 1, ctypes.c_size_t(PAGES * mmap.PAGESIZE))

        run_in(work, **who)
        event.disable()
        return sum(start <= each.addr < start + len(memory) for each in event.records())
