"""Uprobes at functions that a stripped file does not name itself, and at those of other files."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import purebpf
from purebpf import asm
from purebpf.loader.attach._common.probe_place import find_places
from purebpf.loader.host import debug_files
from tests.kernel.symbol_programs import compile_program

CALLS = 7
SOURCE = """
#include <stdlib.h>
__attribute__((noipa)) static int hidden(int number) { return number * 3; }
int main(void) {
  int sum = 0;
  for (int i = 0; i < 7; i++)
    sum += hidden(i);
  return !malloc(sum);
}
"""
GO = """package main

//go:noinline
func target(n int) int { return n * 3 }

func main() {
	sum := 0
	for i := 0; i < 7; i++ {
		sum += target(i)
	}
	if sum == 0 {
		println(sum)
	}
}
"""


def counted(target: str, command: Path) -> int:
    """How many times `target` is entered while `command` runs."""
    code = asm.Program("on_call", "uprobe")
    code.store_constant(asm.R10, -4, 0, 4)
    out = code.label()
    code.call_helper("map_lookup_elem", asm.MapName("calls"), asm.Stack(-4))
    code.jump("==", asm.R0, 0, out)
    code.move(asm.R1, 1)
    code.atomic_add(asm.R0, 0, asm.R1, 8)
    code.place(out)
    code.move(asm.R0, 0)
    code.exit()
    calls = asm.MapSpec("calls", asm.bpf_map_type.BPF_MAP_TYPE_ARRAY, 4, 8, 1)
    with purebpf.load(asm.build("stripped", [code], maps=[calls])) as obj:
        with obj.programs["on_call"].attach(target):
            subprocess.run([command], check=True)
        return int.from_bytes(obj.maps["calls"][0], "little")


def strip(program: Path, debug: Path, *, link: str = "") -> None:
    """Move the symbols of a program to a debug file, which .gnu_debuglink may name."""
    debug.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["objcopy", "--only-keep-debug", program, debug], check=True)
    subprocess.run(["objcopy", "--strip-all", program], check=True)
    if link:
        named = debug.parent / link
        if not named.exists():
            named.symlink_to(debug)
        subprocess.run(["objcopy", f"--add-gnu-debuglink={named}", program], check=True)
        if named.is_symlink():
            named.unlink()


def beside(program: Path, _: Path) -> None:
    strip(program, program.with_suffix(".debug"), link="program.debug")


def below(program: Path, _: Path) -> None:
    strip(program, program.parent / ".debug/program.debug", link="program.debug")


def by_build_id(program: Path, root: Path) -> None:
    text = subprocess.run(["readelf", "-n", program], capture_output=True, text=True, check=True)
    build_id = text.stdout.partition("Build ID: ")[2].split()[0]
    strip(program, root / f".build-id/{build_id[:2]}/{build_id[2:]}.debug")


def packed(program: Path, _: Path) -> None:
    symbols = program.parent / "mini"
    subprocess.run(["objcopy", "--only-keep-debug", program, symbols], check=True)
    subprocess.run(["xz", symbols], check=True)
    subprocess.run(["objcopy", "--strip-all", program], check=True)
    section = f".gnu_debugdata={symbols}.xz"
    subprocess.run(["objcopy", "--add-section", section, program], check=True)


@pytest.mark.needs("bpf", "gcc", "objcopy", "readelf", "xz")
@pytest.mark.parametrize("place", [beside, below, by_build_id, packed], ids=lambda p: p.__name__)
def test_a_name_of_the_debug_file_is_enough(
    place: Callable[[Path, Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(debug_files, "_DEBUG", str(tmp_path / "lib/debug"))
    program = compile_program(tmp_path / "program", "-Wl,--build-id", source=SOURCE)
    expected = find_places(f"{program}:hidden", "it").offsets
    place(program, tmp_path / "lib/debug")
    assert find_places(f"{program}:hidden", "it").offsets == expected
    assert find_places(f"{program}:hid*", "it").offsets == expected
    link = tmp_path / "elsewhere" / "name"
    link.parent.mkdir()
    link.symlink_to(program)
    for path in (program, link, f"/proc/{os.getpid()}/root{program}"):
        assert counted(f"{path}:hidden", program) == CALLS
    with pytest.raises(purebpf.AttachError, match="does not have a function 'hidde'; similar: hid"):
        find_places(f"{program}:hidde", "it")


@pytest.mark.needs("gcc", "objcopy", "readelf")
def test_a_debug_file_of_another_program_is_not_taken(tmp_path: Path) -> None:
    program = compile_program(tmp_path / "program", "-Wl,--build-id", source=SOURCE)
    beside(program, tmp_path)
    other = compile_program(tmp_path / "other", "-Wl,--build-id", source=SOURCE + "int more;\n")
    subprocess.run(
        ["objcopy", "--only-keep-debug", other, program.with_suffix(".debug")], check=True
    )
    with pytest.raises(purebpf.AttachError, match="does not have a function 'hidden'"):
        find_places(f"{program}:hidden", "it")


@pytest.mark.any_kernel  # reading the table is the same everywhere, and Go takes minutes in a guest
@pytest.mark.needs("bpf", "go")
@pytest.mark.parametrize("mode", ["exe", "pie"])
def test_the_table_that_go_keeps_names_functions(mode: str, tmp_path: Path) -> None:
    source, program = tmp_path / "main.go", tmp_path / "program"
    source.write_text(GO)
    settings = {"GO111MODULE": "off", "GOTOOLCHAIN": "local", "GOCACHE": str(tmp_path / "cache")}
    command = ["go", "build", f"-buildmode={mode}", "-ldflags=-s -w", "-o", program, source]
    environment = {**os.environ, **settings, "CGO_ENABLED": "0"}
    subprocess.run(list(map(str, command)), check=True, env=environment)
    assert counted(f"{program}:main.target", program) == CALLS
    with pytest.raises(purebpf.AttachError, match=r"does not have a function 'main\.targe'; sim"):
        find_places(f"{program}:main.targe", "it")


@pytest.mark.needs("gcc")
@pytest.mark.parametrize("name", ["malloc", "malloc@GLIBC_2.2.5"])
def test_an_imported_function_says_which_library_has_it(name: str, tmp_path: Path) -> None:
    program = compile_program(tmp_path / "program", source=SOURCE)
    with pytest.raises(
        purebpf.AttachError,
        match=r"imports 'malloc' from libc\.so\.6: probe it there, 'libc\.so\.6:malloc', with pid=",
    ):
        find_places(f"{program}:{name}", "it")
    assert find_places("libc.so.6:malloc", "it").offsets


@pytest.mark.needs("gcc")
def test_an_import_without_a_version_is_searched_in_the_libraries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    libraries = [tmp_path / f"lib{name}.so" for name in ("first", "second")]
    for library, function in zip(libraries, ("other", "wanted"), strict=True):
        compile_program(library, "-shared", "-fPIC", source=f"int {function}(void) {{ return 1; }}")
    source = "int other(void); int wanted(void); int main(void) { return other() - wanted(); }"
    flags = (*map(str, libraries), "-Wl,--no-as-needed")
    program = tmp_path / "program"
    (tmp_path / "program.c").write_text(source)
    subprocess.run(["gcc", tmp_path / "program.c", *flags, "-o", program], check=True)
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    with pytest.raises(purebpf.AttachError, match=r"imports 'wanted' from .*libsecond"):
        find_places(f"{program}:wanted", "it")
    libraries[1].unlink()
    with pytest.raises(purebpf.AttachError, match="imports 'wanted', and has no code of it; its "):
        find_places(f"{program}:wanted", "it")
