"""Programs that copy their own code to anonymous memory, for huge pages."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.commands.conftest import ROOT

pytestmark = pytest.mark.needs("bpf", "perf_event", "gcc")

PROGRAM = r"""
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#define HOT __attribute__((noinline, section("hot_code")))
extern char __start_hot_code[], __stop_hot_code[];
static volatile unsigned long sink;
HOT __attribute__((aligned(4096))) void leaf_work(void)
{
    for (unsigned long n = 0; n < 5000000UL; n++)
        sink += n;
}
HOT void mid_work(void)
{
    leaf_work();
    sink++;
}
static const int ALL = PROT_READ | PROT_WRITE | PROT_EXEC;
static const int OURS = MAP_PRIVATE | MAP_ANONYMOUS;
/* mov $5000000,%eax; dec %eax; jnz -4; ret */
static const unsigned char LOOP[] = { 0xb8, 0x40, 0x4b, 0x4c, 0, 0xff, 0xc8, 0x75, 0xfc, 0xc3 };
static void hot_pages(char **start, size_t *size)
{
    *start = __start_hot_code;
    *size = ((size_t)(__stop_hot_code - __start_hot_code) + 4095) & -4096;
}
static void text_pages(char **start, size_t *size)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[512], access[8];
    unsigned long a, b, own = (unsigned long)leaf_work;
    while (fgets(line, sizeof line, maps))
        if (sscanf(line, "%lx-%lx %7s", &a, &b, access) == 3 && a <= own && own < b)
            break;
    fclose(maps);
    *start = (char *)a;
    *size = b - a;
}
int main(int count, char **arguments)
{
    char *start, *copy;
    size_t size;
    const char *how = arguments[1];
    (strcmp(how, "mremap") ? hot_pages : text_pages)(&start, &size);
    copy = mmap(0, size, ALL, OURS, -1, 0);
    memcpy(copy, start, size);
    if (!strcmp(how, "other")) { /* no record says that this code moved to the function's place */
        memset(copy, 0x90, size);
        memcpy(copy, LOOP, sizeof LOOP);
    }
    if (!strcmp(how, "mremap") || !strcmp(how, "other")) {
        mprotect(copy, size, PROT_READ | PROT_EXEC);
        mremap(copy, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, start);
    } else {
        int access = strcmp(how, "late") ? PROT_READ | PROT_WRITE : ALL;
        mmap(start, size, access, OURS | MAP_FIXED, -1, 0);
        if (!strcmp(how, "late")) /* no record says when the code follows */
            usleep(200000);
        memcpy(start, copy, size);
        if (!strcmp(how, "patched")) {
            memset(start, 0x90, size);
            memcpy(start, LOOP, sizeof LOOP);
        }
        if (strcmp(how, "late"))
            mprotect(start, size, PROT_READ | PROT_EXEC);
        munmap(copy, size);
    }
    printf("moved\n");
    fflush(stdout);
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    for (long end = now.tv_sec + atoi(arguments[2]); now.tv_sec < end;
         clock_gettime(CLOCK_MONOTONIC, &now))
        (strcmp(how, "patched") && strcmp(how, "other") ? mid_work : leaf_work)();
    _exit(0); /* .fini may be on the pages of other code */
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("copied") / "mover"
    source = target.with_suffix(".c")
    source.write_text(PROGRAM)
    subprocess.run(["gcc", "-O1", "-fno-optimize-sibling-calls", "-o", target, source], check=True)
    return target


def profiled(*arguments: str) -> tuple[int, int, str]:
    """Samples of the copied code, those with names and callers among them, and the text."""
    done = subprocess.run(
        [sys.executable, "-m", "purebpf", "profile", "-F", "199", "-f", *arguments],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    total = named = 0
    for line in done.stdout.splitlines():
        stack, _, weight = line.rpartition(" ")
        if stack.startswith("mover;") and re.search(r"leaf_work|\[unknown\]|no unwind", stack):
            total += int(weight)
            named += int(weight) * ("main;mid_work;leaf_work" in stack)
    return total, named, done.stdout + done.stderr


@pytest.mark.parametrize("how", ["mremap", pytest.param("fixed", marks=pytest.mark.nightly)])
def test_code_that_was_copied_before_the_run(program: Path, how: str) -> None:
    with subprocess.Popen([program, how, "60"], stdout=subprocess.PIPE) as child:
        try:
            assert child.stdout is not None
            child.stdout.readline()
            total, named, text = profiled("-p", str(child.pid), "1")
        finally:
            child.kill()
    assert named > 0.95 * total > 0, text


@pytest.mark.nightly
def test_code_of_a_deleted_program(program: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copy(program, tmp_path / "mover"))
    with subprocess.Popen([copy, "mremap", "60"], stdout=subprocess.PIPE) as child:
        try:
            assert child.stdout is not None
            child.stdout.readline()
            copy.unlink()
            total, named, text = profiled("-p", str(child.pid), "1")
        finally:
            child.kill()
    assert named > 0.95 * total > 0, text


@pytest.mark.nightly
def test_a_recording_has_its_names(program: Path, tmp_path: Path) -> None:
    data = str(tmp_path / "perf.data")
    with subprocess.Popen([program, "mremap", "60"], stdout=subprocess.PIPE) as child:
        try:
            assert child.stdout is not None
            child.stdout.readline()
            asked = ["-p", str(child.pid), "--call-graph", "copy", "-o", data, "--", "sleep", "1"]
            subprocess.run(
                [sys.executable, "-m", "purebpf", "record", "-F", "99", *asked],
                capture_output=True,
                check=True,
                cwd=ROOT,
            )
        finally:
            child.kill()
    done = subprocess.run(
        [sys.executable, "-m", "purebpf", "report", "-i", data, "--format", "folded"],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    assert "main;mid_work;leaf_work" in done.stdout, done.stdout + done.stderr


@pytest.mark.nightly
@pytest.mark.parametrize("how", ["mremap", "fixed", "late"])
@pytest.mark.parametrize("options", [[], ["--no-python"]], ids=["", "no-python"])
def test_code_that_is_copied_during_the_run(program: Path, how: str, options: list[str]) -> None:
    total, named, text = profiled(*options, "--", str(program), how, "3")
    # the first may be taken before purebpf compares the bytes
    least = 0 if how == "late" else 0.5
    assert named > least * total, text


def test_other_code_in_its_place_is_not_named_by_the_file(program: Path) -> None:
    with subprocess.Popen([program, "patched", "60"], stdout=subprocess.PIPE) as child:
        try:
            assert child.stdout is not None
            child.stdout.readline()
            time.sleep(0.1)
            total, named, text = profiled("-p", str(child.pid), "1")
        finally:
            child.kill()
    assert total > 0
    assert named == 0
    assert "leaf_work" not in text, text


def test_other_code_that_moved_to_its_place_is_not_named_by_the_file(program: Path) -> None:
    _, named, text = profiled("--", str(program), "other", "2")
    assert "[unknown]" in text or "no unwind" in text, text
    assert named == 0
    assert "leaf_work" not in text, text
