"""Shapes of stacks, by several compilers: walked in BPF, unwound from the copy of the same sample,
and held against what the program can call.
"""

from __future__ import annotations

import subprocess
import time
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

from purebpf import objects
from purebpf.loader.load.load import load
from purebpf.observe.instruments.stack_maps import MAX_DEPTH
from purebpf.unwind.reason import Reason
from tests.support.host.faults import slow_host
from tests.support.programs.stack_walks import (
    LEAF,
    Run,
    check_counters,
    check_equality,
    names_of,
    share_in_bpf,
    walk_run,
)

pytestmark = [
    pytest.mark.needs("bpf", "perf_event", "task_pt_regs", "vmlinux_btf", "gcc", "nm", "x86_64"),
]

_32_BITS = pytest.mark.needs("programs_of_32_bits")
_SHAPES = (
    LEAF
    + r"""
#include <alloca.h>
#include <dlfcn.h>
#include <setjmp.h>
static jmp_buf back;
STEP void works(void) { for (int i = 0; i < 60; i++) sink += leaf(i); }
STEP unsigned long recurse(int depth, unsigned long x) {
  if (!depth) { works(); return x; }
  sink += recurse(depth - 1, x + depth); // or else GCC makes a loop of it
  return sink ^ x;
}
STEP unsigned long allocates(unsigned long x) {
  char *room = alloca(64 + (x & 1023));
  memset(room, x, 64);
  works();
  return room[x & 63];
}
STEP double realigned(double x) {
  double v[8] __attribute__((aligned(64)));
  for (int i = 0; i < 8; i++) v[i] = x * i;
  sink += (unsigned long)v;
  works();
  return v[sink & 7];
}
STEP int compare(const void *a, const void *b) {
  sink += leaf(*(unsigned long *)a);
  return *(unsigned long *)a < *(unsigned long *)b;
}
STEP void sorts(void) {
  unsigned long values[64];
  for (int i = 0; i < 64; i++) values[i] = rand();
  qsort(values, 64, sizeof(values[0]), compare);
}
STEP void tail_end(int x) { works(); sink += x; }
STEP void tail_begin(int x) { tail_end(x + 1); }
STEP void jumper(int depth) {
  if (!depth) { works(); longjmp(back, 1); }
  jumper(depth - 1);
  sink++;
}
STEP void jumps(void) { if (!setjmp(back)) jumper(5); works(); sink++; }
STEP void nested(int signal) { works(); sink++; }
STEP void handler(int signal) { works(); raise(SIGUSR1); works(); sink++; }
STEP void loads(void) {
  void *library = dlopen("libm.so.6", RTLD_NOW);
  double (*power)(double, double) = (double (*)(double, double))dlsym(library, "pow");
  for (int i = 0; i < 99; i++) sink += power(1.0 + i, 1.7);
  dlclose(library);
}
int main(void) {
  static char alternate[65536];
  stack_t stack = {.ss_sp = alternate, .ss_size = sizeof(alternate)};
  struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
  struct sigaction inner = {.sa_handler = nested};
  struct itimerval often = {{0, 9000}, {0, 9000}};
  static const int depths[] = {10, 120, 121, 122, 123, 124, 125, 126, 127, 128, 1000, 9000};
  sigaltstack(&stack, 0);
  sigaction(SIGALRM, &action, 0);
  sigaction(SIGUSR1, &inner, 0);
  setitimer(ITIMER_REAL, &often, 0);
  for (unsigned turn = 0;; turn++) {
    for (int i = 0; i < 12; i++) sink += recurse(depths[i], 3);
    sink += allocates(turn) + (long)realigned(turn);
    sorts();
    tail_begin(turn);
    jumps();
    loads();
  }
}
"""
)
_CALLS = {
    "main": {
        "recurse",
        "allocates",
        "realigned",
        "sorts",
        "tail_begin",
        "tail_end",
        "jumps",
        "loads",
    },
    "recurse": {"recurse", "works"},
    "allocates": {"works"},
    "realigned": {"works"},
    "sorts": {"compare"},
    "compare": {"leaf"},
    "works": {"leaf"},
    "tail_begin": {"tail_end"},
    "tail_end": {"works"},
    "jumps": {"jumper", "works"},
    "jumper": {"jumper", "works"},
    "handler": {"works", "nested"},
    "nested": {"works"},
}
"""What calls what, in the program; libc may be in between."""
_HANDLERS = {"handler", "nested"}

_RUST = r"""
use std::collections::BTreeMap;
use std::panic;
#[inline(never)]
fn leaf(n: u64) -> u64 { (0..3000u64).fold(n, |x, i| x.wrapping_mul(6364136223846793005) ^ i) }
#[inline(never)]
fn sorts(n: u64) -> u64 {
    let mut values: Vec<u64> = (0..200).map(|i| leaf(n + i) >> 3).collect();
    values.sort_by(|a, b| (a ^ leaf(*b) & 1).cmp(b));
    values[7]
}
#[inline(never)]
fn maps(n: u64) -> u64 {
    let map: BTreeMap<u64, String> = (0..99).map(|i| (leaf(n + i), format!("{i}"))).collect();
    map.values().map(|text| text.len() as u64).sum()
}
fn main() {
    panic::set_hook(Box::new(|_| ()));
    let mut sink = 0u64;
    loop {
        sink = sink.wrapping_add(sorts(sink)).wrapping_add(maps(sink));
        let caught = panic::catch_unwind(|| if leaf(sink) != 1 { panic!("again") });
        sink += caught.is_err() as u64;
    }
}
"""


