"""A process's root directory says what that process runs, and nothing of what others run."""

from __future__ import annotations

from pathlib import Path

import pytest

from purebpf.kernel.symbolize import elf_files
from purebpf.kernel.symbolize.elf_files import ElfFiles, ElfFunctions
from purebpf.symbols.frame import Address, FileOffset, VirtualOffset
from purebpf.symbols.proc_maps import MappedFile, Mapping
from tests.kernel.symbol_programs import compile_program

pytestmark = [pytest.mark.needs("gcc"), pytest.mark.any_kernel]

BOB, OTHER = 4711, 4712
REAL, FAKE = "local_function", "hostile_function"


def test_a_file_in_the_root_of_one_process_names_nothing_for_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Users may mount a file of any path and inode over the real one, in a namespace of theirs."""
    real = compile_program(tmp_path / "real")
    fake = compile_program(tmp_path / "fake", f"-D{REAL}={FAKE}")
    status = real.stat()
    file = MappedFile(str(real), 8, 1, status.st_ino)
    mapping = Mapping(Address(0x1000), Address(0x2000), FileOffset(0), file)

    def places(_: Mapping, pids: tuple[int, ...]) -> list[tuple[str, object]]:
        in_root = fake if pids[0] == BOB else real
        return [(str(in_root), elf_files._Trust.ROOT)]

    monkeypatch.setattr(elf_files, "_places", places)
    monkeypatch.setattr(elf_files, "_is_mapped_one", lambda *_: True)
    files = ElfFiles()
    for _ in range(2):
        names = {}
        for pid in (BOB, OTHER):
            functions = files.functions(mapping, (pid,))
            assert isinstance(functions, ElfFunctions)
            entries = map(functions.table.find, map(VirtualOffset, range(0x1000, 0x3000, 2)))
            names[pid] = {entry[0] for entry in entries if entry} & {REAL, FAKE}
        assert names == {BOB: {FAKE}, OTHER: {REAL}}
