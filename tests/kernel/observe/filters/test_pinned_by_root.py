"""Pinning where users are kept from it, too: root makes slots, uses one, and takes them away."""

from __future__ import annotations

import mmap
import os
import stat

import pytest

from purebpf.abi.perf import perf_event_sample_format as bit
from purebpf.filter import parse
from purebpf.filter.lowering import NoNames, resolve
from purebpf.loader.perf.perf_event import PerfEvent
from purebpf.observe.filters import pinned_setup, pinned_slots
from purebpf.observe.filters.pinned_filter import PinnedFilter
from tests.support.host.users import public_bpffs

pytestmark = pytest.mark.needs("bpf", "bpffs", "perf_event", "vmlinux_btf")

ANN = 4711
PAGES = 40
WHERE = bit.PERF_SAMPLE_TID | bit.PERF_SAMPLE_ADDR | bit.PERF_SAMPLE_IP


def test_unpin_removes_what_pin_made() -> None:
    with public_bpffs() as folder:
        pinned_setup.pin(ANN, 1, folder)
        pinned_setup.pin(ANN, 2, folder)
        assert pinned_slots.users(folder) == (ANN,)
        assert len(pinned_slots.slots(ANN, folder)) == 2
        modes = {
            place: stat.S_IMODE(os.stat(place).st_mode) & 0o777
            for place in (folder, f"{folder}/purebpf/filter", f"{folder}/purebpf/filter/{ANN}")
        }
        assert list(modes.values()) == [0o711, 0o711, 0o711]
        assert pinned_setup.unpin(ANN, folder)
        assert not pinned_setup.unpin(ANN, folder)
        assert not os.path.exists(f"{folder}/purebpf")


@pytest.mark.parametrize(
    ("text", "kept"),
    [("comm != nobody, pid > 0", True), ("comm == nobody", False), ("ip == 0 || addr == 0", False)],
)
def test_a_slot_filters(text: str, kept: bool) -> None:
    terms = resolve(parse(text), WHERE, NoNames())
    with public_bpffs() as folder:
        pinned_setup.pin(os.getuid(), 1, folder)
        with (
            PinnedFilter(terms, os.getuid(), folder) as chosen,
            PerfEvent.sampling(
                period=1, event="page-faults", pid=0, sample_type=WHERE, disabled=1
            ) as event,
        ):
            event.map_ring(16)
            chosen.attach(event)
            event.enable()
            with mmap.mmap(-1, PAGES * mmap.PAGESIZE) as memory:
                for page in range(PAGES):
                    memory[page * mmap.PAGESIZE] = 1
            event.disable()
            passed, *rejected = chosen.counts()
            assert len(list(event.records())) == passed
    assert (passed >= 1) == kept
    assert (sum(rejected) >= 1) != kept
