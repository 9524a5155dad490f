"""Tables are built in slices, between which rings are read."""

from __future__ import annotations

import time

import pytest

from purebpf import objects
from purebpf.loader.load.load import load
from purebpf.observe.unwind.process_stacks import ProcessStacks
from purebpf.observe.unwind.table_filler import TableFiller
from purebpf.symbols.budget import PROCESS, Allowance, Budget
from purebpf.unwind.address_space import AddressSpace, CodeMapping
from tests.support.host.faults import slow_host
from tests.unit.unwind.cfi_builder import TEXT, Section, advance, cfa_offset

pytestmark = pytest.mark.needs("bpf", "task_pt_regs", "vmlinux_btf", "x86_64")

_BASE = 1 << 20


def _large(functions=12_000):
    """A file that takes much longer than a slice, and is small enough to be read whole."""
    section = Section()
    for n in range(functions):
        section.fde(TEXT + 16 * n, 16, advance(1 + n % 3) + cfa_offset(16 + 8 * (n % 60)))
    return section.cfi(text=16 * functions)


class _Stacks(ProcessStacks):
    """Knows one process with one file."""

    def __init__(self, cfi, **options):
        super().__init__(**options)
        self._cfi = cfi
        self._space = AddressSpace([CodeMapping(_BASE, _BASE + (1 << 20), _BASE - TEXT, "file")])

    def space(self, tgid):
        return self._space

    def file(self, key):
        return self._cfi


def _ask(filler, address=_BASE):
    filler.check_identity(1, 77)
    filler.publish(1, 1, 77, [address])


def test_a_large_file_takes_many_slices():
    cfi = _large()
    assert cfi.is_small
    spec = objects.spec("stack_walk").only("walk_sampled")
    with load(spec) as loaded, _Stacks(cfi) as stacks, TableFiller(loaded.maps, stacks) as filler:
        _ask(filler)
        slices = []
        more = True
        while more:
            begun = time.thread_time()
            more = filler.work()
            slices.append(time.thread_time() - begun)
            _ask(filler)  # asking again does not begin anew
        assert len(slices) > 3
        assert sorted(slices)[len(slices) // 2] < (0.6 if slow_host() else 0.015)
        assert max(slices) < (1.0 if slow_host() else 0.1)
        assert filler.tables.rows > 12_000
        assert filler.tables.full == 0
        assert filler.work() is False


def test_one_that_takes_too_much_is_given_up():
    budget = Budget({PROCESS: Allowance(1 << 30, 0.004)})
    spec = objects.spec("stack_walk").only("walk_sampled")
    with (
        load(spec) as loaded,
        _Stacks(_large(), budget=budget) as stacks,
        TableFiller(loaded.maps, stacks) as filler,
    ):
        _ask(filler)
        for _ in range(50):
            if not filler.work():
                break
            _ask(filler)
        assert filler.work() is False
        assert filler.tables.rows == 0
        assert budget.exceeded
