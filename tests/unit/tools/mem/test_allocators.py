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


def build(folder: Path, source: str, *options: str) -> Path:
    code, target = folder / "a.c", folder / "liba.so"
    code.write_text(source)
    command = ["gcc", "-shared", "-fno-builtin", "-nostdlib", "-fPIC", *options]
    subprocess.run([*command, "-o", target, code], check=True)
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


@pytest.mark.parametrize(
    ("names", "traced"),
    [
        (
            ("malloc", "free", "mallocx", "rallocx", "sdallocx", "free_sized", "zalloc"),
            ("malloc", "free", "mallocx", "rallocx", "sdallocx", "free_sized"),
        ),
        (("_rjem_mallocx", "_rjem_sdallocx", "calloc"), ("_rjem_mallocx", "_rjem_sdallocx")),
        (("mi_malloc_aligned", "mi_free", "mi_open"), ("mi_malloc_aligned", "mi_free")),
        (("mi_malloc", "je_free", "free", "sdallocx"), ()),
    ],
)
def test_allocators_with_other_names(
    tmp_path: Path, names: tuple[str, ...], traced: tuple[str, ...]
) -> None:
    """Those of jemalloc(3), of C23, and those with a prefix, as in programs of Rust."""
    source = "".join(f"void *{name}(void) {{ return 0; }}\n" for name in names)
    library = build(tmp_path, source)
    if not traced:
        with pytest.raises(NotSupportedError):
            allocator_in(str(library))
        return
    places = offsets(library)
    kinds = dict(allocator_in(str(library)).code.entries)
    assert kinds.keys() == {places[name] for name in traced}
    for name in traced:
        is_free = "free" in name or "dallocx" in name
        assert (kinds[places[name]] == Function.FREE) is is_free


def test_functions_of_heaps_have_their_arguments_behind_the_heap(tmp_path: Path) -> None:
    """Those of mimalloc, whose first argument is the heap."""
    kinds = {
        "mi_malloc": Function.MALLOC,
        "mi_free": Function.FREE,
        "mi_malloc_aligned_at": Function.MALLOC,
        "mi_recalloc": Function.REALLOC_ARRAY,
        "mi_reallocarray": Function.REALLOC_ARRAY,
        "mi_strdup": Function.COPY_TEXT,
        "mi_heap_malloc": 0x100 | Function.MALLOC,
        "mi_heap_calloc": 0x100 | Function.CALLOC,
        "mi_heap_rezalloc_aligned_at": 0x100 | Function.REALLOC,
        "mi_heap_recalloc": 0x100 | Function.REALLOC_ARRAY,
        "mi_heap_destroy": 0x100 | Function.DESTROY_HEAP,
    }
    others = ("mi_heap_new", "mi_heap_delete", "mi_expand", "mi_heap_free")
    library = build(
        tmp_path, "".join(f"void *{name}(void) {{ return 0; }}\n" for name in (*kinds, *others))
    )
    places = offsets(library)
    found = dict(allocator_in(str(library)).code.entries)
    assert found == {places[name]: kind for name, kind in kinds.items()}


JUMPING = """
#include <stddef.h>
void *own_malloc(size_t n) { return n ? (void *)n : 0; }
void *malloc(size_t n) { return own_malloc(n); }
void *memset(void *, int, size_t);
void *calloc(size_t n, size_t m) { return memset((void *)n, 0, m); }
void *other(void *, size_t);
void *realloc(void *p, size_t n) { return other(p, n); }
void free(void *p) {}
"""
"""Functions that end in a jump through the PLT: to one of the same file, to memset, to another."""


def test_a_function_of_the_same_file_behind_the_plt_belongs_to_the_one_that_jumps_to_it(
    tmp_path: Path,
) -> None:
    """As in mimalloc and tcmalloc, whose functions are global, and built with -fPIC."""
    library = build(tmp_path, JUMPING, "-O2")
    code = allocator_in(str(library)).code
    places = offsets(library)
    assert dict(code.entries)[places["own_malloc"]] == Function.PASSED_THROUGH
    returns = [at for at, _ in code.returns]
    assert any(places["own_malloc"] <= at < places["own_malloc"] + 16 for at in returns)
    assert places["malloc"] in dict(code.jumps)
    assert len(code.clears) == 1
    assert code.leaving == ("realloc",)


def test_calloc_that_goes_on_in_a_function_that_is_not_memset_has_no_known_result(
    tmp_path: Path,
) -> None:
    library = build(tmp_path, JUMPING.replace("memset", "zeroed"), "-O2")
    code = allocator_in(str(library)).code
    assert code.clears == ()
    assert code.leaving == ("calloc", "realloc")


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
