"""Pinned filters: two users, each with slots of his own, and nothing of the other's."""

from __future__ import annotations

import ctypes
import mmap
import os
import resource  # noqa: F401 - users may not reach the interpreter's files to import it later
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from purebpf.abi.perf import perf_event_sample_format as bit
from purebpf.errors import KernelError, NotSupportedError
from purebpf.filter import parse
from purebpf.filter.lowering import NoNames, resolve
from purebpf.filter.sample_layout import from_sample
from purebpf.loader.host import pins
from purebpf.loader.perf.perf_event import PerfEvent
from purebpf.loader.types.kernel_btf import kernel_btf
from purebpf.observe.filters import pinned_setup, pinned_slots
from purebpf.observe.filters.pinned_filter import PinnedFilter
from purebpf.observe.filters.sample_filter import SampleFilter
from purebpf.syscall import bpf
from tests.support.host.users import as_user, public_bpffs, users_sampling

pytestmark = pytest.mark.needs("bpf", "bpffs", "perf_event", "vmlinux_btf", "pinned_by_users")

ANN, BOB = 4711, 4712
PAGES = 40
WHERE = bit.PERF_SAMPLE_IP | bit.PERF_SAMPLE_TID | bit.PERF_SAMPLE_ADDR
LIBC = ctypes.CDLL(None)


@pytest.fixture(scope="module")
def bpffs() -> Iterator[str]:
    """Two slots for Ann, one for Bob."""
    with users_sampling(), public_bpffs() as folder:
        pinned_setup.pin(ANN, 2, folder)
        pinned_setup.pin(BOB, 1, folder)
        yield folder


def terms_of(text: str):
    return resolve(parse(text), WHERE, NoNames())


def faults(text: str, bpffs: str, *, child: bool = False) -> tuple[int, tuple[int, ...]]:
    """How many of PAGES faults in user mode a filter kept, and its counters."""
    options: dict[str, Any] = {"cpu": 0, "inherit": 1} if child else {}
    with (
        mmap.mmap(-1, PAGES * mmap.PAGESIZE) as memory,
        PinnedFilter(terms_of(text), os.getuid(), bpffs) as chosen,
        PerfEvent.sampling(
            period=1, event="page-faults", pid=0, sample_type=WHERE, disabled=1,
            exclude_kernel=1, **options,
        ) as event,
    ):  # fmt: skip
        memory.madvise(mmap.MADV_NOHUGEPAGE)
        pin = ctypes.c_char.from_buffer(memory)
        start = ctypes.addressof(pin)
        del pin
        event.map_ring(16)
        chosen.attach(event)
        event.enable()
        if child and (pid := os.fork()):
            os.waitpid(pid, 0)
        else:
            os.sched_setaffinity(0, {0})
            LIBC.memset(ctypes.c_void_p(start), 1, ctypes.c_size_t(PAGES * mmap.PAGESIZE))
            if child:
                os._exit(0)
        event.disable()
        mine = range(start, start + len(memory))
        return sum(each.addr in mine for each in event.records()), chosen.counts()


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("uid == 4711", True),
        ("uid != 4711", False),
        ("gid > 4710", True),
        ("comm == nothing", False),
        ("comm != nothing", True),
        ("pid in 1..99999999", True),
        ("ip >= 0xffff000000000000", False),
        ("ip < 0xffff000000000000, addr > 0x1000", True),
        ("!(addr & 0xffffffffffffffff)", False),
        ("tid == 0 || pid == 0 || period > 0", True),
    ],
)
def test_a_user_who_may_load_nothing_filters(bpffs: str, text: str, kept: bool) -> None:
    found, counts = as_user(ANN, lambda: faults(text, bpffs))
    assert found == (PAGES if kept else 0)
    assert (counts[0] >= PAGES) if kept else (sum(counts[1:]) >= PAGES)


