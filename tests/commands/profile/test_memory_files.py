"""Programs and libraries in memfd_create(2) files, which have no path."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from purebpf.observe.symbols.symbolizer import Symbolizer
from purebpf.symbols.frame import Reason
from tests.commands.conftest import ROOT

pytestmark = pytest.mark.needs("bpf", "perf_event", "gcc")

LIBRARY = """
static volatile unsigned long sink;
static __attribute__((noinline)) void in_library(void)
{
    for (unsigned long n = 0; n < 3000000UL; n++)
        sink += n;
}
void exported(void)
{
    in_library();
    sink++;
}
"""
PROGRAM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
static void (*exported)(void);
__attribute__((noinline)) void in_program(void)
{
    exported();
    __asm__ volatile("");
}
static void *load(const char *path)
{
    char buffer[65536], copy[64];
    int fd = memfd_create("library", 0);
    FILE *file = fopen(path, "r");
    for (size_t size; (size = fread(buffer, 1, sizeof buffer, file)) > 0;)
        if (write(fd, buffer, size) != (ssize_t)size)
            exit(2);
    snprintf(copy, sizeof copy, "/proc/self/fd/%d", fd);
    return dlopen(copy, RTLD_NOW);
}
int main(int count, char **arguments)
{
    exported = (void (*)(void))dlsym(load(arguments[1]), "exported");
    int fd = memfd_create("jit", 0);
    if (ftruncate(fd, 4096))
        return 2;
    printf("%p\n", mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0));
    fflush(stdout);
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    for (long end = now.tv_sec + atoi(arguments[2]); now.tv_sec < end;
         clock_gettime(CLOCK_MONOTONIC, &now))
        in_program();
    return 0;
}
"""
LAUNCHER = """
import os, sys
fd = os.memfd_create("in_memory")
with open(sys.argv[1], "rb") as file:
    os.write(fd, file.read())
os.execve(fd, ["in_memory", *sys.argv[2:]], os.environ)
"""


@pytest.fixture(scope="module")
def launcher(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """A command that runs a program from memory, which loads a library from memory."""
    directory = tmp_path_factory.mktemp("memory")
    program, library = directory / "program", directory / "library.so"
    (directory / "library.c").write_text(LIBRARY)
    (directory / "program.c").write_text(PROGRAM)
    gcc = ["gcc", "-O1", "-fno-optimize-sibling-calls"]
    subprocess.run(
        [*gcc, "-shared", "-fPIC", "-o", library, "library.c"], cwd=directory, check=True
    )
    subprocess.run([*gcc, "-o", program, "program.c"], cwd=directory, check=True)
    return [sys.executable, "-c", LAUNCHER, str(program), str(library)]


@contextmanager
def running(launcher: list[str]) -> Iterator[tuple[int, int]]:
    """The process, and the address of its memory for generated code."""
    with subprocess.Popen([*launcher, "60"], stdout=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout is not None
            yield child.pid, int(child.stdout.readline(), 16)
        finally:
            child.kill()


def profiled(*arguments: str) -> tuple[int, int, str]:
    """Samples of the program, those with names among them, and the text."""
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
        if "exported" in stack or "unknown" in stack or "no unwind" in stack:
            total += int(weight)
            named += int(weight) * ("main;in_program;exported;in_library" in stack)
    return total, named, done.stdout + done.stderr


@pytest.mark.nightly
def test_a_program_in_memory_that_runs(launcher: list[str]) -> None:
    with running(launcher) as (pid, _):
        total, named, text = profiled("-p", str(pid), "1")
    assert named > 0.95 * total > 0, text


def test_a_program_in_memory_that_has_ended(launcher: list[str]) -> None:
    total, named, text = profiled("--", *launcher, "2")
    assert named > 0.9 * total > 0, text


def test_generated_code_in_memory_is_no_file(launcher: list[str]) -> None:
    with running(launcher) as (pid, address):
        maps = Path(f"/proc/{pid}/maps").read_text()
        assert any(
            line.startswith(f"{address:x}-") and "/memfd:jit" in line for line in maps.splitlines()
        )
        (answer,) = Symbolizer().user(pid, [address + 8])
    assert answer.reason is Reason.ANONYMOUS
