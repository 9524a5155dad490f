"""Slots with a fault are shown, not used and repaired; what a slot lost is counted."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import mmap
import os
import random
import signal
import time
from collections.abc import Callable, Iterator

import pytest

from purebpf import objects
from purebpf.abi.bpf import bpf_map_type
from purebpf.abi.perf import perf_event_sample_format as bit
from purebpf.errors import KernelError, NotSupportedError
from purebpf.filter import parse
from purebpf.filter.lowering import NoNames, resolve
from purebpf.loader.host import pins
from purebpf.loader.perf.perf_event import PerfEvent
from purebpf.observe.filters import pinned_setup, pinned_slots
from purebpf.observe.filters.pinned_filter import PinnedFilter
from purebpf.syscall import bpf, proc
from purebpf.syscall.backend import replaced
from tests.support.host.attackers import begun, doing, whole_slots
from tests.support.host.backends import Call, Interposer
from tests.support.host.users import public_bpffs

pytestmark = pytest.mark.needs("bpf", "bpffs", "perf_event", "vmlinux_btf")

ANN, BOB = 4711, 4712
WHERE = bit.PERF_SAMPLE_IP | bit.PERF_SAMPLE_TID | bit.PERF_SAMPLE_ADDR
TABLE_SIZE = 128 * 24


@pytest.fixture
def bpffs() -> Iterator[str]:
    """A slot each for Ann and Bob."""
    with public_bpffs() as folder:
        pinned_setup.pin(ANN, 1, folder)
        pinned_setup.pin(BOB, 1, folder)
        yield folder


def test_names_that_are_almost_numbers(bpffs: str) -> None:
    """One of them was enough to stop `status` and `unpin` for everybody."""
    folder = f"{bpffs}/purebpf/filter/{ANN}"
    for place in (folder, f"{bpffs}/purebpf/filter"):
        for name in ("٣", "007", "+2", " 3", "99999999999", "x", "²"):
            os.mkdir(f"{place}/{name}")
    os.symlink("/", f"{folder}/4")
    os.symlink("nowhere", f"{folder}/5")
    os.mkdir(f"{folder}/6", 0o700)
    with pins.open_map(f"{folder}/0/table") as table:
        bpf.obj_pin(table.fileno(), f"{folder}/7")
        bpf.obj_pin(table.fileno(), f"{bpffs}/purebpf/filter/4710")
    os.symlink("/etc", f"{bpffs}/purebpf/filter/4709")
    assert pinned_slots.users(bpffs) == (4709, 4710, ANN, BOB)
    numbers = {each.number: bool(each.faults) for each in pinned_slots.slots(ANN, bpffs)}
    assert numbers == {0: False, 4: True, 5: True, 6: True, 7: True}
    assert whole_slots(bpffs, ANN, BOB)[1] == [True]
    pinned_setup.pin(ANN, 2, bpffs)
    assert whole_slots(bpffs, ANN, BOB)[0] == [True] * 6
    for uid in (4709, 4710, ANN):
        pinned_setup.unpin(uid, bpffs)
    assert pinned_slots.users(bpffs) == (BOB,)
    assert os.path.isdir("/etc")


def _freeze(path: str) -> None:
    with pins.open_map(path) as found:
        bpf.map_freeze(found.fileno())


def _replace(path: str) -> None:
    os.unlink(path)
    with bpf.map_create(bpf_map_type.BPF_MAP_TYPE_ARRAY, 4, 4096, 1) as other:
        bpf.obj_pin(other.fileno(), path)
    os.chown(path, ANN, -1)
    os.chmod(path, 0o600)


FAULTS: dict[str, tuple[Callable[[str], None], str]] = {
    "gone": (lambda slot: os.unlink(f"{slot}/lease"), "lease: it does not exist"),
    "no program": (lambda slot: os.unlink(f"{slot}/program"), "program: it does not exist"),
    "of another user": (lambda slot: os.chown(f"{slot}/table", BOB, -1), "belongs to UID 4712"),
    "open to others": (lambda slot: os.chmod(f"{slot}/table", 0o666), "has mode 0666, not 0600"),
    "another map": (lambda slot: _replace(f"{slot}/counts"), "counts: it is another map"),
    "no map": (
        lambda slot: (os.unlink(f"{slot}/lease"), os.rename(f"{slot}/program", f"{slot}/lease"))[0],
        "lease: it is a bpf-prog",
    ),
    "frozen": (lambda slot: _freeze(f"{slot}/table"), "table: it is frozen"),
    "a directory": (
        lambda slot: (os.unlink(f"{slot}/table"), os.mkdir(f"{slot}/table"))[0],
        "table: it is not a pin",
    ),
    "unfinished": (lambda slot: os.chmod(slot, 0o700), "an interrupted `pin` leaves it so"),
}


@pytest.mark.parametrize("kind", FAULTS)
def test_a_broken_slot_is_shown_not_used_and_repaired(bpffs: str, kind: str) -> None:
    break_it, words = FAULTS[kind]
    break_it(f"{bpffs}/purebpf/filter/{ANN}/0")
    (slot,) = pinned_slots.slots(ANN, bpffs)
    assert any(words in fault for fault in slot.faults), slot
    terms = resolve(parse("pid > 1"), WHERE, NoNames())
    with pytest.raises(NotSupportedError, match=r"slot 0 in .* is not usable .*repair it: .* pin"):
        PinnedFilter(terms, ANN, bpffs)
    pinned_setup.pin(ANN, 1, bpffs)
    (slot,) = pinned_slots.slots(ANN, bpffs)
    assert slot.faults == ()
    with PinnedFilter(terms, ANN, bpffs) as chosen:
        assert chosen.number == 0
    assert pinned_setup.unpin(ANN, bpffs) == 1


def test_a_pin_that_is_killed_is_repaired_by_the_next() -> None:
    rng = random.Random(18)
    with public_bpffs() as folder:
        begun_at = time.monotonic()
        pinned_setup.pin(ANN, 2, folder)
        duration = time.monotonic() - begun_at
        pinned_setup.unpin(ANN, folder)
        for _ in range(12):
            child = os.fork()
            if child == 0:
                with contextlib.suppress(BaseException):
                    pinned_setup.pin(ANN, 2, folder)
                os._exit(0)
            time.sleep(rng.uniform(0, 1.2 * duration))
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            for slot in pinned_slots.slots(ANN, folder):
                assert slot.taken is False
            if rng.random() < 0.5:
                pinned_setup.pin(ANN, 2, folder)
                assert [each.faults for each in pinned_slots.slots(ANN, folder)] == [(), ()]
            pinned_setup.unpin(ANN, folder)
            assert pinned_slots.users(folder) == ()


@pytest.mark.needs("pinned_by_users")
def test_a_lease_is_believed_only_as_far_as_it_is_the_user_s_process(bpffs: str) -> None:
    """The user writes what he likes there: root's status shows no process of others as his."""

    def claim(pid: int) -> Callable[[], None]:
        def work() -> None:
            slot = f"{bpffs}/purebpf/filter/{ANN}/0"
            held = os.open(f"{slot}/lease", os.O_RDONLY)
            fcntl.flock(held, fcntl.LOCK_EX)
            start = proc.start_ticks(pid) or 0
            value = pinned_slots.LEASE.pack(start, pid, 1)
            with pins.open_map(f"{slot}/lease") as lease:
                bpf.map_update_elem(lease.fileno(), pinned_slots.FIRST, value)
            begun()
            signal.pause()

        return work

    for pid in (1, 0xFFFFFFFF):
        with doing(ANN, claim(pid)):
            (slot,) = pinned_slots.slots(ANN, bpffs)
            assert (slot.taken, slot.pid, slot.command) == (True, pid, "")


