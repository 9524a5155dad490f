"""The cost of a look at the anonymous code of a process, whose user decides on its mappings."""

from __future__ import annotations

import os
from errno import EMFILE
from pathlib import Path

import pytest

from purebpf.observe.symbols import copied_text
from purebpf.observe.symbols.copied_text import find_copies
from purebpf.symbols.elf_image import PT_LOAD, ElfImage
from tests.kernel.symbol_programs import compile_program

pytestmark = [pytest.mark.needs("gcc"), pytest.mark.any_kernel]


@pytest.fixture
def text(tmp_path: Path) -> str:
    """The maps of a process where anonymous code lies in the places of 60 files' code."""
    program = compile_program(tmp_path / "program")
    inode, device = program.stat().st_ino, program.stat().st_dev
    segments = ElfImage.of_bytes(program.read_bytes()).segments
    loaded = [segment for segment in segments if segment.type == PT_LOAD]
    where = f"{os.major(device):02x}:{os.minor(device):02x} {inode}"
    lines = []
    for bias in range(1 << 40, (1 << 40) + 60 * (1 << 24), 1 << 24):
        for part in loaded:
            start = bias + part.address & -4096
            end = bias + part.address + part.file_size + 4095 & -4096
            offset = part.offset & -4096
            is_code = part.flags & 1
            rest = "r-xp 00000000 00:00 0" if is_code else f"r--p {offset:08x} {where} {program}"
            lines.append(f"{start:x}-{end:x} {rest}\n")
    return "".join(lines)


def test_a_look_compares_48_parts_and_holds_few_files(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared, held = [], []

    def compare(part: object, *_: object) -> bool:
        compared.append(part)
        held.append(len(os.listdir("/proc/self/fd")))
        return False

    monkeypatch.setattr(copied_text, "_is_copy", compare)
    before = len(os.listdir("/proc/self/fd"))
    copies = find_copies(os.getpid(), text)
    assert copies.is_cut
    assert not copies.is_sure
    assert len(compared) == 48
    assert max(held) <= before + 3
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_look_without_a_descriptor_is_not_sure(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> int:
        raise OSError(EMFILE, os.strerror(EMFILE))

    few = "".join(text.splitlines(keepends=True)[:6])
    assert not find_copies(os.getpid(), few).is_cut
    monkeypatch.setattr(copied_text, "open_mapped", fail)
    assert find_copies(os.getpid(), few) == ([], False, True)
