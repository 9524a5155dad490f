"""Walks in BPF through code without rules: generated, or of compilers that make none."""

from __future__ import annotations

import os
import subprocess
from bisect import bisect_right
from pathlib import Path

import pytest

from purebpf.unwind.reason import Reason
from tests.support.stack_walks import (
    LEAF,
    LEVELS,
    Run,
    build,
    check_counters,
    check_equality,
    names_of,
    share_in_bpf,
    walk_run,
)

pytestmark = [
    pytest.mark.needs("bpf", "perf_event", "task_pt_regs", "vmlinux_btf", "gcc", "nm", "x86_64"),
]

_CHAIN = LEAF + LEVELS + "int main(void) { for (;;) sink += level1(sink); }"

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
    chain = ["main", "level1", "level2", "level3", "level4", "leaf"]  # GCC: no frame in `leaf`
    whole = [names_of(run, program, walk.frames) == chain for walk in guessed]
    assert sum(whole) > len(whole) / 2


@pytest.mark.needs("node")
def test_code_generated_by_node(tmp_path: Path) -> None:
    script = tmp_path / "spins.js"
    script.write_text(_NODE)
    run = walk_run("node", script, seconds=4, copies_all=True, copies_per_second=0)
    _check_guesses(run, 0.95)


@pytest.mark.needs("javac")
def test_code_generated_by_java(tmp_path: Path) -> None:
    source = tmp_path / "Spins.java"
    source.write_text(_JAVA)
    subprocess.run(["javac", "-d", tmp_path, source], check=True)
    command = ["java", "-XX:+PreserveFramePointer", "-XX:+UseSerialGC", "-cp", tmp_path, "Spins"]
    run = walk_run(*command, seconds=5, copies_all=True, copies_per_second=0)
    _check_guesses(run, 0.9)


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


@pytest.mark.needs("go")
def test_code_of_go(tmp_path: Path) -> None:
    """A leaf of Go has no frame pointer of its own: its SP table says where its caller is."""
    (tmp_path / "program.go").write_text(_GO)
    cache = {**os.environ, "GOCACHE": str(tmp_path / "cache"), "HOME": str(tmp_path)}
    for flags, name in (("", "program"), ("-s -w", "stripped")):
        command = ["go", "build", f"-ldflags={flags}", "-o", name, "program.go"]
        subprocess.run(command, cwd=tmp_path, env=cache, check=True)
    run = walk_run(tmp_path / "stripped", copies_all=True, copies_per_second=0)
    _check_guesses(run, 0.9)
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
