"""User stacks are whole without frame pointers: known chains, and programs of the system."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.support.nightly import by_day

pytestmark = pytest.mark.needs("bpf", "perf_event", "task_pt_regs", "vmlinux_btf", "gcc", "x86_64")

_STEP = "#define STEP __attribute__((noinline, noclone))\nvolatile unsigned long sink;\n"
_CHAIN = (
    _STEP
    + r"""
STEP unsigned long leaf(unsigned long x) {
  for (int i = 0; i < 200; i++) x = x * 6364136223846793005UL + i;
  return x;
}
STEP unsigned long level3(unsigned long x) { return leaf(x + 5) + 5; }
STEP unsigned long level2(unsigned long x) {
  char pad[x % 99 + 9];
  sink = (long)pad;
  return level3(x) + pad[3];
}
STEP unsigned long level1(unsigned long x) { return level2(x) ^ level2(x + 2); }
int main(void) { for (;;) sink += level1(sink); }
"""
)
_WAITS = (
    "#include <time.h>\n"
    + _STEP
    + r"""
STEP void waits(int n) { struct timespec t = {0, 5000000}; nanosleep(&t, 0); sink += n; }
STEP void wait2(int n) { waits(n + 1); sink++; }
STEP void wait1(int n) { wait2(n + 1); sink++; }
int main(void) { for (int i = 0;; i++) wait1(i); }
"""
)
_CXX = r"""
#include <algorithm>
#include <vector>
unsigned long sink;
__attribute__((noinline)) bool compare(unsigned long a, unsigned long b) {
  for (int i = 0; i < 300; i++) sink = sink * 31 + i;
  return a < b;
}
__attribute__((noinline)) void sorts() {
  std::vector<unsigned long> values(64);
  for (auto &value : values) value = sink += 7;
  std::sort(values.begin(), values.end(), compare);
}
int main() { for (;;) try { sorts(); throw 1; } catch (int) { sink++; } }
"""
_PYTHON = "def f(n): return n if n < 2 else f(n - 1) + f(n - 2)\nwhile True: f(18)"

ROOTS = {"_start", "__libc_start_call_main", "__clone3", "clone3", "clone"}
"""One of them is among the first functions, the very first may have no name."""
_PERL = "sub f { my $n = shift; $n < 2 ? $n : f($n-1) + f($n-2) } f(18) while 1"

Rows = list[tuple[int, list[str], str]]


def build(folder: Path, source: str, name: str, compiler: str = "gcc") -> Path:
    suffix = ".c" if compiler == "gcc" else ".cc"
    (folder / name).with_suffix(suffix).write_text(source)
    command = [compiler, "-O2", "-fomit-frame-pointer", "-w", "-o", folder / name]
    subprocess.run([*command, (folder / name).with_suffix(suffix)], check=True)
    return folder / name


def measured(command: str, *arguments: Any) -> tuple[Rows, dict[str, Any]]:
    """Rows as (weight, user stack from the root on, why it is cut), and facts."""
    done = subprocess.run(
        [sys.executable, "-m", "purebpf", command, "--format", "json", *map(str, arguments)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode in (0, 143), done.stderr  # of the command, which is ended by SIGTERM
    tree = json.loads(done.stdout)
    names = [frame.get("name", "?") for frame in tree["frames"]]
    rows = [
        (row["weight"], [names[at] for at in reversed(row["user"] or [])], row.get("cut", ""))
        for row in tree["stacks"]
    ]
    return rows, tree["about"]


def whole_share(rows: Rows) -> float:
    total = sum(weight for weight, stack, _ in rows if stack)
    assert total > 0
    return sum(weight for weight, stack, cut in rows if stack and not cut) / total


@pytest.mark.parametrize("mode", ["auto", "copy"])
def test_profile_shows_a_known_chain_whole(tmp_path: Path, mode: str) -> None:
    program = build(tmp_path, _CHAIN, "chain")
    rows, about = measured("profile", "-U", "-F", 299, "--call-graph", mode, 3, "--", program)
    assert about["call_graph"] == {"auto": "tables", "copy": "copy"}[mode]
    assert whole_share(rows) > 0.99
    chain = ["main", "level1", "level2", "level3", "leaf"]
    in_main: Counter[bool] = Counter()
    for weight, stack, _ in rows:
        if "main" in stack:
            own = stack[stack.index("main") :]
            in_main[own == chain[: len(own)]] += weight
    assert in_main[True] > 10
    assert not in_main[False]
    if mode == "copy":
        assert about["copies"] == about["counted"]


_DEEP = """
#include <time.h>
volatile unsigned long sink;
__attribute__((noinline)) void bottom(void)
{
	for (clock_t end = clock() + CLOCKS_PER_SEC / 4; clock() < end;)
		for (int i = 0; i < 100000; i++)
			sink += i;
}
__attribute__((noinline)) void recurse(int left)
{
	if (left)
		recurse(left - 1);
	else
		bottom();
	sink++;
}
int main(void) { recurse(300); }
"""


@pytest.mark.parametrize("mode", ["copy", "auto", "fp"])
def test_a_recursion_of_300_is_whole_from_copies_and_else_marked_as_cut(
    tmp_path: Path, mode: str
) -> None:
    program = build(tmp_path, _DEEP, "deep")
    rows, _ = measured("profile", "-U", "-F", 499, "--call-graph", mode, "--", program)
    deep = [(stack.count("recurse"), cut) for _, stack, cut in rows if "recurse" in stack]
    assert deep
    whole = {calls for calls, cut in deep if not cut}
    if mode == "copy":
        assert whole == {301}
    else:  # by tables, the first ones come as copies
        assert whole <= {301}
        assert any(cut for _, cut in deep)
        assert all(calls < 127 for calls, cut in deep if cut)


def test_by_frame_pointers_no_stack_claims_to_be_whole(tmp_path: Path) -> None:
    program = build(tmp_path, _CHAIN, "chain")
    rows, about = measured("profile", "-U", "-F", 299, "--call-graph", "fp", 2, "--", program)
    assert about["call_graph"] == "fp"
    assert {cut for _, stack, cut in rows if "leaf" in stack} == {"unverified"}
    assert all(stack[0] == "[unverified]" for _, stack, cut in rows if cut)


@pytest.mark.needs("task_pt_regs", "x86_64")
def test_by_frame_pointers_the_caller_of_a_leaf_without_a_frame_is_there(tmp_path: Path) -> None:
    """GCC gives `leaf` no frame also where frames are asked for."""
    source = tmp_path / "chain.c"
    source.write_text(_CHAIN)
    command = ["gcc", "-O2", "-fno-omit-frame-pointer", "-w", "-o", tmp_path / "chain", source]
    subprocess.run(command, check=True)
    rows, _ = measured(
        "profile", "-U", "-F", 299, "--call-graph", "fp", 2, "--", tmp_path / "chain"
    )
    leaves = [(weight, stack) for weight, stack, _ in rows if stack and stack[-1] == "leaf"]
    chain = ["main", "level1", "level2", "level3", "leaf"]
    assert sum(weight for weight, _ in leaves) > 10
    assert all(stack[-len(chain) :] == chain for _, stack in leaves)
    assert not any("leaf" in stack[:-1] for _, stack, _ in rows)


@pytest.mark.parametrize("name", by_day(["python", "xz", "perl", "c++"], ["python", "c++"]))
def test_profile_of_programs_has_whole_stacks(tmp_path: Path, name: str) -> None:
    commands: dict[str, list[Any]] = {
        "python": [sys.executable, "-c", _PYTHON],
        "xz": ["/usr/bin/xz", "-9", "-k", "-c", "-T1", "/dev/zero"],
        "perl": ["/usr/bin/perl", "-e", _PERL],
        "c++": ["/usr/bin/g++"],
    }  # fmt: skip
    command = commands[name]
    if not Path(command[0]).exists():
        pytest.skip(f"there is no {command[0]}")
    if name == "c++":
        command = [build(tmp_path, _CXX, "sorts", "g++")]
    with subprocess.Popen([*map(str, command)], stdout=subprocess.DEVNULL) as child:
        try:
            # Python frames would take the place of the interpreter's
            options = ("-U", "-F", 199, "--no-python")
            rows, about = measured("profile", *options, "-p", child.pid, 4)
        finally:
            child.kill()
    assert about["call_graph"] == "tables"
    assert whole_share(rows) > 0.99
    rooted = sum(weight for weight, stack, _ in rows if ROOTS & {*stack[:3]})
    total = sum(weight for weight, stack, _ in rows if stack)
    assert rooted > 0.9 * total


def test_offcpu_shows_where_a_thread_waits(tmp_path: Path) -> None:
    program = build(tmp_path, _WAITS, "waits")
    rows, about = measured("offcpu", 3, "--", program)
    assert about["call_graph"] == "tables"
    chain = ["main", "wait1", "wait2", "waits"]
    waits = [(weight, stack) for weight, stack, cut in rows if "waits" in stack and not cut]
    assert all(stack[stack.index("main") :][:4] == chain for _, stack in waits)
    assert all(stack[0] == "_start" for _, stack in waits)
    assert sum(weight for weight, _ in waits) > 1e9


def test_offcpu_walks_threads_that_slept_before_the_run(tmp_path: Path) -> None:
    source = _WAITS.replace("{0, 5000000}", "{100, 0}")
    with subprocess.Popen([build(tmp_path, source, "sleeps")]) as child:
        try:
            rows, _ = measured("offcpu", "-p", child.pid, 1.5)
        finally:
            child.kill()
    ((weight, stack, cut),) = [row for row in rows if row[1]]
    assert not cut
    assert stack[0] == "_start"
    assert stack[stack.index("main") :][:4] == ["main", "wait1", "wait2", "waits"]
    assert weight > 1e9


_TURNS = (
    "#include <pthread.h>\n#include <unistd.h>\n"
    + _STEP
    + r"""
