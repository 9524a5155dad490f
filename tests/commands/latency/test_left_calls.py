"""Calls that are left without a return, or on another stack: no program is harmed, no call lost.

Each program counts its own calls; `latency` has to agree: begun = returned + missed.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from purebpf import objects
from purebpf.tools.latency import CallLatency, LatencyOptions
from tests.support.nightly import by_day

pytestmark = pytest.mark.needs("bpf", "vmlinux_btf", "gcc", "x86_64")

OUT = "#define OUT __attribute__((noinline, noclone))\n"
THROWS = (
    OUT
    + """
#include <cstdio>
volatile int sink;
OUT void third(int i) { sink++; if (i % 3 == 0) throw i; }
OUT void second(int i) { third(i); sink++; }
OUT void first(int i) { second(i); sink++; }
int main() {
	int caught = 0;
	for (int i = 0; i < 30; i++)
		try { first(i); } catch (int) { caught++; }
	std::printf("%d\\n", caught);
}
"""
)
CANCELLED = (
    OUT
    + """
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
volatile int cleaned;
static void clean(void *unused) { cleaned++; }
OUT void waits(void) { for (;;) pause(); }
OUT void leaves(void) { pthread_exit(NULL); }
OUT void *run(void *which) {
	pthread_cleanup_push(clean, NULL);
	if (which) waits(); else leaves();
	pthread_cleanup_pop(1);
	return NULL;
}
int main(void) {
	pthread_t threads[6];
	for (long i = 0; i < 6; i++) pthread_create(&threads[i], NULL, run, (void *)(i & 1));
	usleep(300000);
	for (int i = 1; i < 6; i += 2) pthread_cancel(threads[i]);
	for (int i = 0; i < 6; i++) pthread_join(threads[i], NULL);
	printf("%d\\n", cleaned);
}
"""
)
JUMPS = (
    OUT
    + """
#include <setjmp.h>
#include <stdio.h>
static jmp_buf back;
volatile int calls;
OUT int jumper(int deep) {
	calls++;
	if (deep) return jumper(deep - 1) + 1;
	if (calls % 3 == 0) longjmp(back, 1);
	return 1;
}
OUT int host(int deep) { return setjmp(back) ? -1 : jumper(deep); }
int main(void) {
	int sum = 0;
	for (int i = 0; i < 60; i++) sum += host(i % 5);
	printf("%d\\n", sum);
}
"""
)
STACKS = (
    OUT
    + """
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>
static ucontext_t home, each[3];
static int at, count;
static void turn(void) { int me = at; at = (at + 1) % 3; swapcontext(&each[me], &each[at]); }
OUT int step(int word) { count++; turn(); return word + 1; }
static void run(void) {
	for (int sum = 0;;) {
		sum = step(sum);
		if (count > 400) { puts("401"); exit(0); }
	}
}
int main(void) {
	for (int i = 0; i < 3; i++) {
		getcontext(&each[i]);
		each[i].uc_stack.ss_sp = malloc(65536);
		each[i].uc_stack.ss_size = 65536;
		makecontext(&each[i], run, 0);
	}
	swapcontext(&home, &each[0]);
}
"""
)
SHAPES = (
    OUT
    + """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
