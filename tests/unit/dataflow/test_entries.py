"""Entries, beside those of pyelftools."""

from __future__ import annotations

import io
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from elftools.elf.elffile import ELFFile

from purebpf.dataflow.entries import Entry, Section
from purebpf.dataflow.locations import all_of
from purebpf.dataflow.units import read_ranges

pytestmark = pytest.mark.needs("gcc")

SOURCE = Path(__file__).with_name("golden.c")
CPP = """
#include <map>
#include <string>
#include <vector>
namespace shop { struct Item { std::string name; int count : 3; std::vector<long> prices; }; }
int main(int argc, char **argv) {
  std::map<std::string, shop::Item> items;
  for (int i = 0; i < argc; i++)
    items[argv[i]].prices.push_back(i);
  return items.size() > 100;
}
"""


@pytest.mark.parametrize(
    "flags",
    [
        ("gcc", "-gdwarf-5"),
        ("gcc", "-gdwarf-4"),
        ("gcc", "-gdwarf-5", "-flto"),
        ("g++", "-gdwarf-5"),
        ("clang-19", "-gdwarf-5"),
        ("clang-19", "-gdwarf-4"),
        ("clang++-19", "-gdwarf-5", "-flto=thin", "-fuse-ld=lld"),
    ],
    ids=" ".join,
)
def test_all_entries_are_those_of_pyelftools(flags: tuple[str, ...], tmp_path: Path) -> None:
    compiler, *options = flags
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    source, target = SOURCE, tmp_path / "program"
    if "++" in compiler:
        source = tmp_path / "shop.cpp"
        source.write_text(CPP)
    command = [compiler, "-O2", "-g", *options, "-o", target, source]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
    if done.returncode and "lld" in done.stderr:
        pytest.skip("lld is not installed")
    assert not done.returncode, done.stderr
    dwarf = ELFFile(io.BytesIO(target.read_bytes())).get_dwarf_info()
    section = Section(dwarf)
    units = list(dwarf.iter_CUs())
    assert [unit.start for unit in section.units] == [unit.cu_offset for unit in units]
    seen = 0
    for unit, theirs in zip(section.units, units, strict=True):
        seen += compare(section.entries(unit).top, theirs.get_top_DIE())
    assert seen > 50
    table = dwarf.get_aranges()
    ranges = [] if table is None else [
        (one.begin_addr, one.begin_addr + one.length, one.info_offset)
        for one in table.entries
        if one.length
    ]  # fmt: skip
    ours = [] if table is None else list(read_ranges(all_of(dwarf.debug_aranges_sec)))
    assert sorted(ours) == sorted(ranges)


def compare(ours: Entry, theirs: Any) -> int:
    """Compare an entry and all below it; their number."""
    assert (ours.tag, ours.offset) == (str(theirs.tag), theirs.offset)
    assert {name: plain(value.value) for name, value in ours.attributes.items()} == {
        str(name): plain(value.value) for name, value in theirs.attributes.items()
    }
    seen = 1
    for child, other in zip(ours.iter_children(), theirs.iter_children(), strict=True):
        parent = child.get_parent()
        assert parent is ours
        seen += compare(child, other)
    return seen


def plain(value: Any) -> Any:
    """Bytes of an expression, which pyelftools has as a list."""
    return bytes(value) if isinstance(value, list) else value


def test_the_parent_of_an_entry_that_a_reference_leads_to_is_found(tmp_path: Path) -> None:
    target = tmp_path / "program"
    subprocess.run(["gcc", "-O2", "-g", "-o", target, SOURCE], check=True, timeout=60)
    dwarf = ELFFile(io.BytesIO(target.read_bytes())).get_dwarf_info()
    (unit,) = dwarf.iter_CUs()
    for theirs in unit.iter_DIEs():
        if theirs.tag is not None and theirs.get_parent() is not None:
            section = Section(dwarf)  # nothing is known yet
            (own,) = section.units
            parent = section.entries(own).at(theirs.offset).get_parent()
            assert parent is not None
            assert parent.offset == theirs.get_parent().offset