def _check_calls(run: Run, program: Path) -> Counter[str]:
    """Every trace is a path that the program can take; how often each function was on one."""
    traces = Counter((each.walked.reason, *each.walked.frames) for each in run.late())
    seen: Counter[str] = Counter()
    for (reason, *frames), count in traces.items():
        if reason not in (Reason.COMPLETE, Reason.TOO_DEEP):
            continue
        names = names_of(run, program, frames)
        names = [name for name in names if name in _CALLS or name == "leaf"]  # no stubs
        for caller, called in pairwise(names):
            assert called in _CALLS.get(caller, ()) or called in _HANDLERS, names
        seen.update(dict.fromkeys(names, count))
        if reason is Reason.TOO_DEEP:
            assert len(frames) == MAX_DEPTH
            seen["too deep"] += count
    return seen


@pytest.mark.any_kernel
@pytest.mark.parametrize(
    ("compiler", "flags"),
    [
        pytest.param("gcc", "-O0", id="gcc-unoptimized", marks=pytest.mark.nightly),
        pytest.param("gcc", "-O2 -flto -fcf-protection=full -Wl,-z,lazy", id="gcc-lto-ibt"),
        pytest.param(
            "gcc",
            "-O3 -mavx2 -fno-plt -Wl,-z,now",
            id="gcc-avx2-no-plt",
            marks=pytest.mark.nightly,
        ),
        pytest.param("clang-19", "-O2", id="clang", marks=pytest.mark.needs("clang")),
        pytest.param("gcc", "-m32 -O2 -Wl,-z,lazy", id="gcc-32-bits", marks=_32_BITS),
        pytest.param(
            "gcc",
            "-m32 -O0 -no-pie",
            id="gcc-32-bits-unoptimized",
            marks=[_32_BITS, pytest.mark.nightly],
        ),
    ],
)
def test_shapes_of_stacks(tmp_path: Path, compiler: str, flags: str) -> None:
    source, program = tmp_path / "program.c", tmp_path / "program"
    source.write_text(_SHAPES)
    command = [compiler, "-fomit-frame-pointer", "-w", *flags.split(), "-o", program, source]
    subprocess.run([*command, "-ldl"], check=True)
    run = walk_run(program, samples=1500, copies_all=True, copies_per_second=0)
    check_counters(run)
    check_equality(run, remaps=True)
    assert share_in_bpf(run) > 0.7, run.ends  # libm is mapped anew, again and again
    seen = _check_calls(run, program)
    assert seen.keys() >= {"main", "recurse", "works", "leaf", "sorts"}, seen
    assert seen["too deep"], seen


@pytest.mark.any_kernel
@pytest.mark.needs("rustc")
def test_shapes_of_rust(tmp_path: Path) -> None:
    source, program = tmp_path / "program.rs", tmp_path / "program"
    source.write_text(_RUST)
    subprocess.run(["rustc", "-O", "-o", program, source], check=True)
    run = walk_run(program, samples=900, copies_all=True, copies_per_second=0)
    check_counters(run)
    check_equality(run)
    assert share_in_bpf(run) > 0.9, run.ends
    late = [each.walked for each in run.late()]
    assert sum(walk.reason is Reason.COMPLETE for walk in late) > 0.9 * len(late), run.ends


_ABORTING_RUST = """
use std::hint::black_box;
#[inline(never)] fn leaf(n: u64) -> u64 { (0..4000).fold(n, |sum, i| black_box(sum ^ i)) }
#[inline(never)] fn middle(n: u64) -> u64 { black_box(leaf(n)) + 1 }
fn main() { let mut n = 0; loop { n = black_box(middle(n & 7)); } }
"""


@pytest.mark.needs("rustc")
def test_rust_whose_panics_abort(tmp_path: Path) -> None:
    """The `main` that calls Rust's own has no entry."""
    source, program = tmp_path / "program.rs", tmp_path / "program"
    source.write_text(_ABORTING_RUST)
    subprocess.run(["rustc", "-O", "-C", "panic=abort", "-o", program, source], check=True)
    run = walk_run(program, samples=300, copies_all=True, copies_per_second=0)
    check_counters(run)
    check_equality(run)
    late = [each.walked for each in run.late()]
    assert sum(walk.reason is Reason.COMPLETE for walk in late) > 0.9 * len(late), run.ends


def test_the_verifier_is_done_with_the_walk_soon() -> None:
    spec = objects.spec("stack_walk").only("walk_sampled")
    begun = time.process_time()
    with load(spec) as loaded:
        seconds = time.process_time() - begun
        looked_at = loaded.programs["walk_sampled"].info.verified_insns
        print(f"{looked_at} instructions looked at, {seconds:.3f} s of CPU time to load")
    assert looked_at < 60_000
    assert slow_host() or seconds < 0.6  # 0.08 s to 0.11 s on a busy machine