int there[2], back[2];
STEP void take(int n) { char c; read(back[0], &c, 1); sink += n; }
STEP void turn2(int n) { write(there[1], "", 1); take(n + 1); sink++; }
STEP void turn1(int n) { turn2(n + 1); sink++; }
STEP void *answer(void *x) {
  for (char c; read(there[0], &c, 1) > 0;) write(back[1], "", 1);
  return x;
}
int main(void) {
  pthread_t other;
  pipe(there), pipe(back);
  pthread_create(&other, 0, answer, 0);
  for (int i = 0;; i++) turn1(i);
}
"""
)


@pytest.mark.parametrize("command", ["offcpu", "wall"])
def test_threads_that_switch_all_the_time_have_whole_stacks_from_the_start(
    tmp_path: Path, command: str
) -> None:
    """They wait a thousand times until there are tables, and few of these stacks can be copied."""
    with subprocess.Popen([build(tmp_path, _TURNS, "turns")]) as child:
        try:
            rows, about = measured(command, "-p", child.pid, 1)
        finally:
            child.kill()
    assert about["counted"] > 1000
    assert about["copies_lost"] == 0
    assert {cut for _, stack, cut in rows if stack} == {""}
    chains = [stack[stack.index("main") :][:4] for _, stack, _ in rows if "take" in stack]
    assert chains
    assert all(chain == ["main", "turn1", "turn2", "take"] for chain in chains)
