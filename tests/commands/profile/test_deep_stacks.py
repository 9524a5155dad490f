"""Stacks of more frames than a program keeps: cut, or whole with `--call-graph deep`."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from purebpf.profile import Options, Profiler
from purebpf.results import Profile

pytestmark = pytest.mark.needs("bpf", "perf_event", "task_pt_regs", "vmlinux_btf", "gcc", "x86_64")
_PATIENCE_S = 60

RECURSION = r"""
#include <stdio.h>
volatile unsigned long sink;
__attribute__((noinline)) unsigned long leaf(unsigned long x) {
  for (int i = 0; i < 2000000; i++) sink += i ^ x;
  return sink;
}
__attribute__((noinline)) unsigned long recurse(int depth, unsigned long x) {
  unsigned long below = depth ? recurse(depth - 1, x + depth) : leaf(x);
  sink += below;
  return below * 3 + depth;
}
int main(void) {
  puts("ready");
  fflush(stdout);
  for (;;) sink += recurse(799, 3);
}
"""


@contextmanager
def running(folder: Path) -> Iterator[int]:
    """800 functions in one another, without frame pointers; the pid."""
    (folder / "deep.c").write_text(RECURSION)
    flags = ["-O1", "-fomit-frame-pointer", "-fno-optimize-sibling-calls"]
    subprocess.run(["gcc", *flags, "-o", folder / "deep", folder / "deep.c"], check=True)
    with subprocess.Popen([folder / "deep"], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            yield process.pid
        finally:
            process.kill()


def sample(pid: int, call_graph: str) -> Profile:
    """Some samples of its leaf."""
    end = time.monotonic() + _PATIENCE_S
    options = Options(pids=(pid,), frequency=99, call_graph=call_graph, duration_s=1)
    while True:
        with Profiler(options) as profiler:
            profiler.wait()
            profile = profiler.stop()
        if profile.total > 20 or time.monotonic() > end:
            return profile


def test_deep_stacks_are_whole_where_that_is_asked_for(tmp_path: Path) -> None:
    with running(tmp_path) as pid:
        cut, whole = sample(pid, "auto"), sample(pid, "deep")
    (truncated,) = (cause for cause in cut.loss.causes if cause.name == "truncated")
    assert truncated.lost
    assert "--call-graph deep" in truncated.what
    stacks = [row.user for row in whole.rows() if row.user and row.user[0].name == "leaf"]
    assert stacks
    for stack in stacks:
        names = [frame.name for frame in stack]
        assert names[: 1 + 800 + 1] == ["leaf", *["recurse"] * 800, "main"]
        assert names[-1] == "_start"
    assert not any(cause.lost for cause in whole.loss.causes if cause.name == "truncated")