def test_children_are_covered(bpffs: str) -> None:
    assert as_user(ANN, lambda: faults("uid == 4711", bpffs, child=True))[0] == PAGES
    assert as_user(ANN, lambda: faults("uid == 4712", bpffs, child=True))[0] == 0


def test_a_field_that_was_not_sampled_is_zero_and_no_window_into_the_kernel(bpffs: str) -> None:
    if from_sample(kernel_btf()) is None:
        pytest.skip("this kernel prepares no samples (Linux 6.3)")
    for field in ("phys_addr", "time", "txn", "data_pgsz", "weight", "id"):
        assert as_user(ANN, lambda field=field: faults(f"{field} == 0", bpffs))[0] == PAGES


def test_every_slot_is_one_filter_and_no_more(bpffs: str) -> None:
    def work() -> list[Any]:
        with PinnedFilter(terms_of("pid == 1"), ANN, bpffs) as first:
            with PinnedFilter(terms_of("pid == 2"), ANN, bpffs) as second:
                numbers = [first.number, second.number]
                taken = [each.taken for each in pinned_slots.slots(ANN, bpffs)]
                owners = {each.pid for each in pinned_slots.slots(ANN, bpffs)}
                with pytest.raises(NotSupportedError, match=r"all 2 in .*/4711 are in use"):
                    PinnedFilter(terms_of("pid == 3"), ANN, bpffs)
            with PinnedFilter(terms_of("pid == 3"), ANN, bpffs) as third:
                numbers.append(third.number)
        return [numbers, taken, owners == {os.getpid()}]

    assert as_user(ANN, work) == [[0, 1, 1], [True, True], True]


def test_a_slot_comes_back_when_its_process_is_killed(bpffs: str) -> None:
    def work() -> list[Any]:
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            chosen = PinnedFilter(terms_of("pid == 1"), BOB, bpffs)
            os.write(writer, b"%d" % chosen.number)
            signal.pause()
        assert os.read(reader, 1) == b"0"
        (before,) = pinned_slots.slots(BOB, bpffs)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        (after,) = pinned_slots.slots(BOB, bpffs)
        with PinnedFilter(terms_of("pid == 2"), BOB, bpffs) as again:
            number = again.number
        os.close(reader)
        os.close(writer)
        return [before.taken, before.pid == child, after.taken, after.pid == child, number]

    assert as_user(BOB, work) == [True, True, False, True, 0]


def test_nothing_of_another_user_can_be_read_or_changed(bpffs: str) -> None:
    folder = f"{bpffs}/purebpf/filter/{ANN}"
    files = [f"{folder}/0/{name}" for name in ("program", "table", "counts", "lease")]

    def work() -> list[str]:
        refused = []
        attempts = [
            lambda: os.listdir(folder),
            lambda: os.listdir(f"{bpffs}/purebpf/filter"),
            lambda: os.open(f"{folder}/0", os.O_RDONLY | os.O_DIRECTORY),
            lambda: os.chmod(folder, 0o777),
            lambda: os.unlink(files[0]),
            lambda: os.rename(folder, f"{folder}x"),
            lambda: pinned_slots.slots(ANN, bpffs),
            lambda: PinnedFilter(terms_of("pid == 1"), ANN, bpffs),
            *(lambda file=file: pins.open_pinned(file) for file in files),
            *(lambda file=file: pins.open_pinned(file, 8) for file in files),
        ]
        for attempt in attempts:
            try:
                attempt()
            except OSError as error:
                refused.append(os.strerror(error.errno or 0))
            else:
                refused.append("it worked")
        return refused

    assert set(as_user(BOB, work)) <= {"Permission denied", "Operation not permitted"}
    assert len(as_user(BOB, work)) == 8 + 2 * len(files)


def test_the_two_do_not_mix(bpffs: str) -> None:
    with PinnedFilterOf(ANN, "uid == 4712", bpffs):
        assert as_user(BOB, lambda: faults("uid == 4712", bpffs))[0] == PAGES


