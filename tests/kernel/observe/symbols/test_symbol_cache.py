"""Tables that outlive their command: used again, never trusted too much, and never needed."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from purebpf.files import cache_files
from purebpf.observe.symbols import symbol_cache
from purebpf.observe.symbols.symbol_cache import SymbolCache
from purebpf.observe.symbols.symbolizer import Symbolizer
from purebpf.symbols import elf_symbols
from purebpf.symbols.elf_image import ElfImage
from purebpf.symbols.elf_symbols import read_symbols
from purebpf.symbols.symbol_table import SymbolTable
from tests.kernel.symbol_programs import SOURCE, Running, compile_program, running
from tests.unit.symbols.symbol_file import Sym, symbol_file

_MANY = r"""
__asm__(".macro one\n.type f\\@, @function\nf\\@: nop\n.size f\\@, 1\n.endm\n"
        ".rept 10000\none\n.endr");
"""


@pytest.fixture
def home(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "purebpf" / "symbols"


@pytest.fixture
def program(tmp_path, home):
    path = compile_program(tmp_path / "program", "-Wl,--build-id=sha1", source=_MANY + SOURCE)
    with running(path) as child:
        yield child


def _named(child: Running, symbolizer: Symbolizer | None = None, past: int = 0) -> list[str]:
    addresses = [address + past for address in child.functions.values()]
    found = (symbolizer or Symbolizer()).user(child.pid, addresses)
    return [getattr(each, "name", each) for each in found]


_EXPECTED = ["local_function", "global_function", "main"]


@pytest.mark.needs("gcc")
def test_a_table_is_kept_and_used_without_reading_the_symbols_again(program, home, monkeypatch):
    assert _named(program) == _EXPECTED
    (kept,) = home.iterdir()
    assert kept.stat().st_mode & 0o777 == 0o600
    monkeypatch.delattr(elf_symbols, "read_symbols")
    assert _named(program) == _EXPECTED


@pytest.mark.needs("gcc")
@pytest.mark.parametrize(("functions", "tables"), [("1100", 1), ("100", 0)])
def test_a_table_is_kept_from_a_thousand_functions_on(tmp_path, home, functions, tables):
    source = _MANY.replace("10000", functions) + SOURCE
    with running(compile_program(tmp_path / "program", source=source)) as child:
        assert _named(child) == _EXPECTED
    assert len([*home.iterdir()] if home.exists() else []) == tables


@pytest.mark.needs("gcc")
@pytest.mark.parametrize("content", [b"", b"nonsense" * 100, None])
def test_a_file_that_is_not_a_table_is_ignored_and_written_again(program, home, content):
    _named(program)
    (kept,) = home.iterdir()
    whole = kept.read_bytes()
    kept.write_bytes(whole[:-1] if content is None else content)
    assert _named(program) == _EXPECTED
    assert kept.read_bytes() == whole


@pytest.mark.needs("gcc")
def test_a_table_that_vanishes_during_a_read_is_read_again(program, home, monkeypatch):
    monkeypatch.setattr(symbol_cache, "_LIMIT", 1 << 30)
    symbolizer = Symbolizer()
    assert _named(program, symbolizer) == _EXPECTED
    (kept,) = home.iterdir()
    kept.unlink()
    address = program.functions["main"] - 5000
    (found,) = symbolizer.user(program.pid, [address])
    (expected,) = Symbolizer().user(program.pid, [address])
    assert found == expected
    assert found.name.startswith("f")


@pytest.mark.needs("gcc")
def test_in_a_batch_a_table_is_opened_once(program, home, monkeypatch):
    assert _named(program) == _EXPECTED
    opened = []
    whole = cache_files.open_regular
    monkeypatch.setattr(
        cache_files, "open_regular", lambda *given, **how: opened.append(1) or whole(*given, **how)
    )
    symbolizer = Symbolizer()
    before = len(os.listdir("/proc/self/fd"))
    with symbolizer.batch():
        assert _named(program, symbolizer) == _EXPECTED
        assert len(opened) == 2  # to see if it is there, and for all that is read of it
        assert len(os.listdir("/proc/self/fd")) == before + 1
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.needs("gcc")
def test_a_directory_where_others_may_write_is_not_used(program, home):
    _named(program)
    (kept,) = home.iterdir()
    before = kept.stat()
    home.chmod(0o777)
    kept.write_bytes(b"")
    assert _named(program) == _EXPECTED
    assert kept.stat().st_size == 0
    home.chmod(0o700)
    kept.chmod(0o666)
    assert SymbolCache().load(kept.name) is None
    assert before.st_size


@pytest.mark.needs("gcc")
def test_a_home_of_another_user_is_left_alone(program, home, monkeypatch):
    home.parents[1].mkdir()
    own = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: own + 1)
    assert _named(program) == _EXPECTED
    assert not list(home.parents[1].iterdir())
    monkeypatch.setattr(os, "geteuid", lambda: own)
    assert _named(program) == _EXPECTED
    (kept,) = home.iterdir()
    assert SymbolCache().load(kept.name) is not None
    monkeypatch.setattr(os, "geteuid", lambda: own + 1)
    assert SymbolCache().load(kept.name) is None


@pytest.mark.needs("gcc")
def test_a_place_that_cannot_be_written_changes_nothing(program, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null")
    assert _named(program) == _EXPECTED


def _table(count: int = 9000) -> SymbolTable:
    symbols = (Sym(f"f{at}", 0x1000 + at, 1) for at in range(count))
    return read_symbols(ElfImage.of_bytes(symbol_file(*symbols)))


def test_the_table_used_longest_ago_goes_first(tmp_path):
    table = _table()
    cache = SymbolCache(str(tmp_path / "symbols"), limit=table.nbytes * 5 // 2)
    for key in ("one", "two"):
        cache.keep(key, table)
    os.utime(tmp_path / "symbols" / "one", (1, 1))
    os.utime(tmp_path / "symbols" / "two", (2, 2))
    assert cache.load("one") is not None  # which makes it the newest
    cache.keep("three", table)
    assert sorted(os.listdir(tmp_path / "symbols")) == ["one", "three"]


def test_a_table_that_is_too_large_or_not_worth_it_is_not_kept(tmp_path):
    table, small = _table(), _table(100)
    cache = SymbolCache(str(tmp_path), limit=table.nbytes)
    cache.keep("large", table)
    SymbolCache(str(tmp_path)).keep("small", small)
    assert not os.listdir(tmp_path)


def test_a_full_disk_leaves_nothing_behind(tmp_path, monkeypatch):
    def full(_table: object):
        yield b"half of it"
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(symbol_cache, "pieces", full)
    table = _table()
    SymbolCache(str(tmp_path)).keep("key", table)
    assert not os.listdir(tmp_path)


@pytest.mark.needs("gcc")
def test_between_windows_a_table_is_left_in_its_file(program, home):
    symbolizer = Symbolizer()
    assert _named(program, symbolizer) == _EXPECTED

    def memory() -> int:
        return sum(functions.table.nbytes for functions in symbolizer._files._tables.values())

    whole = memory()
    assert whole > 10_000 * 21
    symbolizer.forget_but(())
    assert memory() < whole / 50
    assert _named(program, symbolizer) == _EXPECTED
    assert memory() < whole / 50  # names stay
    assert _named(program, symbolizer, past=1) == _EXPECTED
    assert memory() > whole / 50
    symbolizer.forget_but(())
    assert memory() < whole / 50
    assert _named(program, symbolizer) == _EXPECTED


@pytest.mark.needs("gcc")
def test_what_a_stripped_file_exports_is_kept_apart(tmp_path, home, monkeypatch):
    flags = ("-Wl,--build-id=sha1", "-rdynamic")
    source = _MANY.replace(".type", ".globl f\\\\@\\n.type") + SOURCE
    path = compile_program(tmp_path / "program", *flags, source=source)
    subprocess.run(["objcopy", "--strip-all", path, path.with_suffix(".stripped")], check=True)
    stripped = path.with_suffix(".stripped")
    with running(stripped) as child:
        assert _named(child)[1:] == _EXPECTED[1:]
        (kept,) = home.iterdir()
        assert kept.name.endswith("-exported")
        with monkeypatch.context() as patch:
            patch.delattr(elf_symbols, "read_symbols")
            assert _named(child)[1:] == _EXPECTED[1:]
    with running(path) as child:  # the whole file has the same build id
        assert _named(child) == _EXPECTED
