"""Walks in BPF through code without rules: generated, or of compilers that make none."""

from __future__ import annotations

import subprocess
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
