"""Where walks in BPF end: at addresses that no call left, at functions nothing called, in code
without rules.
"""

from __future__ import annotations

import ctypes
import mmap
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from purebpf.unwind.reason import Reason
from tests.support.programs.stack_walks import (
    LEAF,
    SIGNALLED,
    build,
    check_counters,
    check_equality,
    ends_of_traces,
    names_of,
    share_in_bpf,
    walk_run,
)

pytestmark = [
    pytest.mark.needs("bpf", "perf_event", "task_pt_regs", "vmlinux_btf", "gcc", "nm", "x86_64"),
]

_LANDING = (
    LEAF
    + SIGNALLED
    + r"""
__attribute__((noinline, naked)) void lands(void) {
  __asm__("lea landing(%rip), %rax\n mov %rax, (%rsp)\n 1: jmp 1b");
}
int main(int count, char **arguments) {
  spins_until_signal(); // sampled too, and libc's tables are there
  lands();
  if (count > 5) lands();
  __asm__ volatile("nop\n landing: nop");
  return count;
}
"""
)
"""What libgcc does before it goes to an exception handler, held still."""

_EXCEPTIONS = r"""
#include <stdexcept>
#include <string>
volatile unsigned long sink;
__attribute__((noinline)) void throws(int depth) {
  std::string text(depth * 7 + 3, 'x');
  if (!depth) throw std::runtime_error(text);
  throws(depth - 1);
  sink += text.size();
}
__attribute__((noinline)) int catches() {
  try { throws(6); } catch (const std::exception &error) { return error.what()[0]; }
  return 0;
}
int main() { for (;;) sink += catches(); }
"""


def test_a_return_address_that_no_call_left_is_not_followed(tmp_path: Path) -> None:
    run = walk_run(build(tmp_path, _LANDING), signals=True, copies_all=True, copies_per_second=0)
    check_counters(run)
    check_equality(run)
    lands = [each for each in run.found if each.trace.reason is Reason.RULE_UNSUPPORTED]
    assert len(lands) > 20
    assert run.ends[Reason.RULE_UNSUPPORTED] > 20
    assert not any(each.walked.reason.is_whole for each in lands)


@pytest.mark.needs("g++")
def test_walks_with_an_exception_in_flight(tmp_path: Path) -> None:
    source = tmp_path / "program.cc"
    source.write_text(_EXCEPTIONS)
    program = tmp_path / "program"
    subprocess.run(["g++", "-O2", "-fomit-frame-pointer", "-o", program, source], check=True)
    run = walk_run(program, samples=900, copies_all=True, copies_per_second=0)
    check_counters(run)
    check_equality(run)
    assert share_in_bpf(run) > 0.8


_COROUTINES = (
    LEAF
    + r"""
static ucontext_t outer, inner;
static char room[65536];
static void coroutine(void) {
  for (;;) {
    for (int i = 0; i < 50; i++) sink += leaf(i);
    swapcontext(&inner, &outer);
  }
}
int main(void) {
  getcontext(&inner);
  inner.uc_stack.ss_sp = room;
  inner.uc_stack.ss_size = sizeof(room);
  makecontext(&inner, coroutine, 0);
  for (;;) { swapcontext(&outer, &inner); sink += leaf(1); }
}
"""
)


def test_a_stack_may_begin_at_a_function(tmp_path: Path) -> None:
    """makecontext(3): the return address is the start of a function, after padding."""
    run = walk_run(build(tmp_path, _COROUTINES), copies_all=True, copies_per_second=0)
    check_counters(run)
    check_equality(run)
    assert ends_of_traces(run) <= {Reason.COMPLETE, Reason.FINISHED, Reason.NO_CALLER}
    # glibc's rules for swapcontext(3) hold until it has loaded the other stack, and not from there
    # to its return: what stands at the new stack pointer may be 0
    switches = [each.trace for each in run.found if each.trace.reason is Reason.NO_CALLER]
    assert len(switches) < 0.1 * len(run.found)
    # the function has another address there, with the same offset in its page
    begin = ctypes.cast(ctypes.CDLL(None).swapcontext, ctypes.c_void_p).value or 0
    for switch in switches:
        [address] = switch.frames
        assert (address - begin) % mmap.PAGESIZE < 256
    assert share_in_bpf(run) > 0.95


_UNMAPPED = (
    LEAF
    + r"""
#include <sys/mman.h>
void middle(void);
STEP void spins(void) {
  madvise((void *)((long)middle & -4096), 4096, MADV_DONTNEED);
  for (;;) sink += leaf(1);
}
__asm__(".text\n .skip 300000\n");
STEP void middle(void) { spins(); sink++; }
__asm__(".text\n .skip 300000\n");
int main(void) { middle(); return sink; }
"""
)
"""Code that was executed, and is not mapped any more: as in a child, after fork(2)."""


_ENTRY_UNMAPPED = (
    LEAF
    + r"""
#include <sys/mman.h>
static ucontext_t outer, inner;
static char room[65536];
static void coroutine(void) {
  madvise((void *)(((long)__builtin_return_address(0) - 8) & -4096), 4096, MADV_DONTNEED);
  for (;;) sink += leaf(1);
}
int main(void) {
  getcontext(&inner);
  inner.uc_stack.ss_sp = room;
  inner.uc_stack.ss_size = sizeof(room);
  makecontext(&inner, coroutine, 0);
  swapcontext(&outer, &inner);
}
"""
)


