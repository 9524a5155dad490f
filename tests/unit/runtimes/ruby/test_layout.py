"""The layouts of Ruby, and the file that says which one it has and where its data are."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from purebpf.runtimes.memory import Memory, UnreadableError
from purebpf.runtimes.ruby.contexts import ContextSlot, find_slot, read_context
from purebpf.runtimes.ruby.layout import LAYOUTS
from purebpf.runtimes.ruby.ruby_file import (
    ContextPlace,
    RubyFile,
    calling_functions,
    read_ruby_file,
)
from purebpf.symbols.elf_image import ElfImage
from tests.support.programs import rubies

ROOT = Path(__file__).parents[4]
GOLDEN = sorted((ROOT / "tests/data/ruby").glob("*.json"))
SOURCE = ROOT / "tests/data/ruby/interpreter.c"
BUILDS = {
    "program": "-no-pie -rdynamic",
    "position-independent program": "-pie -fPIE -rdynamic",
    "library": "-shared -fPIC",
    "library with hidden data": "-shared -fPIC -Wl,-Bsymbolic",
    "library for programs": "-shared -fPIC -ftls-model=initial-exec",
    "stripped program": "-no-pie -rdynamic -s",
    "stripped library": "-shared -fPIC -s",
}


def read(path: Path) -> RubyFile:
    """The facts from a file."""
    file = read_ruby_file(ElfImage.of_bytes(path.read_bytes(), str(path)))
    assert file is not None
    return file


def symbols(path: Path) -> dict[str, int]:
    """The addresses of the symbols of a file."""
    line = ["nm", "--defined-only", path]
    text = subprocess.run(line, capture_output=True, text=True, check=True).stdout
    return {name: int(address, 16) for address, _, name in map(str.split, text.splitlines())}


@pytest.mark.parametrize("golden", GOLDEN, ids=lambda path: path.stem)
def test_a_layout_is_that_of_the_headers(golden: Path) -> None:
    expected = json.loads(golden.read_text())
    (layout,) = [each for each in LAYOUTS.values() if each.version == expected["version"]]
    assert {name: getattr(layout, name) for name in expected} == expected
    assert {*layout._fields} - {*expected} == {"embeds_length"}


def test_each_version_has_its_layout() -> None:
    assert len(GOLDEN) == len(LAYOUTS)
    for (major, minor), layout in LAYOUTS.items():
        assert layout.version == 100 * major + minor


@pytest.mark.needs("gcc")
@pytest.mark.parametrize("options", BUILDS.values(), ids=BUILDS)
def test_instructions_lead_to_the_data(tmp_path: Path, options: str) -> None:
    built = tmp_path / "ruby"
    subprocess.run(["gcc", "-O2", *options.split(), "-o", built, SOURCE], check=True)
    file = read(built)
    assert (file.version, file.release) == ((3, 4), "3.4.9")
    assert file.context is not None
    assert file.main is not None
    assert file.main.offset == 0x210
    is_stripped, is_program = "-s" in options.split(), "-rdynamic" in options
    assert (file.context.got == 0) == is_program
    assert file.context.offset == (-8 if is_program else 0)
    assert file.context.is_block == (not is_program and "initial" not in options)
    assert file.symbols
    if not is_stripped:
        places = symbols(built)
        assert file.symbols == places["NAMES"]
        if file.main.loads == 1:
            assert file.main.address == places["ruby_current_vm_ptr"]


def library(ruby: Path) -> Path:
    """The file that has the interpreter."""
    return next(iter(sorted(ruby.parents[2].glob("usr/lib/*/libruby*.so.*"))), ruby)


@pytest.mark.skipif(not rubies.every(), reason="there is no ruby")
@pytest.mark.parametrize("ruby", rubies.params())
def test_a_file_says_its_version_and_where_its_data_are(ruby: Path) -> None:
    file = read(library(ruby))
    assert file.version == rubies.release(ruby)
    assert file.context is not None
    assert file.context.is_block
    assert file.main is not None
    assert file.symbols


def test_other_files_have_no_interpreter() -> None:
    assert read_ruby_file(ElfImage.of_bytes(Path("/bin/true").read_bytes(), "true")) is None


@pytest.mark.needs("gcc")
def test_calls_of_a_function_are_found(tmp_path: Path) -> None:
    built = tmp_path / "ruby"
    source = tmp_path / "calls.c"
    source.write_text(
        "__attribute__((noinline)) int core(int a) { return a * 7 + (a ^ 3); }\n"
        "int execute(int a) { return core(a) + core(a + 1); }\n"
        "int main(int c) { return execute(c); }\n"
    )
    subprocess.run(["gcc", "-O1", "-fno-inline", "-no-pie", "-o", built, source], check=True)
    places = symbols(built)
    calls = calling_functions(ElfImage.of_bytes(built.read_bytes()), places["core"])
    assert len(calls) == 2
    assert all(places["execute"] < at < places["main"] for at in calls)


def memory(words: dict[int, int]) -> Memory:
    """Memory with these words only."""
    return Memory(lambda at, size: words[at].to_bytes(8, "little")[:size] if at in words else b"")


def test_a_context_is_in_the_block_of_its_module() -> None:
    words = {0x100: 3, 0x108: 8, 0x5008: 0x6000, 0x6030: 0x7000, 0x7010: 0x1234}
    slot = find_slot(memory(words), ContextPlace(0x100, True, 8), 0)
    assert slot == ContextSlot(48, 16)
    assert read_context(memory(words), slot, 0x5000) == 0x1234
    with pytest.raises(UnreadableError):
        read_context(memory(words), slot, 0x9000)


def test_a_context_is_beside_the_thread_pointer() -> None:
    words = {0x1100: (1 << 64) - 16, 0x4FF0: 0x1234}
    slot = find_slot(memory(words), ContextPlace(0x100, False, 0), 0x1000)
    assert slot == ContextSlot(0, -16)
    assert read_context(memory(words), slot, 0x5000) == 0x1234
    assert find_slot(memory({}), ContextPlace(0, False, -8), 0) == ContextSlot(0, -8)


@pytest.mark.parametrize(("first", "second"), [(0, 8), (1 << 40, 8), (1, 1 << 40)])
def test_what_the_linker_has_not_filled_in_is_no_place(first: int, second: int) -> None:
    with pytest.raises(UnreadableError):
        find_slot(memory({0x100: first, 0x108: second}), ContextPlace(0x100, True, 0), 0)
