"""Functions that only one allocator has: heaps and arrays of mimalloc, xallocx of jemalloc."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands.conftest import ROOT

pytestmark = pytest.mark.needs("bpf", "perf_event", "gcc", "x86_64")
LIBRARY = """
#include <stddef.h>
static char room[1 << 20];
static size_t used;
__attribute__((noinline)) static void *take(size_t n) { used += n; return room + used - n; }
#define FUNCTION(name, ...) __attribute__((noinline)) void *name(__VA_ARGS__)
FUNCTION(mi_malloc, size_t n) { return take(n); }
FUNCTION(mi_heap_malloc, void *heap, size_t n) { return take(n); }
FUNCTION(mi_heap_calloc, void *heap, size_t n, size_t size) { return take(n * size); }
FUNCTION(mi_heap_realloc, void *heap, void *p, size_t n) { return take(n); }
FUNCTION(mi_heap_recalloc, void *heap, void *p, size_t n, size_t size) { return take(n * size); }
FUNCTION(mi_reallocn, void *p, size_t n, size_t size) { return take(n * size); }
FUNCTION(mi_strdup, const char *text) { return mi_heap_malloc(0, 6); }
void mi_free(void *p) { __asm__ volatile("" : : "r"(p)); }
void mi_heap_destroy(void *heap) { __asm__ volatile("" : : "r"(heap)); }
FUNCTION(mallocx, size_t n, int flags) { return take(n); }
size_t xallocx(void *p, size_t n, size_t more, int flags) { return n > 500 ? 400 : n; }
void dallocx(void *p, int flags) { __asm__ volatile("" : : "r"(p)); }
void free(void *p) {}
"""
PROGRAM = """
#include <stddef.h>
void *mi_malloc(size_t), *mi_heap_malloc(void *, size_t), mi_free(void *), mi_heap_destroy(void *);
void *mi_heap_calloc(void *, size_t, size_t), *mi_heap_realloc(void *, void *, size_t);
void *mi_heap_recalloc(void *, void *, size_t, size_t), *mi_reallocn(void *, size_t, size_t);
void *mi_strdup(const char *), *mallocx(size_t, int);
size_t xallocx(void *, size_t, size_t, int);
void dallocx(void *, int);
#define TIMES(n) for (int i = 0; i < n; i++)
__attribute__((noinline)) void heap(void *h) { TIMES(7) mi_free(mi_heap_malloc(h, 11)); }
__attribute__((noinline)) void array(void *h) { TIMES(5) mi_heap_calloc(h, 3, 13); }
__attribute__((noinline)) void grown(void *h)
{
	void *p = mi_malloc(10);
	p = mi_heap_realloc(h, p, 20);
	p = mi_heap_recalloc(h, p, 3, 10);
	p = mi_reallocn(p, 4, 10);
	mi_free(p);
}
__attribute__((noinline)) void text(void) { TIMES(3) mi_strdup("hello"); }
__attribute__((noinline)) void resized(void)
{
	void *p = mallocx(100, 0);
	xallocx(p, 300, 0, 0);
	xallocx(p, 600, 0, 0);
}
int main(void)
{
	int h;

	heap(&h);
	array(&h);
	grown(&h);
	text();
	resized();
	mi_heap_destroy(&h);
	return 0;
}
"""
BYTES = {"heap": (77, 0), "array": (195, 195), "grown": (100, 0), "resized": (400, 300)}
"""Of each function of the program: allocated, and not freed."""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("own")
    for name, source in (("libmimalloc", LIBRARY), ("program", PROGRAM)):
        (folder / f"{name}.c").write_text(source)
    library, program = folder / "libmimalloc.so", folder / "program"
    compile_c = ["gcc", "-w", "-O1", "-fno-builtin", "-o"]
    subprocess.run([*compile_c, library, "-shared", "-fPIC", folder / "libmimalloc.c"], check=True)
    subprocess.run(
        [*compile_c, program, folder / "program.c", library, f"-Wl,-rpath,{folder}"], check=True
    )
    return program


@pytest.mark.parametrize("show", ["allocated", "unfreed"])
def test_each_byte_of_them_counts(program: Path, show: str) -> None:
    words = ["--show", show, "-f", "--library", str(program.parent / "libmimalloc.so")]
    command = [sys.executable, "-P", "-m", "purebpf", "mem", *words, "--", str(program)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    sizes = {
        name: sum(int(size) for size in re.findall(rf";{name} (\d+)$", done.stdout, re.MULTILINE))
        for name in (*BYTES, "text")
    }
    column = ("allocated", "unfreed").index(show)
    assert sizes == {name: both[column] for name, both in BYTES.items()} | {"text": 0}
    said = " ".join(done.stderr.split())
    assert "1 heap of mimalloc was destroyed" in said
    assert "3 copies of texts by mimalloc" in said
