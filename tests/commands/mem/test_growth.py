"""mem names the growth of programs whose objects do not come from malloc, and limits its cost."""

from __future__ import annotations

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
