"""What binutils sees in the same objects."""

from __future__ import annotations

import re
import subprocess
from io import BytesIO
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from purebpf.elf import read_object
from purebpf.elf.container import ElfObject
from purebpf.spec import ObjectSpec, Relocation, RelocationKind

Place = tuple[str, int, int]
"""A section's name, an offset, a size."""

ROOT = Path(__file__).parents[3]
OBJECTS = sorted(
    path
    for path in (*ROOT.glob("purebpf/objects/*.bpf.o"), *ROOT.glob("tests/data/*.bpf.o"))
    if not path.name.startswith("elf_bad_")
)
pytestmark = [
    pytest.mark.needs("readelf"),
    pytest.mark.filterwarnings("ignore:.*does not relocate:RuntimeWarning"),
]


def readelf(option: str, path: Path) -> str:
    return subprocess.run(
        ["readelf", "-W", option, str(path)], capture_output=True, text=True, check=True
    ).stdout


def sections(path: Path) -> dict[str, str]:
    return dict(re.findall(r"\[ *(\d+)\] (\S+)", readelf("-S", path)))


@pytest.mark.parametrize("path", OBJECTS, ids=lambda p: p.name)
def test_readelf_sees_the_same_functions(path: Path) -> None:
    names = sections(path)
    row = re.compile(r"\d+: (\w+) +(\w+) FUNC +(\w+) +(\w+) +(\d+) (\S+)")
    theirs = set()
    for value, size, binding, visibility, section, name in row.findall(readelf("-s", path)):
        linkage = {"LOCAL": "static", "GLOBAL": "global", "WEAK": "weak"}[binding]
        linkage = "static" if visibility == "HIDDEN" else linkage
        theirs.add((name, names[section], int(value, 16), int(size, 0), linkage))
    ours = {
        (f.name, f.section, f.section_offset, len(f.code), f.linkage)
        for f in read_object(path).functions.values()
    }
    assert ours == theirs


def relocations(path: Path) -> dict[tuple[str, int], str]:
    """The symbol's name of each relocation, by section and offset."""
    row = re.compile(r"^(\w{16}) +\w{16} \S+ +\w{16} +(\S+)$", re.MULTILINE)
    found = {}
    for table in readelf("-r", path).split("\nRelocation section '.rel")[1:]:
        section = table.partition("'")[0]
        found |= {(section, int(offset, 16)): name for offset, name in row.findall(table)}
    return found


def fits(spec: ObjectSpec, ours: Relocation, name: str, places: dict[str, Place]) -> bool:
    """Whether our relocation can be one of the symbol `name`."""
    if ours.kind in {RelocationKind.CALL, RelocationKind.FUNCTION}:
        return name in {ours.target, spec.functions[ours.target].section}
    if ours.target == ".kconfig":
        return spec.variables[name].offset == ours.addend
    if ours.kind is RelocationKind.DATA and name in places:
        section, offset, size = places[name]
        holder = {"arena": ".addr_space.1"}.get(ours.target, ours.target)
        return section == holder and 0 <= ours.addend - offset < size
    return name == ours.target


@pytest.mark.parametrize("path", OBJECTS, ids=lambda p: p.name)
def test_readelf_sees_the_same_references(path: Path) -> None:
    """All of readelf's, each to its symbol; what is left over are calls within a section."""
    spec = read_object(path)
    names = sections(path)
    row = re.compile(r"\d+: (\w+) +(\w+) OBJECT +\w+ +\w+ +(\d+) (\S+)")
    places = {
        name: (names[section], int(value, 16), int(size, 0))
        for value, size, section, name in row.findall(readelf("-s", path))
    }
    theirs = relocations(path)
    for function in spec.functions.values():
        own = {
            offset - function.section_offset: name
            for (section, offset), name in theirs.items()
            if section == function.section
            and 0 <= offset - function.section_offset < len(function.code)
        }
        ours = {relocation.offset: relocation for relocation in function.relocations}
        assert own.keys() <= ours.keys()
        assert all(fits(spec, ours[offset], name, places) for offset, name in own.items())
        for offset in ours.keys() - own.keys():
            assert ours[offset].kind is RelocationKind.CALL
            assert spec.functions[ours[offset].target].section == function.section


@pytest.mark.parametrize("path", OBJECTS, ids=lambda p: p.name)
def test_readelf_sees_the_same_data(path: Path) -> None:
    row = re.compile(r"\] (\.(?:data|rodata|bss)\S*) +(?:PROGBITS|NOBITS) +\w+ \w+ (\w+)")
    theirs = {name: int(size, 16) for name, size in row.findall(readelf("-S", path))}
    ours = {m.section: m.value_size for m in read_object(path).maps.values() if m.section}
    ours.pop(".kconfig", None)  # described by BTF alone
    assert ours == {name: size for name, size in theirs.items() if size}


@pytest.mark.parametrize("path", OBJECTS, ids=lambda p: p.name)
def test_pyelftools_sees_the_same_headers(path: Path) -> None:
    data = path.read_bytes()
    ours = ElfObject(data, path.name)
    theirs = list(ELFFile(BytesIO(data)).iter_sections())
    assert len(ours.sections) == len(theirs)
    for mine, other in zip(ours.sections, theirs, strict=True):
        header = other.header
        assert isinstance(mine.type, int) or mine.type == header.sh_type
        assert mine.name == other.name
        assert mine[3:] == tuple(header[f"sh_{name}"] for name in mine._fields[3:])
