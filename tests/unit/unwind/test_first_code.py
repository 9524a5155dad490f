"""The code that the kernel starts, which has no rules where it is assembly: nothing called it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from purebpf.symbols.elf_image import ElfImage
from purebpf.unwind.cfi_file import CfiFile
from purebpf.unwind.machine import X86_64
from purebpf.unwind.packed_rule import Kind, pack_rule
from purebpf.unwind.rows import NO_RULE
from purebpf.unwind.rule import How
from purebpf.unwind.windows import WINDOW_BITS, find_in_block
from tests.unit.unwind.cfi_builder import FRAME, TEXT, Image, Section

FUNCTIONS = ((0, 0x40), (0x80, 0x40), (0x400, 0x40))
"""Where they start, and how long they are."""


def cfi_with_entry(entry: int) -> CfiFile:
    section = Section()
    for start, size in FUNCTIONS:
        section.fde(TEXT + start, size, b"")
    image = Image({".eh_frame": (FRAME, section.data)}, text=0x1000)
    image.entry = entry
    return CfiFile(image)


def kind(cfi: CfiFile, address: int) -> int | None:
    """What the walk in BPF does at an address, by windows and by all rows; None: no rule."""
    by_rows = cfi.rows.rule_id(address)
    block = cfi.window(address >> WINDOW_BITS)
    assert find_in_block(block, address & (1 << WINDOW_BITS) - 1) == by_rows
    if by_rows == NO_RULE:
        return None
    return pack_rule(cfi.table.rules[by_rows], X86_64)[2]


def test_it_is_outermost_up_to_the_next_function() -> None:
    cfi = cfi_with_entry(TEXT + 0x50)
    at = (0x50, 0x7F)
    assert [kind(cfi, TEXT + offset) for offset in at] == [Kind.END] * 2
    for offset in at:
        row = cfi.row(TEXT + offset)
        assert row is not None
        assert row.registers[X86_64.ra][0] is How.UNDEFINED
    assert kind(cfi, TEXT + 0x4F) is None
    assert kind(cfi, TEXT + 0x80) not in {None, Kind.END}
    function = cfi.function(TEXT + 0x60)
    assert function is not None
    assert (function.start, function.end) == (TEXT + 0x50, TEXT + 0x80)


@pytest.mark.parametrize(
    ("entry", "address"),
    [
        (0x20, 0x21),  # it has rules
        (0xD0, 0xD1),  # the next function is far: others without rules may lie between
        (0x500, 0x501),  # there is no next one
        (-TEXT, 0x41),  # a library
        (0x100000, 0x41),
    ],
)
def test_elsewhere_nothing_is_made_up(entry: int, address: int) -> None:
    cfi = cfi_with_entry(TEXT + entry)
    assert kind(cfi, TEXT + address) != Kind.END


def test_of_this_machines_dynamic_linker() -> None:
    path = next(iter(Path("/lib64").glob("ld-linux-x86-64.so.2")), None)
    if path is None or os.uname().machine != "x86_64":
        pytest.skip("this is not glibc's for x86-64")
    cfi = CfiFile(ElfImage.of_bytes(path.read_bytes()))
    image = ElfImage.of_bytes(path.read_bytes())
    assert kind(cfi, image.entry + 8) == Kind.END  # behind its call of _dl_start
