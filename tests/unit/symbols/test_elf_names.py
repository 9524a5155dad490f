"""Functions of an ELF file by name, against readelf."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from purebpf.symbols.elf_image import ElfImage
from purebpf.symbols.elf_names import functions_named, variables

LIBC = Path(f"/usr/lib/{os.uname().machine}-linux-gnu/libc.so.6")
SOURCE = """
static int twice(int x) { return 2 * x; }
int (*held)(int) = twice;
int thrice(int x) { return held(x) + x; }
int weakly(int x) __attribute__((weak));
int weakly(int x) { return x; }
int data = 7;
int main(void) { return thrice(data) + weakly(1); }
"""
OTHER = "static int weakly(int x) { return x + 1; }\nint (*kept)(int) = weakly;\n"


def readelf(option: str, path: Path) -> str:
    command = ["readelf", option, "--wide", str(path)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def expected(path: Path) -> dict[str, set[int]]:
    """The file offsets of each function's name, from readelf's symbols and program headers."""
    load = re.compile(r"^  LOAD +(0x\w+) (0x\w+) 0x\w+ (0x\w+)", re.MULTILINE)
    loads = [[int(field, 16) for field in row] for row in load.findall(readelf("-l", path))]
    row = re.compile(r"^ +\d+: (\w+) +\w+ I?FUNC +\w+ +\w+ +\d+ ([^@\s]+)", re.MULTILINE)
    found: dict[str, set[int]] = {}
    for value, name in row.findall(readelf("-s", path)):
        address = int(value, 16)
        for offset, start, size in loads:
            if start <= address < start + size:
                found.setdefault(name, set()).add(address - start + offset)
    return found


def ours(path: Path) -> dict[str, int]:
    return dict(functions_named(ElfImage.of_bytes(path.read_bytes()), lambda _name: True))


@pytest.mark.needs("readelf")
@pytest.mark.parametrize(
    "path", [LIBC, Path(os.path.realpath(sys.executable))], ids=lambda p: p.name
)
def test_readelf_finds_the_same_functions_at_the_same_places(path: Path) -> None:
    if not path.exists():
        pytest.skip(f"no {path}")
    theirs, found = expected(path), ours(path)
    assert set(found) == set(theirs)
    assert len(found) > 5
    assert all(offset in theirs[name] for name, offset in found.items())


@pytest.mark.needs("gcc", "readelf")
@pytest.mark.parametrize("options", [(), ("-no-pie",), ("-Wl,-z,max-page-size=0x200000",)])
def test_static_functions_are_found_and_global_ones_win(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    first, second, program = tmp_path / "a.c", tmp_path / "b.c", tmp_path / "program"
    first.write_text(SOURCE)
    second.write_text(OTHER)
    command = ["gcc", "-g", *options, "-o", str(program), str(second), str(first)]
    subprocess.run(command, check=True)
    found, theirs = ours(program), expected(program)
    assert {"twice", "thrice", "weakly", "main"} <= set(found)
    assert "data" not in found
    assert {found["twice"]} == theirs["twice"]
    assert len(theirs["weakly"]) == 2
    weak = re.search(r"(\w+) +\d+ FUNC +WEAK +\w+ +\d+ weakly", readelf("-s", program))
    assert weak is not None
    assert found["weakly"] & 0xFFF == int(weak[1], 16) & 0xFFF


@pytest.mark.needs("readelf")
def test_readelf_finds_the_same_variables() -> None:
    if not LIBC.exists():
        pytest.skip(f"no {LIBC}")
    row = re.compile(r"^ +\d+: (\w+) +([1-9]\w*) OBJECT +\w+ +\w+ +\d+ ([^@\s]+)", re.MULTILINE)
    theirs: dict[tuple[int, int], set[str]] = {}
    for address, size, name in row.findall(readelf("-s", LIBC)):
        theirs.setdefault((int(address, 16), int(size, 0)), set()).add(name)
    ours = variables(ElfImage.of_bytes(LIBC.read_bytes()))
    assert len(ours) > 100
    assert all(name in theirs[address, size] for address, size, name in ours)
    assert {one.address for one in ours} == {address for address, _ in theirs}
    assert ours == sorted(ours)


def test_a_file_without_symbols_has_no_functions(tmp_path: Path) -> None:
    data = bytearray(LIBC.read_bytes()[:64]) if LIBC.exists() else bytearray()
    if not data:
        pytest.skip(f"no {LIBC}")
    data[32:48] = bytes(16)  # e_phoff, e_shoff
    data[56:64] = bytes(8)  # and how many there are
    assert functions_named(ElfImage.of_bytes(bytes(data)), lambda _name: True) == {}
    assert variables(ElfImage.of_bytes(bytes(data))) == []