def test_samples_that_a_table_of_zeros_drops_are_counted(bpffs: str) -> None:
    """295 samples were due, 204 came, and nothing said that the rest was lost."""
    pages = 40
    pinned_setup.pin(0, 1, bpffs)
    terms = resolve(parse("pid > 0"), WHERE, NoNames())
    with (
        PinnedFilter(terms, 0, bpffs) as chosen,
        PerfEvent.sampling(
            period=1, event="page-faults", pid=0, sample_type=WHERE, disabled=1
        ) as event,
    ):
        event.map_ring(16)
        chosen.attach(event)
        path = f"{bpffs}/purebpf/filter/0/{chosen.number}/table"
        with pins.open_map(path) as table:
            bpf.map_update_elem(table.fileno(), pinned_slots.FIRST, bytes(TABLE_SIZE))
        event.enable()
        with mmap.mmap(-1, pages * mmap.PAGESIZE) as memory:
            for page in range(pages):
                memory[page * mmap.PAGESIZE] = 1
        event.disable()
        assert chosen.counts() == (0, 0)
        assert chosen.undecided() >= pages
        assert list(event.records()) == []


def test_the_shapes_of_a_slot_s_maps_are_those_of_the_object() -> None:
    maps = objects.spec("filter_pinned").maps
    shapes = {
        name: (each.type, each.key_size, each.value_size, each.max_entries)
        for name, each in maps.items()
        if name in pinned_slots.FILES
    }
    assert shapes == pinned_slots.MAPS


@pytest.mark.parametrize("nth", range(1, 6))
def test_a_pin_that_the_kernel_refuses_half_way_leaves_nothing(nth: int) -> None:
    """Each file of the first slot, and the first of the second one."""
    pins_made = []

    def decide(call: Call) -> int | None:
        if call.command == "BPF_OBJ_PIN":
            pins_made.append(call.number)
            return errno.ENOMEM if len(pins_made) == nth else None
        return None

    with public_bpffs() as folder:
        with replaced(Interposer(decide)), pytest.raises(KernelError, match="ENOMEM"):
            pinned_setup.pin(ANN, 2, folder)
        assert len(pins_made) == nth
        assert "purebpf" not in os.listdir(folder)
        pinned_setup.pin(ANN, 2, folder)
        assert whole_slots(folder, ANN) == [[True, True]]
