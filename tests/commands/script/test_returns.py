"""`uretprobe` of functions that exceptions pass through: the program lives, and the calls count."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.needs("bpf", "vmlinux_btf", "gcc", "g++"),
    pytest.mark.any_kernel,
]

COMMAND = (sys.executable, "-P", "-m", "purebpf", "script")
CALLS, THROWN = 101, 34
SOURCE = """
#include <csignal>
#include <cstdio>
#include <cstdlib>
struct Problem {};
static void on_fault(int) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGSEGV);
    sigprocmask(SIG_UNBLOCK, &set, 0);
    throw Problem();
}
extern "C" __attribute__((noinline)) int peek(const volatile int *at) { return *at; }
extern "C" __attribute__((noinline)) int check(int i) {
    if (i % 3 == 0) throw Problem();
    return i;
}
extern "C" __attribute__((noinline)) int twice(int i) { int r = check(i); asm(""); return 2 * r; }
extern "C" __attribute__((noinline)) int ends_elsewhere(int i) { asm(""); return check(i + 1); }
static int compare(const void *a, const void *b) {
    if (*(int *)a == 7) throw Problem();
    return *(int *)a - *(int *)b;
}
int main() {
    int sum = 0, caught = 0;
    volatile int one = 1;
    signal(SIGSEGV, on_fault);
    for (int i = 0; i < 101; i++) {
        int values[] = {3, 1, i % 3 ? 5 : 7, 2};
        try { sum += twice(i); } catch (Problem &) { caught++; }
        try { sum += ends_elsewhere(i); } catch (Problem &) { caught++; }
        try { sum += peek(i % 3 ? &one : (int *)8); } catch (Problem &) { caught++; }
        try { std::qsort(values, 4, sizeof(int), compare); } catch (Problem &) { caught++; }
    }
    printf("sum %d caught %d\\n", sum, caught);
}
"""
TAIL_CALLS = """
#define FUNCTION __attribute__((noinline)) int
FUNCTION leaf(int i) { asm volatile(""); return i + 1; }
FUNCTION ends_elsewhere(int i) { asm volatile(""); return leaf(i); }
int main(void) {
    int n = 0;
    for (int i = 0; i < 101; i++) n += ends_elsewhere(i) + leaf(i);
    return n == 0;
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("returns")
    (folder / "a.cpp").write_text(SOURCE)
    words = ["g++", "-O2", "-fnon-call-exceptions", "-o", str(folder / "a"), str(folder / "a.cpp")]
    subprocess.run(words, check=True)
    return folder / "a"


def script(program: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *arguments, "-c", str(program)], capture_output=True, text=True, check=False,
        timeout=60,
    )  # fmt: skip


def test_an_exception_passes_a_function_with_a_uretprobe(program: Path) -> None:
    alone = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    probes = ", ".join(f"uretprobe:{program}:{name}" for name in ("twice", "peek"))
    done = script(program, "-e", f"{probes} {{ @n[probe, func] = count(); @sum = sum(retval) }}")
    returned = [i for i in range(CALLS) if i % 3]
    assert (done.returncode, done.stderr) == (0, "Attached 2 probes\n")
    assert alone in done.stdout
    rows = re.findall(r"^@n\[uretprobe:\S+:(\w+), \S+\]: (\d+)$", done.stdout, re.MULTILINE)
    assert sorted(rows) == [("peek", str(CALLS - THROWN)), ("twice", str(CALLS - THROWN))]
    assert f"@sum: {2 * sum(returned) + len(returned)}" in done.stdout


def test_a_function_that_ends_in_another_one_is_left_out_with_the_reason(program: Path) -> None:
    text = f"uretprobe:{program}:twice, uretprobe:{program}:ends_elsewhere {{ @[func] = count(); }}"
    done = script(program, "-e", text)
    assert done.returncode == 0
    assert "caught" in done.stdout
    assert "ends_elsewhere" not in done.stdout
    assert "ends_elsewhere: its calls may end in other functions" in done.stderr
    assert "Attached 1 probe\n" in done.stderr


def test_a_function_of_a_library_that_calls_back_is_refused_alone(program: Path) -> None:
    done = script(program, "-e", "uretprobe:libc.so.6:qsort { @ = count(); }")
    assert done.returncode == 1
    told = " ".join(done.stderr.split())
    assert "a return probe would end the program when an unwinder passes" in told
    assert "caught" not in done.stdout


def test_a_program_without_an_unwinder_has_return_probes(tmp_path: Path) -> None:
    (tmp_path / "a.c").write_text(TAIL_CALLS)
    program = tmp_path / "a"
    subprocess.run(["gcc", "-O2", "-o", str(program), str(tmp_path / "a.c")], check=True)
    done = script(program, "-e", f"uretprobe:{program}:ends_elsewhere {{ @ = sum(retval); }}")
    assert f"@: {sum(range(1, CALLS + 1))}\n" in done.stdout


def test_a_return_belongs_to_the_start_of_its_function(tmp_path: Path) -> None:
    (tmp_path / "a.c").write_text(
        "#include <stdio.h>\n"
        "__attribute__((noinline)) int pick(int i)\n"
        '{ asm volatile(""); if (i % 3) return puts("no"); asm volatile("nop"); return i; }\n'
        "int main(void) { for (int i = 0; i < 101; i++) pick(i); getchar(); }\n"
    )
    program = tmp_path / "a"
    words = ["gcc", "-O2", "-fno-optimize-sibling-calls", "-o", str(program), str(tmp_path / "a.c")]
    subprocess.run(words, check=True)
    text = f"uretprobe:{program}:pick {{ @n[func] = count(); if (@++ == 100) {{ print(@n); }} }}"
    with subprocess.Popen(
        [*COMMAND, "-q", "-e", text, "-c", str(program)], stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdout
        for line in process.stdout:
            if line.startswith("@n["):
                break
        assert line == "@n[pick]: 101\n"
        process.communicate("\n")
