"""The table of functions that a stripped Go program keeps."""

from __future__ import annotations

import os
import re
import struct
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from purebpf.symbols import go_table
from purebpf.symbols.elf_image import SHT_RELA, ElfImage, Section
from purebpf.symbols.elf_symbols import read_symbols
from purebpf.symbols.frame import VirtualOffset
from purebpf.symbols.go_table import go_functions
from tests.unit.symbols.symbol_file import symbol_file

_TEXT = 0x1000  # of `symbol_file`
_TABLE, _MODULE = 0x6000, 0x7000
_FUNCTIONS = [(0x40, 0x20, b"runtime.main"), (0x60, 0x30, b"main.(*T).Call[...]")]


def _table(bits=64, order="<", text=_TEXT + 0x100, magic=0xFFFFFFF1):
    """.gopclntab, of functions from `text` on."""
    names = b"\0" + b"".join(name + b"\0" for _, _, name in _FUNCTIONS)
    word = "Q" if bits == 64 else "I"
    size = struct.calcsize(f"=IHBB8{word}")
    rows, known, at = b"", b"", 1
    head = 8 * len(_FUNCTIONS) + 4
    for start, _, name in _FUNCTIONS:
        rows += struct.pack(f"{order}II", start, head + len(known))
        known += struct.pack(f"{order}Ii", start, at)
        at += len(name) + 1
    rows += struct.pack(f"{order}I", _FUNCTIONS[-1][0] + _FUNCTIONS[-1][1])
    words = (len(_FUNCTIONS), 0, text, size, 0, 0, 0, size + len(names))
    header = struct.pack(f"{order}IHBB8{word}", magic, 0, 1, bits // 8, *words)
    return header + names + rows + known


def _image(table, *more, bits=64, order="<", name=".gopclntab"):
    """A stripped file with that table, and (name, type, address, contents) of other sections."""
    data = symbol_file(bits=bits, order=order)
    extra = [(name, 1, _TABLE, table), *more]
    image = ElfImage.of_bytes(data + b"".join(each[3] for each in extra))
    at = len(data)
    for title, kind, address, contents in extra:
        image.sections.append(Section(title, kind, 2, address, at, len(contents), 0, 8, 0))
        at += len(contents)
    return image


_FOUND = [(_TEXT + 0x100 + start, size, name) for start, size, name in _FUNCTIONS]


@pytest.mark.parametrize("name", [".gopclntab", ".data.rel.ro.gopclntab"])
@pytest.mark.parametrize("magic", [0xFFFFFFF0, 0xFFFFFFF1])
@pytest.mark.parametrize(("bits", "order"), [(64, "<"), (64, ">"), (32, "<"), (32, ">")])
def test_functions_of_each_table_version_are_read(bits, order, magic, name):
    table = _table(bits, order, magic=magic)
    assert list(go_functions(_image(table, bits=bits, order=order, name=name))) == _FOUND


def test_they_are_names_of_a_stripped_file():
    table = read_symbols(_image(_table()))
    assert table.find(VirtualOffset(_TEXT + 0x145)) == ("runtime.main", 5)
    assert table.find(VirtualOffset(_TEXT + 0x18F)) == ("main.(*T).Call[...]", 0x2F)
    assert table.find(VirtualOffset(_TEXT + 0x190)) is None


def test_a_start_that_the_dynamic_linker_fills_in():
    rows = [(0x10, 8, 0x1234), (_TABLE + 24, 8, _TEXT + 0x100)]
    relocations = b"".join(struct.pack("<QQq", *row) for row in rows)
    image = _image(_table(text=0), (".rela.dyn", SHT_RELA, 0x8000, relocations))
    assert list(go_functions(image)) == _FOUND


def test_relocations_are_read_up_to_a_bound(monkeypatch):
    row = struct.pack("<QQq", _TABLE + 24, 8, _TEXT + 0x100)
    others = (".rela", SHT_RELA, 0x8000, bytes(24) * 3)
    image = _image(_table(text=0), others, (".rela.dyn", SHT_RELA, 0x9000, row))
    monkeypatch.setattr(go_table, "_MOST_RELOCATIONS", 4)
    assert list(go_functions(image)) == _FOUND
    monkeypatch.setattr(go_table, "_MOST_RELOCATIONS", 3)
    assert list(go_functions(image)) == []


def test_a_start_that_only_the_module_says():
    module = bytes(176) + struct.pack("<Q", _TEXT + 0x100) + bytes(64)
    image = _image(_table(text=0), (".go.module", 1, _MODULE, module))
    assert list(go_functions(image)) == _FOUND
    relocations = struct.pack("<QQq", _MODULE + 176, 8, _TEXT + 0x100)
    moved = (".go.module", 1, _MODULE, bytes(240)), (".rela", SHT_RELA, 0x8000, relocations)
    assert list(go_functions(_image(_table(text=0), *moved))) == _FOUND


@pytest.mark.parametrize("text", [0, 0xFFF, 0x3000, 0x4000])
def test_without_a_start_that_is_code_nothing_is_named(text):
    assert list(go_functions(_image(_table(text=text)))) == []


def test_tables_of_other_versions_and_files_without_one():
    assert list(go_functions(_image(_table(magic=0xFFFFFFFA)))) == []
    assert list(go_functions(_image(b""))) == []
    assert list(go_functions(ElfImage.of_bytes(symbol_file()))) == []


@settings(deadline=None, max_examples=300)
@given(st.data())
def test_a_damaged_table_is_fewer_or_other_names_and_nothing_else(data):
    table = bytearray(_table())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(table) - 1))
        new = data.draw(st.sampled_from([b"\xff" * 8, bytes(8), b"\x7f", b"\xff", b"\x80"]))
        table[at : at + len(new)] = new
    cut = data.draw(st.integers(0, len(table)))
    for start, size, name in go_functions(_image(bytes(table[:cut]))):
        assert size > 0
        assert start >= 0
        assert name
    read_symbols(_image(bytes(table[:cut])))


_PROGRAM = """package main
import "os"
type t struct{}
//go:noinline
func (*t) method(n int) int { return n + len(os.Args) }
func main() { func() { println((&t{}).method(1)) }() }
"""


@pytest.mark.needs("go")
@pytest.mark.parametrize("mode", ["exe", "pie"])
@pytest.mark.slow
def test_the_names_are_those_of_the_symbols_that_were_stripped(tmp_path, mode):
    (tmp_path / "program.go").write_text(_PROGRAM)
    path = tmp_path / "program"
    cache = {**os.environ, "GOCACHE": str(tmp_path / "cache"), "HOME": str(tmp_path)}
    command = ("go", "build", f"-buildmode={mode}", "-o", path, "program.go")
    subprocess.run(command, cwd=tmp_path, env=cache, check=True)
    whole = read_symbols(ElfImage.of_bytes(path.read_bytes()))
    subprocess.run(("strip", path), check=True)
    stripped = ElfImage.of_bytes(path.read_bytes())
    assert stripped.section(".symtab") is None
    functions = list(go_functions(stripped))
    assert {b"main.main", b"main.(*t).method"} <= {name for _, _, name in functions}
    for start, size, name in functions:
        found, offset = whole.find(VirtualOffset(start))
        short = re.sub(r"\[.*\]", "[...]", found).removesuffix(".abi0")
        assert (short, offset) == (name.decode(), 0)
        assert whole.find(VirtualOffset(start + size)) != (found, size)
