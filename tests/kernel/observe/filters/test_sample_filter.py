"""Filters at work: a filtered event keeps just those samples that the function would keep.

Two events count the same page faults of the same threads; one is filtered. Faults happen on both
sides of every test: in user and kernel mode, on two CPUs, in two threads, in two regions.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import threading
import time
from collections import Counter
from contextlib import ExitStack

import pytest

from purebpf.abi.perf import perf_event_sample_format as bit
from purebpf.errors import AttachError, NotSupportedError
from purebpf.filter import FilterError, parse
from purebpf.filter.evaluate import predicate
from purebpf.filter.lowering import resolve
from purebpf.loader.perf.perf_event import PerfEvent
from purebpf.observe.filters.sample_filter import SampleFilter
from purebpf.symbols.kallsyms import Kallsyms
from purebpf.wire.perf_records import Sample
from tests.kernel.page_faults import (
    EVERYTHING,
    LIBC,
    OLD,
    PAGES,
    address,
    events,
    filtered,
    identity,
    kept_of_child,
    knows,
    prepares_samples,
    region,
    touch,
)

pytestmark = pytest.mark.needs("bpf", "perf_event", "vmlinux_btf")

ME = os.getpid()
KERNEL = 0xFFFF000000000000
FILTERS = [
    f"ip < {KERNEL:#x}",
    f"ip >= {KERNEL:#x}",
    f"ip in 0..{KERNEL - 1}",
    f"!ip > {KERNEL}",
    "ip & 0x8000000000000000",
    "cpu == 0",
    "cpu != 0",
    "cpu > 0",
    "cpu <= 0",
    "cpu in {0, 5..9}",
    f"cpu == 0, ip < {KERNEL}",
    f"cpu == 0 || ip < {KERNEL}",
    f"!(cpu == 0 || ip < {KERNEL})",
    f"cpu == 0 && ip < {KERNEL} || cpu == 1 && ip > {KERNEL}",
    "cpu == 99 || cpu == 0 || cpu == 77",
    f"pid == {ME}",
    f"pid != {ME}",
    f"tid == {ME}",
    f"tid > {ME}",
    "period == 1",
    "period > 1",
    "weight == 0",
    "weight > 0",
    "txn == 0",
    "txn != 0",
    "mem_op & na",
    "mem_op == load",
    "mem_lvl == na || mem_lvl == 0",
    "mem_snoop & na",
    "mem_snoop & fwd",
    "mem_lock & na",
    "mem_dtlb & na",
    "mem_blk == 0",
    "mem_hops > 0",
    "mem_remote == remote",
    "phys_addr == 0",
    "phys_addr != 0",
    "cgroup != /",
    "cgroup == /",
    "id > 0",
    "id == 0",
    "time > 0",
    "time == 0",
    "code_pgsz == 4096",
    "code_pgsz != 4096",
    "data_pgsz == 0",
    "data_pgsz == 4096",
    "addr & 0x1000",
    "addr > 0x1000, addr < 0x2000",
]


@pytest.mark.parametrize("text", FILTERS)
def test_the_kernel_keeps_what_the_function_keeps(text: str) -> None:
    if "cgroup" in text and not has_cgroups():
        pytest.skip("no cgroup2 hierarchy is mounted")
    sample_type = EVERYTHING if prepares_samples() or "pgsz" in text else OLD
    if not knows(sample_type):
        pytest.skip("this kernel's samples have no page sizes (Linux 5.11)")
    every, kept = filtered(text, sample_type)
    from purebpf.observe.filters.filter_names import MachineNames

    rejecting = predicate(resolve(parse(text), sample_type, MachineNames()))
    wanted = [identity(each) for each in every if rejecting(each) < 0]
    if " id " not in f" {text}":  # the two events' own
        assert Counter(map(identity, kept)) == Counter(wanted)


def has_cgroups() -> bool:
    from purebpf.syscall import proc

    return any(kind == "cgroup2" for _, kind in proc.mounts())


def test_faults_are_on_both_sides_of_the_tests() -> None:
    every, kept = filtered(f"ip < {KERNEL}", OLD)
    assert len(kept) == len(every) // 2
    if len(os.sched_getaffinity(0)) > 1:
        every, kept = filtered("cpu == 0", OLD)
        assert len(kept) == len(every) // 2


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("comm == faulty-child", True),
        ("comm == faulty", False),
        ("comm != faulty-child", False),
        ("comm in {other, faulty-child}", True),
        ('comm == "faulty-child "', False),
        ("uid == 4711", True),
        ("uid != 4711", False),
        ("uid == root", False),
        ("uid in 4000..5000", True),
        ("uid > 4711", False),
        ("gid == 4712", True),
        ("gid == root", False),
        ("gid & 1", False),
        (f"pid == {ME}", False),
        (f"pid != {ME}", True),
        (f"tid in {{{ME}}}", False),
        (f"!tid == {ME}", True),
    ],
)
def test_users_and_names_of_inherited_events(text: str, kept: bool) -> None:
    where = bit.PERF_SAMPLE_TID | bit.PERF_SAMPLE_ADDR
    found = kept_of_child(text, where, name_it, uid=4711, gid=4712)
    assert found == (PAGES if kept else 0)


def name_it() -> None:
    LIBC.prctl(15, b"faulty-child", 0, 0, 0)  # PR_SET_NAME


def test_threads_are_counted_separately() -> None:
    where = bit.PERF_SAMPLE_TID | bit.PERF_SAMPLE_ADDR
    ready, go = threading.Event(), threading.Event()
    tids: list[int] = []
    places: list[range] = []

    def work() -> None:
        tids.append(threading.get_native_id())
        ready.set()
        go.wait()
        with region(PAGES) as memory:
            places.append(range(address(memory), address(memory) + len(memory)))
            touch(memory)

    thread = threading.Thread(target=work)
    thread.start()
    ready.wait()
    with ExitStack() as stack:
        opened = []
        for text in (f"tid == {tids[0]}", f"tid != {tids[0]}", f"tid == {ME}", f"pid == {ME}"):
            chosen = stack.enter_context(SampleFilter(parse(text), where))
            event = stack.enter_context(
                PerfEvent.sampling(
                    period=1, event="page-faults", pid=tids[0], sample_type=where, disabled=1
                )
            )
            event.map_ring(64)
            chosen.attach(event)
            event.enable()
            opened.append(event)
        go.set()
        thread.join()
        kept = [sum(each.addr in places[0] for each in event.records()) for event in opened]
    assert kept == [PAGES, 0, 0, PAGES]


@pytest.mark.parametrize("operator", [">=", ">", "<", "<="])
def test_time_has_a_before_and_an_after(operator: str) -> None:
    waits = (0.2, 2, 20)  # seconds: what a busy machine may take to get to the first fault
    early, late = next(filter(None, (kept_around(operator, wait) for wait in waits)))
    half = PAGES // 2
    assert (early, late) == ((0, half) if ">" in operator else (half, 0))


def kept_around(operator: str, wait_s: float) -> tuple[int, int] | None:
    """How many of the faults before and behind a moment were kept; None: the moment came first."""
    where = bit.PERF_SAMPLE_TIME | bit.PERF_SAMPLE_ADDR | bit.PERF_SAMPLE_TID
    border = time.monotonic_ns() + int(wait_s * 1e9)
    with (
        region(PAGES) as memory,
        SampleFilter(parse(f"time {operator} {border}"), where) as chosen,
        events(where, use_clockid=1, clockid=time.CLOCK_MONOTONIC) as event,
    ):
        event.map_ring(64)
        chosen.attach(event)
        event.enable()
        start, half = address(memory), PAGES // 2 * mmap.PAGESIZE
        LIBC.memset(ctypes.c_void_p(start), 1, ctypes.c_size_t(half))
        if time.monotonic_ns() >= border:
            return None
        while time.monotonic_ns() <= border:
            pass
        LIBC.memset(ctypes.c_void_p(start + half), 1, ctypes.c_size_t(half))
        event.disable()
        found = [each.addr for each in event.records() if chosen.accepts(each)]
        assert chosen.in_kernel == prepares_samples()
        assert chosen.counts().dropped >= PAGES // 2
    early, late = range(start, start + half), range(start + half, start + 2 * half)
    return sum(each in early for each in found), sum(each in late for each in found)


def test_two_events_with_different_filters_do_not_mix() -> None:
    where = bit.PERF_SAMPLE_IP | bit.PERF_SAMPLE_ADDR
    with (
        region(PAGES) as memory,
        SampleFilter(parse(f"ip < {KERNEL}"), where) as user,
        SampleFilter(parse(f"ip >= {KERNEL}"), where) as kernel,
        events(where) as first,
        events(where) as second,
    ):
        for event, chosen in ((first, user), (second, kernel)):
            event.map_ring(64)
            chosen.attach(event)
            event.enable()
        touch(memory)
        first.disable()
        second.disable()
        assert {each.ip < KERNEL for each in first.records()} == {True}
        assert {each.ip < KERNEL for each in second.records()} == {False}


def test_counts_name_the_term_that_rejected() -> None:
    where = bit.PERF_SAMPLE_IP | bit.PERF_SAMPLE_ADDR | bit.PERF_SAMPLE_TID
    with (
        region(PAGES) as memory,
        SampleFilter(parse(f"pid == {ME}, ip < {KERNEL}, addr < 0"), where) as chosen,
        events(where) as event,
    ):
        event.map_ring(64)
        chosen.attach(event)
        event.enable()
        touch(memory)
        event.disable()
        counts = chosen.counts()
        assert [each for each in event.records() if isinstance(each, Sample)] == []
    names = [name for name, _ in counts.rejected]
    by_pid, by_ip, by_addr = (count for _, count in counts.rejected)
    assert names == [f"pid == {ME}", f"ip < {KERNEL}", "addr < 0"]
    assert by_pid == 0
    assert by_ip >= PAGES // 2
    assert by_addr >= PAGES // 2
    assert counts.passed == 0
    assert counts.seen == counts.dropped == by_ip + by_addr


@pytest.mark.parametrize("terms", [65, 1000])
def test_there_is_no_limit_of_64_terms(terms: int) -> None:
    text = ", ".join(f"pid != {ME + 1 + number}" for number in range(terms))
    _, kept = filtered(text, OLD)
    assert len(kept) == PAGES
    either = " || ".join(f"pid == {ME + number}" for number in reversed(range(terms)))
    _, kept = filtered(either, OLD)
    assert len(kept) == PAGES


def test_a_missing_sample_type_is_an_error_before_anything_is_loaded() -> None:
    where = bit.PERF_SAMPLE_IP | bit.PERF_SAMPLE_TID
    with pytest.raises(FilterError, match=r"PERF_SAMPLE_CPU\): add --sample-cpu"):
        SampleFilter(parse("cpu > 0"), where)
    with pytest.raises(FilterError, match=r"PERF_SAMPLE_DATA_SRC\): add -d"):
        SampleFilter(parse("ip > 0 || mem_op == load"), where)


def test_an_event_takes_one_filter() -> None:
    with (
        SampleFilter(parse("ip > 0"), bit.PERF_SAMPLE_IP) as chosen,
        events(bit.PERF_SAMPLE_IP) as event,
    ):
        chosen.attach(event)
        with pytest.raises(AttachError, match="EEXIST"):
            chosen.attach(event)


def test_a_filter_in_user_space_counts_the_same() -> None:
    where = bit.PERF_SAMPLE_IP | bit.PERF_SAMPLE_ADDR
    with SampleFilter(parse("addr > 10, ip == 3"), where, in_kernel=False) as chosen:
        samples = [Sample(0, ip=3, addr=11), Sample(0, ip=3, addr=10), Sample(0, ip=4, addr=11)]
        assert [chosen.accepts(each) for each in samples] == [True, False, False]
        assert chosen.counts() == (1, (("addr > 10", 1), ("ip == 3", 1)), 0)
        assert "runs in user space: the caller chose user space" in chosen.explain()


def test_user_space_refuses_what_samples_do_not_tell() -> None:
    with pytest.raises(NotSupportedError, match="samples do not have comm"):
        SampleFilter(parse("comm == a"), 0, in_kernel=False)


def test_explain_shows_the_filter_and_its_code() -> None:
    with SampleFilter(parse("(uid==root)&&comm==python3"), 0) as chosen:
        lines = chosen.explain().split("\n")
    assert lines[0] == "filter: uid == root, comm == python3"
    assert "; 1: uid == root" in lines
    assert "; 2: comm == python3" in lines
    assert lines[-1].endswith("exit")


def test_a_function_of_the_kernel() -> None:
    every, _ = filtered("ip > 0", OLD)
    with open("/proc/kallsyms", "rb") as file:
        known = Kallsyms(file.read())
    names = Counter(symbol_of(known, each) for each in every)
    name, _ = max((pair for pair in names.items() if pair[0]), key=lambda pair: pair[1])
    for text, wanted in ((f"symbol == {name}", True), (f"symbol != {name}", False)):
        every, kept = filtered(text, OLD)
        assert {symbol_of(known, each) == name for each in kept} == {wanted}
        count = sum((symbol_of(known, each) == name) == wanted for each in every)
        assert len(kept) == count


def symbol_of(known: Kallsyms, sample: Sample) -> str:
    found = known.find(sample.ip)
    return found.name if found else ""
