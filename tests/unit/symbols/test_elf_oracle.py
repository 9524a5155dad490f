"""Every function of real libraries, as readelf lists them."""

from __future__ import annotations

import os
import re
import subprocess
from bisect import bisect_right
from collections import defaultdict
from pathlib import Path

import pytest

from purebpf.symbols.elf_image import ElfImage
from purebpf.symbols.elf_symbols import read_symbols
from purebpf.symbols.frame import VirtualOffset

pytestmark = pytest.mark.slow


_ROW = re.compile(r"^ +\d+: ([0-9a-f]+) +(\w+) (\w+) +\w+ +\w+ +(?!UND|ABS)\w+ (\S+)", re.MULTILINE)


def _mapped() -> list[str]:
    """The C library, the dynamic loader and Python: what runs this test."""
    text = Path("/proc/self/maps").read_text()
    paths = {line.split(maxsplit=5)[-1] for line in text.splitlines() if " r-xp " in line}
    wanted = re.compile(r"/(libc\.so|ld-|libpython3|python3)[^/]*$")
    return sorted(path for path in paths if wanted.search(path))


_LIBRARIES = _mapped()


def _listed(path: str, *, labels: bool = False) -> list[tuple[int, int, str]]:
    """(start, size, name) of the functions in .symtab, or else in .dynsym."""
    command = ["readelf", "-W", "--syms", path]
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    kinds = ("FUNC", "IFUNC", "NOTYPE") if labels else ("FUNC", "IFUNC")
    return sorted(
        (int(start, 16), int(size, 0), name.partition("@")[0])
        for start, size, kind, name in _ROW.findall(out.rpartition("Symbol table '.symtab'")[2])
        if kind in kinds
    )


@pytest.mark.needs("readelf")
@pytest.mark.parametrize("path", _LIBRARIES, ids=os.path.basename)
def test_every_function_of_a_library(path):
    table = read_symbols(ElfImage.of_bytes(Path(path).read_bytes(), path))
    sized = [row for row in _listed(path) if row[1]]
    assert sized, "readelf lists no functions"
    names = defaultdict(list)
    for start, size, name in sized:
        names[start].append((start + size, name))
    starts = sorted(names)
    for start, size, _ in sized:
        for address in {start, start + size // 2, start + size - 1}:
            at = bisect_right(starts, address) - 1
            while all(end <= address for end, _ in names[starts[at]]):
                at -= 1
            expected = {name for end, name in names[starts[at]] if address < end}
            found = table.find(VirtualOffset(address))
            assert found is not None, hex(address)
            assert found[0] in expected, hex(address)
            assert found[1] == address - starts[at]


@pytest.mark.needs("readelf")
@pytest.mark.parametrize("path", _LIBRARIES, ids=os.path.basename)
def test_no_name_between_functions(path):
    image = ElfImage.of_bytes(Path(path).read_bytes(), path)
    table = read_symbols(image)
    text = image.section(".text")
    reach = gaps = 0
    is_open = True  # the last symbol has no size, and reaches up to the next
    for start, size, _ in _listed(path, labels=True):
        if text.address <= reach < start < text.address + text.size and not is_open:
            assert table.find(VirtualOffset(reach)) is None, hex(reach)
            assert table.find(VirtualOffset(start - 1)) is None, hex(start - 1)
            gaps += 1
        is_open = not size and start >= reach
        reach = max(reach, start + size)
    assert gaps or len(table) < 20


@pytest.mark.needs("readelf")
@pytest.mark.parametrize("path", _LIBRARIES, ids=os.path.basename)
def test_the_build_id_is_that_of_readelf(path):
    command = ["readelf", "-n", path]
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    (expected,) = re.findall(r"Build ID: ([0-9a-f]+)", out)
    assert ElfImage.of_bytes(Path(path).read_bytes()).build_id == expected
