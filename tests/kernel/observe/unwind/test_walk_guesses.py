"""Walks in BPF through code without rules: generated, or of compilers that make none."""

from __future__ import annotations

import os
import re
import subprocess
from bisect import bisect_right
from collections import Counter
from itertools import pairwise, takewhile
from pathlib import Path

import pytest

from purebpf.unwind.reason import Reason
from tests.support.programs.stack_walks import (
    LEAF,
    LEVELS,
    Run,
    build,
    check_counters,
    check_equality,
    names_of,
    own_names,
    share_in_bpf,
    walk_run,
)

pytestmark = [
    pytest.mark.needs("bpf", "perf_event", "task_pt_regs", "vmlinux_btf", "gcc", "nm", "x86_64"),
]

_CHAIN = LEAF + LEVELS + "int main(void) { for (;;) sink += level1(sink); }"

_LOW_FRAME = """
__attribute__((optimize("no-omit-frame-pointer"))) int main(void) { return spins() + 1; }
"""

_NODE = """
function leaf(n) { let x = n; for (let i = 0; i < 3000; i++) x = (x * 31 + i) | 0; return x; }
function level2(n) { return leaf(n) + leaf(n + 1); }
function level1(n) { return level2(n) + 1; }
let sink = 0;
for (;;) sink = level1(sink);
"""

_JAVA = """
public class Spins {
  static int leaf(int n) { for (int i = 0; i < 3000; i++) n = n * 31 + i; return n; }
  static int level2(int n) { return leaf(n) + leaf(n + 1); }
  static int level1(int n) { return level2(n) + 1; }
  public static void main(String[] given) { int sink = 0; for (;;) sink += level1(sink); }
}
"""


def _check_guesses(run: Run, share: float) -> None:
    """Nearly every walk ends where a stack does, and says that it guessed."""
    check_counters(run)
    check_equality(run)
    assert share_in_bpf(run) > 0.95, run.ends
    late = [each.walked for each in run.late()]
    whole = [walk for walk in late if walk.reason.is_whole]
    assert len(whole) >= share * len(late), run.ends
    assert any(walk.guessed for walk in whole)
    assert all(bool(walk.guessed) == (walk.reason is Reason.FP_GUESS) for walk in whole)


def test_code_without_rules_is_walked_by_its_frame_pointers(tmp_path: Path) -> None:
    flags = ("-fno-omit-frame-pointer", "-mno-omit-leaf-frame-pointer")
    program = build(tmp_path, _CHAIN, *flags, "-fno-asynchronous-unwind-tables")
    run = walk_run(program, copies_all=True, copies_per_second=0)
    _check_guesses(run, 0.99)
    guessed = [each.walked for each in run.late() if each.walked.reason is Reason.FP_GUESS]
    assert len(guessed) > len(run.late()) * 0.95
    chain = ["main", "level1", "level2", "level3", "level4", "level5", "leaf"]
    whole = [names_of(run, program, walk.frames) == chain for walk in guessed]
    assert sum(whole) > len(whole) / 2


def test_code_without_rules_or_frame_pointers_skips_no_caller(tmp_path: Path) -> None:
    """The frame pointer is that of a function far below: nothing between is left out for it.

    A leaf's caller is at the stack pointer; whoever called that one is not known.
    """
    callers = {"leaf": {"level5"}, "level5": {"level4"}, "level4": {"level3"}}
    callers |= {"level3": {"level2"}, "level2": {"level1"}, "level1": {"spins"}}
    spins = "STEP int spins(void) { for (;;) sink += level1(sink); }"
    source = LEAF + LEVELS + spins + _LOW_FRAME
    for flags in (["-fomit-frame-pointer"], ["-fno-omit-frame-pointer"]):
        options = ["-fno-asynchronous-unwind-tables", *flags]
        program = build(tmp_path, source, *options, name=f"program{flags[0]}")
        run = walk_run(program, copies_all=True, copies_per_second=0)
        check_counters(run)
        check_equality(run)
        found = Counter(
            (tuple(own_names(run, program, each.walked.frames)), each.walked.reason)
            for each in run.late()
        )
        for (names, reason), count in found.items():
            for callee, caller in pairwise(takewhile(lambda name: name[:1] != "_", names)):
                assert caller in callers.get(callee, {"main"}), (names, reason, count)
        in_leaf = sum(count for (names, _), count in found.items() if names[:1] == ("leaf",))
        called = sum(
            count for (names, _), count in found.items() if names[:2] == ("leaf", "level5")
        )
        assert called > 0.95 * in_leaf > 0