class PinnedFilterOf:
    """A child of that user has a slot and waits."""

    def __init__(self, uid: int, text: str, bpffs: str) -> None:
        self._uid, self._text, self._bpffs = uid, text, bpffs

    def __enter__(self) -> None:
        reader, writer = os.pipe()
        self._child = os.fork()
        if self._child == 0:
            os.setgid(self._uid)
            os.setuid(self._uid)
            kept = PinnedFilter(terms_of(self._text), self._uid, self._bpffs)
            os.write(writer, b"x")
            signal.pause()
            kept.close()
        os.close(writer)
        assert os.read(reader, 1) == b"x"
        os.close(reader)

    def __exit__(self, *_: object) -> None:
        os.kill(self._child, signal.SIGKILL)
        os.waitpid(self._child, 0)


def test_a_table_of_nonsense_drops_and_ends(bpffs: str) -> None:
    """The table is the user's to write: circles, wild jumps and unknown fields do no harm."""
    import random
    import struct

    def work() -> int:
        with (
            PinnedFilter(terms_of("pid > 0"), ANN, bpffs) as chosen,
            PerfEvent.sampling(
                period=1, event="page-faults", pid=0, sample_type=WHERE, disabled=1,
                exclude_kernel=1,
            ) as event,
        ):  # fmt: skip
            event.map_ring(16)
            chosen.attach(event)
            path = f"{bpffs}/purebpf/filter/{ANN}/{chosen.number}/table"
            rng = random.Random(17)
            with pins.open_map(path) as opened:
                for content in (b"\0" * 3072, b"\xff" * 3072, *map(rng.randbytes, [3072] * 20)):
                    key = struct.pack("=I", 0)
                    bpf.map_update_elem(opened.fileno(), key, content)
                    event.enable()
                    with mmap.mmap(-1, 8 * mmap.PAGESIZE) as memory:
                        memory[::4096] = b"x" * 8
                    event.disable()
            return sum(chosen.counts())

    assert isinstance(as_user(ANN, work), int)


def test_the_sample_filter_takes_a_pinned_program_when_it_may_load_none(bpffs: str) -> None:
    def work() -> list[Any]:
        with SampleFilter(parse("uid == 4711, pid > 1"), WHERE, bpffs=bpffs) as chosen:
            return [chosen.in_kernel, chosen.where, chosen.explain().split("\n")[-2:]]

    assert as_user(ANN, work) == [
        True,
        "the program that root pinned for this user, slot 0",
        ["   0: if uid == 0x1267 goto 1 else drop (1)", "   1: if pid > 0x1 keep else drop (2)"],
    ]


def test_without_either_it_filters_in_user_space_and_says_so(bpffs: str) -> None:
    def work() -> list[Any]:
        with SampleFilter(parse("pid > 1"), WHERE, bpffs=bpffs) as chosen:
            return [chosen.in_kernel, chosen.why_user_space]

    in_kernel, why = as_user(4713, work)
    assert not in_kernel
    assert "this process lacks CAP_BPF" in why
    assert f"root has not pinned any in {bpffs}/purebpf/filter/4713" in why
    assert "-m purebpf setup pin --user 4713" in why
    with public_bpffs() as closed:
        bpffs = closed
        _, why = as_user(4713, work)
    assert "-m purebpf setup pin --user 4713" in why
    assert as_user(4713, lambda: SampleFilter(parse("comm == a"), WHERE, bpffs=bpffs))[0] == (
        "NotSupportedError"
    )


def test_a_pin_that_fails_leaves_nothing_behind() -> None:
    with public_bpffs() as folder:
        with pytest.raises(KernelError, match="run it as root"):
            raise as_error(as_user(ANN, lambda: pinned_setup.pin(ANN, 1, folder)))
        assert not os.path.exists(f"{folder}/purebpf")
    with pytest.raises(KernelError, match="is not a bpf file system"):
        pinned_setup.pin(ANN, 1, "/tmp")


def as_error(result: tuple[str, str]) -> Exception:
    assert result[0] == "KernelError"
    return KernelError("pin", 1, result[1])