volatile int sink;
OUT int many(int i) {
	if (i % 5 == 0) return 3;
	if (i % 5 == 1) { sink++; return 4; }
	for (int k = 0; k < i % 7; k++) { sink++; if (sink % 11 == 0) return 9; }
	return sink;
}
OUT int cold(int i) {
	if (__builtin_expect(i % 10 == 9, 0)) { fprintf(stderr, "%s", ""); return -1; }
	return i;
}
OUT int last(int i) { sink++; return i + 1; }
OUT int tail(int i) { sink++; return last(i * 2); }
OUT int chain(int i) { sink++; return tail(i + 5); }
OUT int choose(int i) { if (i & 1) return last(i); sink++; return 0; }
OUT int by_pointer(int (*to)(int), int i) { sink++; return to(i); }
OUT void *elsewhere(void *to, int i) { sink++; return memset(to, i, i); }
OUT int cases(int i) {
	switch (i % 8) {
	case 0: return sink + 4;
	case 1: return last(2);
	case 2: sink++; return 7;
	case 3: return many(i);
	case 4: return cold(i);
	case 5: return -8;
	case 6: sink += 5; break;
	}
	return 77;
}
OUT int loops(int i) { sink++; if (i > 0) return loops(i - 1); return 5; }
int main(void) {
	char bytes[64]; int sum = 0;
	for (int i = 0; i < 41; i++)
		sum += many(i) + cold(i) + chain(i) + choose(i) + by_pointer(last, i) + cases(i) +
			(elsewhere(bytes, i) != 0);
	sum += loops(9);
	printf("%d\\n", sum);
}
"""
)
PANICS = """
use std::panic;
#[inline(never)]
fn inner(i: u32) -> u32 { if i % 4 == 0 { panic!("four") } std::hint::black_box(i) }
#[inline(never)]
fn outer(i: u32) -> u32 {
    let one = std::hint::black_box(vec![i]);
    inner(one[0]) + one.len() as u32
}
fn main() {
    panic::set_hook(Box::new(|_| {}));
    let caught = (0..40).filter(|&i| panic::catch_unwind(|| outer(i)).is_err()).count();
    println!("{caught}");
}
"""


class Ran(dict[str, int]):
    """Calls by function that returned; `lost` are counters that are not zero."""

    lost: dict[str, int]
    notes: tuple[str, ...]


def build(folder: Path, source: str, *words: str) -> Path:
    """A program from its source; the words begin with the compiler."""
    name = {"g++": "x.cc", "rustc": "x.rs"}.get(words[0], "x.c")
    (folder / name).write_text(source)
    subprocess.run([*words, "-o", folder / "x", folder / name], check=True, cwd=folder)
    return folder / "x"


def traced(program: Path, *names: str, **fields: object) -> tuple[Ran, str]:
    """What the functions did in a run of the program, and its output; it has to end well."""
    functions = tuple(f"{program}:{name}" for name in names)
    options = LatencyOptions(functions)._replace(**fields)  # type: ignore[arg-type]
    with CallLatency(options) as session:
        done = subprocess.run([program], capture_output=True, text=True, check=False, timeout=100)
        ending = session.stop()
    assert done.returncode == 0, done.stderr
    ran = Ran()
    for row in session.rows:
        name = row.function.partition("(")[0].rpartition("::")[2]
        ran[name] = ran.get(name, 0) + row.calls
    ran.lost = {cause.name: cause.lost for cause in ending.loss.causes if cause.lost}
    ran.notes = session.notes
    return ran, done.stdout.strip()


@pytest.mark.needs("g++")
@pytest.mark.parametrize("optimised", by_day(["-O0", "-O1", "-O2", "-Os"], ["-O0", "-O2"]))
@pytest.mark.parametrize("linked", [(), ("-static",)])
def test_exceptions_pass_through_timed_functions(tmp_path, optimised, linked):
    program = build(tmp_path, THROWS, "g++", optimised, *linked)
    ran, said = traced(program, "first", "second", "third")
    assert said == "10"
    assert ran == {"first": 20, "second": 20, "third": 20}
    assert ran.lost == {"returns_missed": 30}


def test_threads_are_cancelled_and_leave(tmp_path):
    ran, said = traced(
        build(tmp_path, CANCELLED, "gcc", "-O1", "-pthread"), "waits", "leaves", "run"
    )
    assert said == "6"
    assert ran == {}
    assert ran.lost == {"returns_missed": 12}


@pytest.mark.parametrize("optimised", ["-O0", "-O1"])
def test_calls_that_longjmp_leaves_are_counted(tmp_path, optimised):
    ran, said = traced(build(tmp_path, JUMPS, "gcc", optimised), "jumper")
    assert said == "24"
    assert ran == {"jumper": 60}
    assert ran.lost == {"returns_missed": 120}


def test_stacks_of_one_thread_are_told_apart(tmp_path):
    ran, said = traced(build(tmp_path, STACKS, "gcc", "-O1"), "step")
    assert said == "401"
    assert ran == {"step": 399}
    assert ran.lost.get("returns_missed", 0) + ran.lost.get("unfinished", 0) == 2


@pytest.mark.needs("rustc")
def test_panics_are_caught(tmp_path):
    ran, said = traced(
        build(tmp_path, PANICS, "rustc", "-O", "-Cdebuginfo=0"), "x::inner", "x::outer"
    )
    assert said == "10"
    assert ran == {"inner": 30, "outer": 30}
    assert ran.lost == {"returns_missed": 20}


COUNTS = {"many": 41 + 5, "cold": 41 + 5, "chain": 41, "tail": 41, "last": 41 + 20 + 41 + 5}
COUNTS |= {"choose": 41, "by_pointer": 41, "elsewhere": 41, "cases": 41}


@pytest.mark.parametrize("compiler", ["gcc", "clang-19"])
@pytest.mark.parametrize(
    "options",
    by_day(
        [
            ("-O2",),
            ("-O1",),
            ("-Os",),
            ("-O2", "-fcf-protection=full"),
            ("-O2", "-fno-pie", "-no-pie"),
            ("-O2", "-fno-plt"),
            ("-O2", "-fno-asynchronous-unwind-tables"),
        ],
        (("-O2",), ("-Os",), ("-O2", "-fcf-protection=full")),
    ),
)
def test_functions_of_every_shape_return(tmp_path, compiler, options):
    """Several returns, cold parts, switches, jumps to functions, to other files, by pointers."""
    if subprocess.run(["which", compiler], capture_output=True, check=False).returncode:
        pytest.skip(f"no {compiler} on this machine")
    program = build(tmp_path, SHAPES, compiler, *options, "-w")
    plain = subprocess.run([program], capture_output=True, text=True, check=True).stdout.strip()
    ran, said = traced(program, *COUNTS, "loops")
    assert said == plain
    assert ran.lost == {}
    ran.pop("loops")
    assert ran == COUNTS


def test_a_timed_call_lasts_until_what_it_jumps_to_returns(tmp_path):
    source = (
        OUT
        + """