@pytest.mark.any_kernel
@pytest.mark.needs("node")
def test_code_generated_by_node(tmp_path: Path) -> None:
    script = tmp_path / "spins.js"
    script.write_text(_NODE)
    run = walk_run("node", script, samples=900, copies_all=True, copies_per_second=0)
    _check_guesses(run, 0.95)


@pytest.mark.any_kernel
@pytest.mark.needs("javac")
def test_code_generated_by_java(tmp_path: Path) -> None:
    source = tmp_path / "Spins.java"
    source.write_text(_JAVA)
    subprocess.run(["javac", "-d", tmp_path, source], check=True)
    command = ["java", "-XX:+PreserveFramePointer", "-XX:+UseSerialGC", "-cp", tmp_path, "Spins"]
    run = walk_run(*command, samples=900, copies_all=True, copies_per_second=0)
    _check_guesses(run, 0.9)


_GENERATED = r"""
#include <string.h>
#include <sys/mman.h>
int main(void) {
  static const unsigned char code[] = {
    0x55,              // push %rbp
    0x31, 0xed,        // xor %ebp, %ebp: a register like others
    0x89, 0xf9,        // mov %edi, %ecx
    0xff, 0xc9,        // dec %ecx
    0x75, 0xfc,        // jne back to it
    0x5d, 0xc3,        // pop %rbp; ret
  };
  void *at = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memcpy(at, code, sizeof(code));
  for (;;) ((void (*)(int))at)(1 << 20);
}
"""


def test_a_register_of_0_is_not_the_end_of_a_stack(tmp_path: Path) -> None:
    """Generated code without frame pointers: PHP's looks like that."""
    run = walk_run(build(tmp_path, _GENERATED, "-O2"), copies_all=True, copies_per_second=0)
    check_counters(run)
    check_equality(run)
    walks = [each.walked for each in run.late()]
    ends = Counter(walk.reason for walk in walks if len(walk.frames) == 1)
    assert ends[Reason.NO_UNWIND_INFO] > 0.9 * len(walks)
    # a slow machine may not have built the tables of `main` by then
    assert ends.keys() <= {Reason.NO_UNWIND_INFO, Reason.NOT_BUILT}


_GO = """package main
var sink int
//go:noinline
func leaf(n int) int { for i := 0; i < 300; i++ { n = n*3 + i }; return n }
//go:noinline
func level2(n int) int { return leaf(n) + leaf(n + 1) }
//go:noinline
func level1(n int) int { return level2(n) + 1 }
func main() { for { sink += level1(sink) } }
"""


