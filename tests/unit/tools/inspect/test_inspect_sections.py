"""The structure of ELF files that `purebpf inspect --sections` shows, against readelf."""

from __future__ import annotations

import io
import re
import subprocess
import sys
from pathlib import Path

import pytest

from purebpf.errors import FormatError
from purebpf.tools.inspect.render_files import elf_lines
from purebpf.tools.inspect.sections import ElfReport, describe_elf

DATA = Path(__file__).parents[3] / "data"
OBJECTS = [DATA / "load_counter.bpf.o", DATA / "elf_big_endian.bpf.o", Path(sys.executable)]
_SECTION = re.compile(r"^ +\[ *(\d+)\] (\S*) +([A-Z_]\S*) +[0-9a-f]+ ([0-9a-f]+) ([0-9a-f]+) ")


def described(path: Path) -> ElfReport:
    with path.open("rb") as file:
        return describe_elf(file, path.name)


def readelf(option: str, path: Path) -> str:
    command = ["readelf", "-W", option, str(path)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@pytest.mark.needs("readelf")
@pytest.mark.parametrize("path", OBJECTS, ids=lambda p: p.name)
def test_readelf_sees_the_same_sections(path: Path) -> None:
    rows = filter(None, map(_SECTION.match, readelf("-S", path).splitlines()))
    theirs = {int(row[1]): (row[2], int(row[4], 16), int(row[5], 16)) for row in rows}
    ours = {each.number: (each.name, each.offset, each.size) for each in described(path).sections}
    assert len(theirs) > 5
    assert theirs.items() <= ours.items()


@pytest.mark.needs("readelf")
@pytest.mark.parametrize("path", OBJECTS[:2], ids=lambda p: p.name)
def test_readelf_sees_the_same_relocations(path: Path) -> None:
    row = re.compile(r"^([0-9a-f]{16})  [0-9a-f]+ +(R_BPF\w+|unrecognized\S*.*?) ", re.MULTILINE)
    theirs = [int(offset, 16) for offset, _ in row.findall(readelf("-r", path))]
    report = described(path)
    assert [each.offset for each in report.relocations] == theirs
    assert sum(each.relocations for each in report.sections) == len(theirs) > 5
    assert all(each.type.startswith("R_BPF_64_") for each in report.relocations)


def test_notes_are_read() -> None:
    notes = described(Path("/proc/self/exe")).notes
    (build_id,) = [each for each in notes if each.type == "NT_GNU_BUILD_ID"]
    assert build_id.owner == "GNU"
    assert len(bytes.fromhex(build_id.value)) == build_id.size


@pytest.mark.needs("gcc")
def test_the_type_of_a_note_is_that_of_its_owner(tmp_path: Path) -> None:
    made = tmp_path / "probes.o"
    subprocess.run(["gcc", "-c", "-o", made, DATA / "usdt_workload.c"], check=True)
    types = {(note.owner, note.type) for note in described(made).notes}
    assert ("stapsdt", "NT_STAPSDT") in types
    go_note = '.section .note.go,"a",@note\n.long 4, 8, 4\n.asciz "Go\\0"\n.ascii "abcdefgh"\n'
    subprocess.run(
        ["gcc", "-c", "-x", "assembler", "-o", made, "-"], input=go_note, text=True, check=True
    )
    assert [(note.owner, note.type) for note in described(made).notes] == [("Go", "0x4")]


def test_the_text_counts_relocations_by_section() -> None:
    text = "".join(elf_lines(described(OBJECTS[0])))
    assert re.search(r"tracepoint/raw_syscalls/sys_enter +PROGBITS +AX .* 6 relocations\n", text)
    assert re.search(r"  e_machine  EM_BPF\n", text)
    assert re.search(r"sys_enter +0x30 +R_BPF_64_64 +target_pid\n", text)


@pytest.mark.parametrize("cut", [0, 3, 60, 64, 1000, 3300])
def test_damaged_files_are_format_errors(cut: int) -> None:
    data = OBJECTS[0].read_bytes()[:cut]
    with pytest.raises(FormatError, match="pyelftools cannot read it"):
        describe_elf(io.BytesIO(data), "x.o")
