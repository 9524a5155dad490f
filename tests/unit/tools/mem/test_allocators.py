"""Which functions of a file are an allocator's."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from purebpf.errors import AttachError, NotSupportedError
from purebpf.files.regular_file import opened_same
from purebpf.observe.instruments.allocators import (
    EVERY_PROCESS,
    Function,
    allocator_in,
    executable_allocator,
)

pytestmark = pytest.mark.needs("gcc", "nm", "x86_64")

RETURN = 0xC3
"""The instruction."""


def build(folder: Path, source: str) -> Path:
    code, target = folder / "a.c", folder / "liba.so"
    code.write_text(source)
    command = ["gcc", "-shared", "-fno-builtin", "-nostdlib", "-fPIC", "-o", target, code]
    subprocess.run(command, check=True)
    return target


def offsets(library: Path) -> dict[str, int]:
    """By nm; sections of such a library are in the file where they are in memory."""
    lines = subprocess.run(["nm", library], capture_output=True, text=True, check=True).stdout
    return {
        line.split()[-1]: int(line.split()[0], 16) for line in lines.splitlines() if line[0] != " "
    }


def test_functions_are_found_where_nm_says(tmp_path: Path) -> None:
    source = "".join(
        f"void *{name}(void) {{ return 0; }}\n"
        for name in ("malloc", "free", "realloc", "_Znwm", "_ZdlPvm", "mallocate")
    )
    library = build(tmp_path, source)
    places = offsets(library)
    allocator = allocator_in(str(library))
    assert dict(allocator.code.entries) == {
        places["malloc"]: Function.MALLOC,
        places["free"]: Function.FREE,
        places["realloc"]: Function.REALLOC,
        places["_Znwm"]: Function.MALLOC,
        places["_ZdlPvm"]: Function.FREE,
    }
    assert allocator.pid == EVERY_PROCESS
    gives = [places[name] for name in ("malloc", "realloc", "_Znwm")]
    assert len(allocator.code.returns) == len(gives)
    for start, (end, _) in zip(sorted(gives), allocator.code.returns, strict=True):
        assert library.read_bytes()[end] == RETURN
        assert start < end < start + 16


def test_probes_go_to_the_file_with_the_symbols_and_to_no_other(tmp_path: Path) -> None:
    """A process may exchange its file while root looks at it: other offsets in the same place."""
    library = build(tmp_path, "void *malloc(void) { return 0; }\nvoid free(void) {}\n")
    allocator = allocator_in(str(library))
    other = tmp_path / "other"
    other.symlink_to("/usr/bin/env")
    again = (allocator.path, allocator.identity, "the allocator")
    with opened_same(*again) as path:
        before = os.stat(library)
        os.replace(other, library)
        assert os.path.samestat(os.stat(path), before)
    with pytest.raises(AttachError, match="another file took the place"), opened_same(*again):
        pass


def test_a_file_can_ask_for_few_probes(tmp_path: Path) -> None:
    names = ("malloc", "free", "_ZdlPv", *(f"_ZdlPv{number}x" for number in range(1009)))
    library = build(tmp_path, "".join(f"void {name}(void) {{ }}\n" for name in names))
    assert len(allocator_in(str(library)).code.entries) == 3


def test_malloc_alone_is_not_an_allocator(tmp_path: Path) -> None:
    library = build(tmp_path, "void *malloc(void) { return 0; }\n")
    with pytest.raises(NotSupportedError, match="no symbols of malloc and free"):
        allocator_in(str(library))


def test_a_file_that_does_not_exist_is_named() -> None:
    with pytest.raises(AttachError, match=r"libnone\.so"):
        allocator_in("libnone.so")


def test_a_script_brings_no_allocator(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\n")
    assert executable_allocator(str(script)) == []