@pytest.mark.any_kernel
@pytest.mark.needs("go")
def test_code_of_go(tmp_path: Path) -> None:
    """Go's SP table says where the caller is, of leaves without a frame pointer as well."""
    (tmp_path / "program.go").write_text(_GO)
    cache = {**os.environ, "GOCACHE": str(tmp_path / "cache"), "HOME": str(tmp_path)}
    for flags, name in (("", "program"), ("-s -w", "stripped")):
        command = ["go", "build", f"-ldflags={flags}", "-o", name, "program.go"]
        subprocess.run(command, cwd=tmp_path, env=cache, check=True)
    for name in ("program", "stripped"):  # .debug_frame of one lacks what ends a stack of Go
        run = walk_run(tmp_path / name, copies_all=True, copies_per_second=0)
        check_counters(run)
        check_equality(run)
        reasons = Counter(each.walked.reason for each in run.late())
        assert reasons[Reason.COMPLETE] >= 0.98 * reasons.total(), reasons
    listed = subprocess.run(
        ["nm", "-n", tmp_path / "program"], capture_output=True, text=True, check=True
    )
    rows = [line.split() for line in listed.stdout.splitlines()]
    starts = [int(row[0], 16) for row in rows if row[1] in "tT"]
    names = [row[2] for row in rows if row[1] in "tT"]
    traces = [
        [names[bisect_right(starts, at - bool(n)) - 1] for n, at in enumerate(each.walked.frames)]
        for each in run.late()
    ]
    leaves = [tuple(trace[:5]) for trace in traces if trace[0] == "main.leaf"]
    assert len(leaves) > len(traces) / 2
    assert set(leaves) == {("main.leaf", "main.level2", "main.level1", "main.main", "runtime.main")}


_GO_COLLECTS = """package main
type node struct { l, r *node; pad [6]int }
var sink *node
//go:noinline
func tree(d int) *node {
	if d == 0 { return &node{} }
	return &node{l: tree(d - 1), r: tree(d - 1)}
}
func main() { for { sink = tree(12) } }
"""
_SWITCH = "runtime.systemstack.abi0"


def _build_go(folder: Path, source: str) -> Path:
    (folder / "program.go").write_text(source)
    cache = {**os.environ, "GOCACHE": str(folder / "cache"), "HOME": str(folder)}
    subprocess.run(["go", "build", "program.go"], cwd=folder, env=cache, check=True)
    return folder / "program"


@pytest.mark.any_kernel
@pytest.mark.needs("go")
def test_stacks_of_go_go_on_where_they_are_changed(tmp_path: Path) -> None:
    """Frame pointers lead from runtime.systemstack past its caller, which its stack still has."""
    program = _build_go(tmp_path, _GO_COLLECTS)
    run = walk_run(program, copies_all=True, copies_per_second=0)
    check_counters(run)
    check_equality(run)
    callers: Counter[str] = Counter()
    for each in run.late():
        names = own_names(run, program, each.walked.frames)
        for inner, outer in pairwise(names):
            if inner == _SWITCH:
                callers[outer] += 1
        if each.walked.reason.is_whole:
            assert _SWITCH not in names[:1]
    assert callers
    calls = _calls_of(program, _SWITCH)
    assert {*callers} <= calls


def _calls_of(program: Path, callee: str) -> set[str]:
    """Return the functions that call one directly, by objdump."""
    command = ["objdump", "-d", "--no-show-raw-insn", str(program)]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found, function = set(), ""
    for line in listed.splitlines():
        if line.endswith(">:"):
            function = line.partition("<")[2][:-2]
        elif f"<{callee}>" in line and "call" in line:
            found.add(function)
    return found


_CGO = """package main
/*
static volatile unsigned long turns;
extern long back(long);
static __attribute__((noinline)) long leaf(long n) {
	for (int i = 0; i < 400000; i++) turns += i ^ n;
	return n + turns;
}
static __attribute__((noinline)) long in_c(long n) { return leaf(n) + turns; }
static __attribute__((noinline)) long calls_back(long n) { return back(n) + turns; }
*/
import "C"
//go:noinline
func level2(n int64) int64 { return int64(C.in_c(C.long(n))) + 1 }
//go:noinline
func level1(n int64) int64 { return level2(n+1) + 1 }
//export back
func back(n C.long) C.long { return C.long(level1(int64(n))) }
func main() { n := int64(0); for { n = int64(C.calls_back(C.long(n & 7))) } }
"""
_CGO_CHAIN = (
    "main.main",
    "calls_back",
    "_cgoexp_back",
    "main.level1",
    "main.level2",
    "in_c",
    "leaf",
)


