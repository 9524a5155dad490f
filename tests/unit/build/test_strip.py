"""Removing DWARF in our own code gives what llvm-strip -g gives."""

from __future__ import annotations

import platform
import shutil
import subprocess
from pathlib import Path

import pytest

import purebpf
from purebpf.elf.strip import strip_debug
from scripts.build_objects import CLANG, FLAGS, STRIP
from tests.support.environment import ROOT

pytestmark = [pytest.mark.needs("clang"), pytest.mark.any_kernel]

SOURCES = ("elf_core", "elf_data", "elf_externs", "elf_functions", "elf_maps")


def build(name: str, directory: Path, *flags: str) -> Path:
    target = directory / f"{name}.o"
    headers = ["-Ibpf_src/include", f"-I/usr/include/{platform.machine()}-linux-gnu"]
    command = [CLANG, *FLAGS, *flags, *headers, "-c", f"tests/data/{name}.bpf.c", "-o", str(target)]
    subprocess.run(command, check=True, cwd=ROOT)
    return target


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize("target", ["bpfel", "bpfeb"])
def test_it_reads_as_what_llvm_strip_leaves(name: str, target: str, tmp_path: Path) -> None:
    built = build(name, tmp_path, "-target", target)
    original = built.read_bytes()
    ours = strip_debug(original)
    subprocess.run([STRIP, "-g", str(built)], check=True)
    assert purebpf.read_object(ours) == purebpf.read_object(built.read_bytes())
    assert b".debug_info" in original
    assert b".debug_" not in ours
    assert len(ours) <= built.stat().st_size + 64


def test_readelf_finds_nothing_wrong(tmp_path: Path) -> None:
    if shutil.which("readelf") is None:
        pytest.skip("readelf is not installed")
    stripped = tmp_path / "stripped.o"
    stripped.write_bytes(strip_debug(build("elf_core", tmp_path).read_bytes()))
    listed = subprocess.run(
        ["readelf", "-W", "-a", str(stripped)], check=True, capture_output=True, text=True
    )
    assert "Warning" not in listed.stderr
    assert "Error" not in listed.stderr
    assert ".BTF.ext" in listed.stdout


def test_stripping_twice_changes_nothing(tmp_path: Path) -> None:
    once = strip_debug(build("elf_maps", tmp_path).read_bytes())
    assert strip_debug(once) == once


def test_other_files_are_refused() -> None:
    with pytest.raises(purebpf.FormatError, match="C source, not an object"):
        strip_debug(b"#include <linux/bpf.h>\n", "x.c")
