"""A process's root directory says what that process runs, and nothing of what others run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from purebpf.files.held_files import HeldFiles
from purebpf.observe.symbols import mapped_files
from purebpf.observe.symbols.elf_files import ElfFiles, ElfFunctions
from purebpf.observe.symbols.function_starts import FunctionStarts
from purebpf.observe.unwind.code_files import CodeFiles
from purebpf.symbols.budget import Budget
from purebpf.symbols.elf_image import PT_LOAD, ElfImage
from purebpf.symbols.frame import Address, FileOffset, VirtualOffset
from purebpf.symbols.proc_maps import MappedFile, Mapping
from tests.kernel.symbol_programs import compile_program

pytestmark = [pytest.mark.needs("gcc"), pytest.mark.any_kernel]

BOB, OTHER = 4711, 4712
REAL, FAKE = "local_function", "hostile_function"


@pytest.fixture
def mapping(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Mapping:
    """Of a program. In the root directory of BOB there is another one in its place.

    Users may mount a file of any path and inode over the real one, in a namespace of theirs.
    """
    real = compile_program(tmp_path / "real")
    fake = compile_program(tmp_path / "fake", f"-D{REAL}={FAKE}")
    segments = ElfImage.of_bytes(real.read_bytes()).segments
    (code,) = (part for part in segments if part.type == PT_LOAD and part.flags & 1)
    file = MappedFile(str(tmp_path / "as mapped"), 8, 1, real.stat().st_ino)
    start = Address(0x4000_0000)
    mapping = Mapping(start, Address(start + code.file_size), FileOffset(code.offset), file)

    def places(_: Mapping, pids: tuple[int, ...], *_held: object) -> list[tuple[str, object]]:
        in_root = fake if pids[0] == BOB else real
        return [(str(in_root), mapped_files.Trust.ROOT)]

    monkeypatch.setattr(mapped_files, "places", places)
    monkeypatch.setattr(mapped_files, "is_mapped_one", lambda *_, **__: True)
    return mapping


def test_it_names_nothing_for_the_next_process(mapping: Mapping) -> None:
    files = ElfFiles()
    for _ in range(2):
        names = {}
        for pid in (BOB, OTHER):
            functions = files.functions(mapping, (pid,))
            assert isinstance(functions, ElfFunctions)
            entries = map(functions.table.find, map(VirtualOffset, range(0x1000, 0x3000, 2)))
            names[pid] = {entry[0] for entry in entries if entry} & {REAL, FAKE}
        assert names == {BOB: {FAKE}, OTHER: {REAL}}


def test_it_unwinds_nothing_of_the_next_process(mapping: Mapping) -> None:
    files = CodeFiles()
    try:
        keys = {pid: files.mapping(mapping, pid).file for pid in (BOB, OTHER)}
        assert keys[BOB] is not None
        assert keys[BOB] != keys[OTHER]
        assert keys == {pid: files.mapping(mapping, pid).file for pid in (BOB, OTHER)}
        held = {pid: files.held(mapping, pid) for pid in (BOB, OTHER, OTHER + 1)}
        assert held[OTHER + 1] is None
        assert {held[BOB], held[OTHER]}.isdisjoint({None})
        assert os.fstat(held[BOB]).st_ino != os.fstat(held[OTHER]).st_ino
    finally:
        files.close()


def test_it_says_no_function_of_the_next_process(mapping: Mapping) -> None:
    starts = FunctionStarts(Budget(), HeldFiles())
    where = FileOffset(mapping.offset + 0x100)
    for pid in (BOB, OTHER):
        starts.find(mapping, (pid,), where)
    assert {pid for pid, _ in starts._identities} == {BOB, OTHER}
    assert len(set(starts._identities.values())) == 2
