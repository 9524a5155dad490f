"""Sorted keys are those that sorting tuples gives, wherever the addresses are."""

from __future__ import annotations

from array import array

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from purebpf.symbols.elf_image import ElfImage
from purebpf.symbols.elf_symbols import read_symbols
from purebpf.symbols.frame import VirtualOffset
from purebpf.symbols.sorted_addresses import ENTRY_BITS, ENTRY_MASK, StartKeys
from purebpf.symbols.table_file import fits
from tests.unit.symbols.symbol_file import Sym, symbol_file

_NEAR = st.integers(0, (1 << 37) - 1)
_ANYWHERE = st.one_of(_NEAR, st.integers(0, (1 << 64) - 1))
_PARTS = st.lists(st.tuples(_ANYWHERE, st.booleans()), max_size=9)


@settings(deadline=None)
@given(st.lists(_PARTS, max_size=4), st.integers(0, ENTRY_MASK - 36))
def test_they_are_the_chosen_ones_in_order(parts, first):
    keys = StartKeys()
    pairs = []
    for part in parts:
        starts = [start for start, _ in part]
        chosen = bytes(is_chosen for _, is_chosen in part)
        keys.add(first, array("Q", starts), chosen)
        pairs += [(start, first + at) for at, start in enumerate(starts) if chosen[at]]
        first += len(part)
    assert len(keys) == len(pairs)
    taken = keys.take_all()
    assert [(key >> ENTRY_BITS, key & ENTRY_MASK) for key in taken] == sorted(pairs)
    assert len(keys) == 0


@settings(deadline=None)
@given(st.lists(_NEAR, max_size=30))
def test_those_of_programs_take_eight_bytes_each(starts):
    keys = StartKeys()
    keys.add(0, array("Q", starts), b"\1" * len(starts))
    assert isinstance(keys.take_all(), array)


@pytest.mark.parametrize("base", [0, (1 << 37) - 0x2000, 1 << 37, 0xFFFFFFFF81000000])
def test_functions_are_named_wherever_a_file_puts_them(base):
    symbols = [Sym("second", base + 0x1020, 0x10), Sym("first", base + 0x1000, 0x20)]
    table = read_symbols(ElfImage.of_bytes(symbol_file(*symbols)))
    assert table.find(VirtualOffset(base + 0x101F)) == ("first", 0x1F)
    assert table.find(VirtualOffset(base + 0x1020)) == ("second", 0)
    assert table.find(VirtualOffset(base + 0x1030)) is None
    assert fits(table) is (base + 0x1020 < 1 << 37)
