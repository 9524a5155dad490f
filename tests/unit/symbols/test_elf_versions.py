"""Versions of functions, against readelf."""

from __future__ import annotations

import os
import re
import subprocess
from collections import defaultdict
from pathlib import Path

import pytest

from purebpf.symbols.elf_image import ElfImage
from purebpf.symbols.elf_names import function_of_version, functions_named

SOURCE = """
int old(int x) { return x + 1; }
int new(int x) { return x + 2; }
__asm__(".symver old, twice@V1");
__asm__(".symver new, twice@@V2");
"""
MAP = "V1 { global: twice; };\nV2 { global: twice; } V1;\n"
LIBC = Path(f"/usr/lib/{os.uname().machine}-linux-gnu/libc.so.6")


@pytest.fixture
def library(tmp_path: Path) -> Path:
    (tmp_path / "it.c").write_text(SOURCE)
    (tmp_path / "it.map").write_text(MAP)
    script = f"-Wl,--version-script={tmp_path}/it.map"
    command = ["gcc", "-shared", "-fPIC", script, "-o", tmp_path / "it.so", tmp_path / "it.c"]
    subprocess.run(command, check=True)
    return tmp_path / "it.so"


def symbols(path: Path) -> dict[str, dict[str, int]]:
    """The address of each version of each function, as readelf has it."""
    command = ["readelf", "--dyn-syms", "-W", path]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    row = re.compile(r"^ +\d+: (\w+) +\w+ I?FUNC +\w+ +\w+ +(\d+) ([^@\s]+)(@@?\S+)", re.MULTILINE)
    found: dict[str, dict[str, int]] = defaultdict(dict)
    for address, _, name, version in row.findall(text):
        found[name][version[1:]] = int(address, 16)
    return found


@pytest.mark.needs("gcc", "readelf")
def test_each_version_is_found(library: Path) -> None:
    image = ElfImage.of_bytes(library.read_bytes())
    theirs = symbols(library)["twice"]
    assert set(theirs) == {"V1", "@V2"}
    assert function_of_version(image, "twice", "V1") == theirs["V1"]
    assert function_of_version(image, "twice", "V2") == theirs["@V2"]
    assert function_of_version(image, "twice", "@V2") == theirs["@V2"]
    assert function_of_version(image, "twice", "@V1") is None
    assert function_of_version(image, "twice", "V3") is None


@pytest.mark.needs("gcc", "readelf")
def test_without_a_version_it_is_what_programs_are_linked_to(library: Path) -> None:
    subprocess.run(["strip", library], check=True)
    image = ElfImage.of_bytes(library.read_bytes())
    assert functions_named(image, "twice".__eq__) == {"twice": symbols(library)["twice"]["@V2"]}


@pytest.mark.needs("readelf")
def test_versions_of_a_real_library() -> None:
    if not LIBC.exists():
        pytest.skip(f"no {LIBC}")
    image = ElfImage.of_bytes(LIBC.read_bytes())
    several = {name: found for name, found in symbols(LIBC).items() if len(found) > 1}
    assert several
    for name, versions in several.items():
        current = [address for version, address in versions.items() if version.startswith("@")]
        if current:
            assert list(functions_named(image, name.__eq__).values()) == current, name