@pytest.mark.any_kernel
@pytest.mark.needs("go")
def test_calls_from_go_to_c_and_back(tmp_path: Path) -> None:
    """The stacks of a goroutine and of its thread alternate; both have each other's callers."""
    program = _build_go(tmp_path, _CGO)
    run = walk_run(program, samples=2400, copies_all=True, copies_per_second=0)
    check_counters(run)
    chains: Counter[tuple[str, ...]] = Counter()
    for each in run.late():
        names = own_names(run, program, each.walked.frames)
        if "leaf" in names:
            names = [re.sub(r"_cgoexp_[0-9a-f]+_", "_cgoexp_", name) for name in names]
            own = tuple(name for name in reversed(names) if name in _CGO_CHAIN)
            chains[own if each.walked.reason.is_whole else ("cut",)] += 1
    assert {chain for chain in chains if chain != ("cut",)} == {_CGO_CHAIN}
    assert chains[_CGO_CHAIN] > 20


_32_BITS = r"""
volatile unsigned sink;
__attribute__((noinline, noclone)) unsigned leaf(unsigned x) {
  volatile char room[40];
  room[x % 40] = x;
  for (int i = 0; i < 200; i++) x = x * 1664525 + i + room[3];
  return x;
}
__attribute__((noinline, noclone)) unsigned level2(unsigned x) { return leaf(x + 2) + 2; }
__attribute__((noinline, noclone)) unsigned level1(unsigned x) { return level2(x) + 1; }
void main(void) { for (;;) sink += level1(sink); }
__asm__(".globl _start\n_start: xor %ebp, %ebp\n call main\n hlt");
"""


def test_32_bit_code_without_rules_is_followed_by_frame_pointers_and_said_to_be(
    tmp_path: Path,
) -> None:
    source, program = tmp_path / "program.c", tmp_path / "program"
    source.write_text(_32_BITS)
    flags = ("-m32", "-O2", "-fno-omit-frame-pointer", "-no-pie", "-fno-pie", "-nostdlib")
    flags += ("-static", "-w", "-fno-asynchronous-unwind-tables")
    subprocess.run(["gcc", *flags, "-o", program, source], check=True)
    try:
        with subprocess.Popen([program]) as child:
            child.kill()
    except OSError as error:
        pytest.skip(f"this kernel does not run 32-bit programs: {error}")
    run = walk_run(program, copies_all=True, copies_per_second=0)
    check_counters(run)
    # a slow machine may not have built the tables by then
    assert set(run.ends) <= {Reason.COMPAT32, Reason.PROCESS_UNKNOWN, Reason.NOT_BUILT}
    found = [each for each in run.found if each.walked.reason is not Reason.NOT_BUILT]
    assert all(each.trace.reason is Reason.COMPAT32 for each in found)
    names = Counter(tuple(names_of(run, program, each.walked.frames)) for each in found)
    assert names["main", "level1", "level2", "leaf"] > names.total() / 2
    assert not any(each.trace.reason.is_whole for each in run.found)


@pytest.mark.parametrize("rules", [(), ("-fno-asynchronous-unwind-tables",)], ids=["rules", "none"])
def test_frame_pointers_from_the_caller_of_the_leaf_on(
    tmp_path: Path, rules: tuple[str, ...]
) -> None:
    """A leaf without a frame hides its caller from frame pointers; it is at the stack pointer."""
    program = build(tmp_path, _CHAIN, "-fno-omit-frame-pointer", *rules)
    run = walk_run(program, walks_frame_pointers=True)
    check_counters(run)
    late = [each.walked for each in run.late()]
    names = Counter(tuple(names_of(run, program, walk.frames)) for walk in late)
    chain = ("main", "level1", "level2", "level3", "level4", "level5", "leaf")
    assert names[chain] > names.total() / 2
    assert all(walk.guessed for walk in late if len(walk.frames) > 2)
    assert not any(walk.reason is Reason.COMPLETE for walk in late if len(walk.frames) > 2)