#include <unistd.h>
volatile int sink;
OUT int last(int i) { usleep(20000); return sink = i; }
OUT int tail(int i) { sink++; return last(i); }
int main(void) { for (int i = 0; i < 3; i++) tail(40 + i); }
"""
    )
    program = build(tmp_path, source, "gcc", "-O2")
    with CallLatency(LatencyOptions((f"{program}:tail",), by="ret:int")) as session:
        subprocess.run([program], check=True)
        session.stop()
    assert {row.group: row.calls for row in session.rows} == {"40": 1, "41": 1, "42": 1}
    assert all(row.least_ns >= 20_000_000 for row in session.rows)


def test_functions_whose_ends_are_not_known_are_counted(tmp_path):
    """A computed jump that nobody understands: no exit is guessed."""
    source = """
asm(".globl odd\\n.type odd, @function\\n"
    "odd: mov (%rdi,%rsi,8), %rax\\nxor %ecx, %ecx\\njmp *%rax\\n"
    "nop\\n.size odd, . - odd\\n");
extern int odd(void *, long);
static int one(void) { return 1; }
int main(void) {
	void *each[] = {one, one};
	int sum = 0;
	for (int i = 0; i < 23; i++) sum += odd(each, i & 1);
	return sum != 23;
}
"""
    ran, _ = traced(build(tmp_path, source, "gcc", "-O1"), "odd")
    assert ran == {"odd": 23}
    assert ran.lost == {}
    assert "counted, not timed" in ran.notes[0]
    assert "is not understood" in ran.notes[0]


def test_functions_of_programs_have_no_return_probes():
    """What the kernel puts into the stack for one is nothing that an unwinder knows."""
    for name in ("latency", "latency_stacks", "mem"):
        for program in objects.spec(name).programs.values():
            assert not program.section.lstrip("?").startswith(("uretprobe", "uprobe.session"))
