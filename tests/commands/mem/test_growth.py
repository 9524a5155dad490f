"""mem names the growth of programs whose objects do not come from malloc, and limits its cost."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.environment import run

pytestmark = pytest.mark.needs(
    "bpf", "perf_event", "task_pt_regs", "vmlinux_btf", "gcc", "x86_64", "atomic_fetch"
)

HOARDER = """
import sys, time
hoard = []
def put_away(number):
    hoard.append([f"entry {number} {part}" for part in range(20)])
for number in range(10**9):
    put_away(number)
    if number % 100 == 0:
        sys.stdout.write("x"); sys.stdout.flush()
        time.sleep(0.01)
"""
BUSY = """#include <stdlib.h>
#include <unistd.h>
void *volatile last;
int main(void) {
    for (;;) {
        for (int i = 0; i < 300; i++) { void *a = malloc(64 + i); last = a; free(a); }
        write(1, "x", 1);
        usleep(5000);
    }
}"""


@contextmanager
def working(*words: str) -> Iterator[int]:
    with subprocess.Popen(words, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.read(3) == b"xxx"
        drain = subprocess.Popen(["cat"], stdin=process.stdout, stdout=subprocess.DEVNULL)
        try:
            yield process.pid
        finally:
            process.kill()
            drain.wait()


def test_a_python_program_that_leaks_leads_with_its_growth_and_line(tmp_path: Path) -> None:
    script = tmp_path / "hoarder.py"
    script.write_text(HOARDER)
    with working(sys.executable, str(script)) as pid:
        done = run("mem", "-p", str(pid), "2")
    lines = done.stdout.splitlines()[2:10]
    assert re.match(rf"\S+ \({pid}\) grew by [\d.]+ MB in \d.\d s \(\S+ MB/s\), to ", lines[0])
    assert "Python's arenas of objects" in lines[1]
    assert "put_away" in lines[3]
    assert "(hoarder.py:5)" in lines[3]


def test_a_busy_allocator_is_traced_up_to_the_limit_only(tmp_path: Path) -> None:
    (tmp_path / "busy.c").write_text(BUSY)
    subprocess.run(["gcc", "-O0", "-o", "busy", "busy.c"], check=True, cwd=tmp_path)
    with working(str(tmp_path / "busy")) as pid:
        limited = run("mem", "--cost", "0.1", "-p", str(pid), "2")
        unlimited = run("mem", "--cost", "0", "-p", str(pid), "1")
    said = r"malloc +[\d,]+ calls a second; tracing them costs [\d.]+ % of a CPU\n"
    assert re.search(said + r" +stopped after \d.\d s, .*--cost 0: go on", limited.stdout)
    assert re.search(said, unlimited.stdout)
    assert "stopped after" not in unlimited.stdout


GO = """package main
import ("fmt"; "time")
var kept = map[int][]byte{}
//go:noinline
func remember(number int) { kept[number] = make([]byte, 4096) }
func main() {
	for number := 0; ; number++ {
		remember(number)
		if number%100 == 0 { fmt.Print("x"); time.Sleep(10 * time.Millisecond) }
	}
}
"""
STATIC = """#include <stdlib.h>
#include <string.h>
#include <unistd.h>
void *volatile last;
__attribute__((noinline)) void remember(void) { last = malloc(65536); memset(last, 1, 65536); }
int main(void) { for (;;) { remember(); write(1, "x", 1); usleep(10000); } }
"""


@pytest.fixture(params=[pytest.param("go", marks=pytest.mark.needs("go")), "stripped"])
def without_malloc(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[int]:
    """A process that grows, and whose malloc cannot be found."""
    program = str(tmp_path / "grower")
    if request.param == "go":
        (tmp_path / "grower.go").write_text(GO)
        command = ["go", "build", "-o", program, "grower.go"]
    else:
        (tmp_path / "grower.c").write_text(STATIC)
        command = ["gcc", "-O1", "-static", "-s", "-o", program, "grower.c"]
    surroundings = os.environ | {"GOCACHE": str(tmp_path), "GO111MODULE": "off"}
    subprocess.run(command, check=True, cwd=tmp_path, env=surroundings)
    with working(program) as pid:
        yield pid


def test_growth_of_a_program_without_a_malloc_is_shown(without_malloc: int) -> None:
    done = run("mem", "-p", str(without_malloc), "2")
    assert done.returncode == 0, done.stderr
    assert re.search(rf"grower \({without_malloc}\) grew by [\d.]+ MB in ", done.stdout)
    assert "new pages were first used:\n" in done.stdout
    assert "not freed" not in done.stdout
    assert "Allocations are not traced" in done.stderr
    asked = run("mem", "--show", "unfreed", "-p", str(without_malloc), "1")
    assert asked.returncode == 1
    assert "no file of the target has symbols of malloc and\nfree" in asked.stderr