@pytest.mark.parametrize("source", [_UNMAPPED, _ENTRY_UNMAPPED], ids=["caller", "entry"])
def test_callers_that_are_not_in_memory(tmp_path: Path, source: str) -> None:
    program = build(tmp_path, source, "-fno-toplevel-reorder")
    run = walk_run(program, copies_all=True, copies_per_second=0)
    check_counters(run)
    check_equality(run)
    assert run.ends[Reason.READ_FAULT] > 0
    assert ends_of_traces(run) <= {Reason.COMPLETE, Reason.FINISHED}
    assert share_in_bpf(run) > 0.95


_HANDLES = (
    LEAF
    + r"""
STEP void spins(void) { for (int i = 0; i < 99; i++) sink += leaf(i); }
STEP void handler(int signal) { for (int i = 0; i < 50; i++) spins(); sink++; }
int main(void) {
  struct sigaction action = {.sa_handler = handler};
  struct itimerval often = {{0, 9000}, {0, 9000}};
  sigaction(SIGALRM, &action, 0);
  setitimer(ITIMER_REAL, &often, 0);
  for (;;) spins();
}
"""
)


@pytest.mark.needs("musl-gcc")
def test_what_musl_returns_to_from_a_handler_has_no_rules(tmp_path: Path) -> None:
    """The frame is known by its code."""
    source, program = tmp_path / "program.c", tmp_path / "program"
    source.write_text(_HANDLES)
    flags = ["-O2", "-fomit-frame-pointer", "-fasynchronous-unwind-tables", "-static", "-w"]
    subprocess.run(["musl-gcc", *flags, "-o", program, source], check=True)
    run = walk_run(program, copies_all=True, copies_per_second=0)
    check_counters(run)
    check_equality(run)
    late = run.late()
    names = [names_of(run, program, each.walked.frames) for each in late]
    handled = [each.walked for each, path in zip(late, names, strict=True) if "handler" in path]
    assert len(handled) > 10
    assert all(path[0] == "main" for path in names if "handler" in path)
    assert {walk.reason for walk in handled} == {Reason.COMPLETE}


_BEGUN_WITH_0 = (
    LEAF
    + r"""
static char room[65536] __attribute__((aligned(16)));
STEP void begins(void) { for (;;) sink += leaf(1); }
int main(void) {
  unsigned long *top = (unsigned long *)(room + sizeof(room) - 24);
  *top = 0; // what begins() would return to
  __asm__ volatile("mov %0, %%rsp\n jmp *%1" : : "r"(top), "r"(begins));
}
"""
)
"""What Perl's Coro and Ruby's fibers do: a stack of its own, and nothing to return to."""


def test_a_stack_that_returns_to_0_is_not_whole(tmp_path: Path) -> None:
    """The rules say that its function was called, and 0 is also what wrong rules give."""
    program = build(tmp_path, _BEGUN_WITH_0)
    run = walk_run(program, copies_all=True, copies_per_second=0)
    check_counters(run)
    check_equality(run)
    assert not any(each.trace.reason.is_whole for each in run.found)
    late = Counter(each.walked.reason for each in run.late())
    assert late[Reason.NO_CALLER] > 0.95 * late.total(), late


_CALLS_0 = (
    LEAF
    + r"""
static void handles(int signal) { for (;;) sink += leaf(signal); }
int main(void) {
  signal(SIGSEGV, handles);
  void (*volatile null)(void) = 0;
  null();
}
"""
)


def test_a_signal_at_address_0_is_not_whole(tmp_path: Path) -> None:
    run = walk_run(build(tmp_path, _CALLS_0), copies_all=True, copies_per_second=0)
    check_counters(run)
    assert not any(each.walked.reason.is_whole for each in run.found)
    assert not any(each.trace.reason.is_whole for each in run.found)
    late = Counter(each.trace.reason for each in run.late())
    assert late[Reason.UNKNOWN_MAPPING] > 0.95 * late.total(), late


_LUA = """
local function leaf(n) local s = 0 for i = 1, n do s = s + i % 7 end return s end
local function level1(n) return leaf(n) + 1 end
while true do level1(100000) end
"""


@pytest.mark.needs("luajit")
def test_whole_stacks_of_luajit_reach_the_entry(tmp_path: Path) -> None:
    """The rules of its interpreter are those of one place in it; elsewhere they give 0."""
    script = tmp_path / "spins.lua"
    script.write_text(_LUA)
    run = walk_run("luajit", "-joff", script, copies_all=True, copies_per_second=0)
    check_counters(run)
    check_equality(run)
    libc = [line for line in run.maps.splitlines() if "/libc.so" in line and "r-xp" in line]
    start, end = (int(word, 16) for word in libc[0].split()[0].split("-"))
    for each in run.found:  # main is called by libc
        if each.trace.reason.is_whole:
            assert any(start <= frame < end for frame in each.trace.frames[1:]), each
