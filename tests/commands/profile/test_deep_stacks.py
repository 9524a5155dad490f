"""Stacks of more frames than a program keeps: cut, or whole with `--call-graph deep`."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from purebpf.results import Cause, Profile
from purebpf.tools.profile import ProfileOptions, Profiler
from tests.support.nightly import by_day

pytestmark = pytest.mark.needs("bpf", "perf_event", "task_pt_regs", "vmlinux_btf", "gcc", "x86_64")
_PATIENCE_S = 120

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


def sample(pid: int, call_graph: str, is_enough: Callable[[Profile], bool]) -> Profile:
    """Some seconds of it; in a slow guest the first samples by tables come late."""
    end = time.monotonic() + _PATIENCE_S
    options = ProfileOptions(pids=(pid,), frequency=99, call_graph=call_graph, duration_s=2)
    while True:
        with Profiler(options) as profiler:
            profiler.wait()
            profile = profiler.stop()
        if is_enough(profile) or time.monotonic() > end:
            return profile
        options = options._replace(duration_s=2 * (options.duration_s or 2))


def truncated(profile: Profile) -> Cause:
    """What it says of stacks that lack their roots."""
    (cause,) = (cause for cause in profile.loss.causes if cause.name == "truncated")
    return cause


def whole_stacks(profile: Profile) -> list[list[str]]:
    """The functions of each stack with a leaf and the program's start."""
    stacks = ([frame.name for frame in row.user or ()] for row in profile.rows())
    return [names for names in stacks if names[:1] == ["leaf"] and names[-1] == "_start"]


def test_deep_stacks_are_cut_and_said_so(tmp_path: Path) -> None:
    with running(tmp_path) as pid:
        profile = sample(pid, "auto", lambda profile: truncated(profile).lost > 0)
    assert truncated(profile).lost
    assert "--call-graph deep" in truncated(profile).what


def test_deep_stacks_are_whole_where_that_is_asked_for(tmp_path: Path) -> None:
    with running(tmp_path) as pid:
        profile = sample(pid, "deep", lambda profile: bool(whole_stacks(profile)))
    assert whole_stacks(profile)
    for names in whole_stacks(profile):
        assert names[: 1 + 800 + 1] == ["leaf", *["recurse"] * 800, "main"]
    assert not truncated(profile).lost


_PYTHON = """
import sys
sys.setrecursionlimit(3000)
def leaf(n):
    for i in range(20000):
        n ^= i
    return n
def recurse(depth):
    return recurse(depth - 1) + 1 if depth else leaf(depth)
def begin(depth):
    return recurse(depth) + 1
print("ready", flush=True)
while True:
    begin(int(sys.argv[1]))
"""


def python_chains(profile: Profile) -> set[tuple[int, bool, str]]:
    """Of stacks with a leaf: the calls of recurse, whether begin is there, and the cut."""
    found = set()
    for row in profile.rows():
        names = [frame.name for frame in row.user or ()]
        if "leaf" in names:
            found.add((names.count("recurse"), "begin" in names, row.marks.end.cut))
    return found


@pytest.mark.parametrize("depth", by_day([120, 700, 2000], [700, 2000]))
def test_python_chains_are_whole_up_to_1000_frames(depth: int, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(_PYTHON)
    command = [sys.executable, tmp_path / "program.py", str(depth)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            profile = sample(process.pid, "deep", lambda profile: bool(python_chains(profile)))
        finally:
            process.kill()
    chains = python_chains(profile)
    whole = {chain for chain in chains if not chain[2]}
    if depth < 1000:
        assert whole == {(depth + 1, True, "")}
    else:
        assert not whole
        assert "too_deep" in {cut for _, _, cut in chains}
