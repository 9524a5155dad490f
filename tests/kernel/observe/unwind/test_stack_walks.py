"""Stacks walked in BPF are those that complete call frame information gives, sample by sample."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import pytest

from purebpf import objects
from purebpf.loader.load.load import load
from purebpf.observe.unwind.walk_tables import WalkTables
from purebpf.unwind.address_space import AddressSpace, CodeMapping
from purebpf.unwind.reason import Reason
from tests.support.programs.stack_walks import (
    LEAF,
    LEVELS,
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

_CHAIN = LEAF + LEVELS + "int main(void) { for (;;) sink += level1(sink); }"
_DEEP = (
    LEAF
    + r"""
STEP unsigned long recurse(int depth, unsigned long x) {
  return depth ? recurse(depth - 1, x + depth) * 3 + leaf(depth) : leaf(x);
}
int main(void) { for (;;) sink += recurse(sink % 300, 3); }
"""
)
_SHAPES = (
    LEAF
    + LEVELS
    + r"""
STEP int compare(const void *a, const void *b) {
  sink += level1(*(unsigned long *)a);
  return *(unsigned long *)a < *(unsigned long *)b;
}
STEP void sorts(void) {
  unsigned long values[64];
  for (int i = 0; i < 64; i++) values[i] = rand();
  qsort(values, 64, 8, compare);
}
STEP void calls(void) { for (int i = 0; i < 99; i++) sink += getppid() + strlen((char *)"x"); }
STEP void handler(int signal) { for (int i = 0; i < 2000; i++) sink += leaf(i); }
int main(void) {
  static char alternate[65536];
  stack_t stack = {.ss_sp = alternate, .ss_size = sizeof(alternate)};
  struct sigaction action = {.sa_handler = handler, .sa_flags = HANDLED};
  struct itimerval often = {{0, 20000}, {0, 20000}};
  sigaltstack(&stack, 0);
  sigaction(SIGALRM, &action, 0);
  setitimer(ITIMER_REAL, &often, 0);
  for (;;) { sorts(); calls(); }
}
"""
)
_EXECUTES = (
    LEAF
    + SIGNALLED
    + r"""
int main(int count, char **arguments) {
  spins_until_signal();
  execv(arguments[1], arguments + 1);
  return 1;
}
"""
)
_PYTHON = r"""
import json, re
def fibonacci(n): return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)
values = {str(i): [i] * 5 for i in range(500)}
while True:
    fibonacci(15)
    json.loads(json.dumps(values))
    re.sub(r"\d+", "x", "a1b22c333" * 100)
"""


@pytest.mark.parametrize("flags", [(), ("-static-pie",)], ids=["pie", "static-pie"])
def test_a_known_chain_is_walked_in_bpf(tmp_path: Path, flags: tuple[str, ...]) -> None:
    program = build(tmp_path, _CHAIN, *flags)
    run = walk_run(program)
    check_counters(run)
    assert ends_of_traces(run) <= {Reason.COMPLETE, Reason.FINISHED}
    assert share_in_bpf(run) > 0.98
    assert run.stats["copied"] < len(run.found) / 2
    chain = ["main", "level1", "level2", "level3", "level4", "level5", "leaf"]
    traces = Counter(tuple(each.trace.frames) for each in run.found if not each.is_copied)
    named = {trace: names_of(run, program, list(trace)) for trace in traces}
    assert all(names == chain[: len(names)] for names in named.values())
    in_leaf = sum(traces[trace] for trace, names in named.items() if names == chain)
    assert in_leaf > traces.total() / 2


@pytest.mark.parametrize(
    ("source", "flags"),
    [
        pytest.param(_CHAIN, [], id="chain", marks=pytest.mark.nightly),
        pytest.param(_DEEP, [], id="deep"),
        pytest.param(_SHAPES, ["-DHANDLED=0"], id="signals", marks=pytest.mark.nightly),
        pytest.param(_SHAPES, ["-DHANDLED=SA_ONSTACK"], id="alternate-stack"),
    ],
)
def test_walks_equal_the_evaluator(tmp_path: Path, source: str, flags: list[str]) -> None:
    run = walk_run(build(tmp_path, source, *flags), copies_all=True, copies_per_second=0)
    check_counters(run)
    check_equality(run)
    assert share_in_bpf(run) > 0.9


@pytest.mark.parametrize("command", ["python", "xz"])
def test_programs_of_the_system(tmp_path: Path, command: str) -> None:
    arguments = {
        "python": [sys.executable, "-c", _PYTHON],
        "xz": ["/usr/bin/xz", "-9", "-k", "-c", "-T1", "/dev/urandom"],
    }[command]
    if not Path(arguments[0]).exists():
        pytest.skip(f"there is no {arguments[0]}")
    run = walk_run(*arguments, samples=900, copies_all=True, copies_per_second=0)
    check_counters(run)
    check_equality(run)
    assert share_in_bpf(run) > 0.8


def test_another_program_at_the_same_addresses_is_not_walked_by_old_tables(tmp_path: Path) -> None:
    first = build(tmp_path, _EXECUTES, "-no-pie", name="first")
    second = build(tmp_path, _CHAIN, "-no-pie", "-O3", name="second")
    run = walk_run(first, second, signals=True, copies_all=True, copies_per_second=0)
    check_counters(run)
    check_equality(run)
    assert {each.comm for each in run.found} >= {"first", "second"}
    unknown = Counter(
        each.comm for each in run.found if each.walked.reason is Reason.PROCESS_UNKNOWN
    )
    assert unknown["first"]
    assert unknown["second"]


def test_walks_without_a_copy_say_so(tmp_path: Path) -> None:
    run = walk_run(build(tmp_path, _CHAIN), samples=100, unread=400, copies_per_second=10)
    check_counters(run)
    refused = [each for each in run.found if each.trace.reason is Reason.COPY_REFUSED]
    assert len(refused) == run.stats["refused"] > 20
    assert not any(each.is_copied or each.trace.reason.is_whole for each in refused)
    assert run.ends[Reason.PROCESS_UNKNOWN] > len(refused) / 2


def test_the_process_published_first_makes_room() -> None:
    spec = objects.spec("stack_walk").only("walk_sampled").resize(procs=2)
    with load(spec) as loaded, WalkTables(loaded.maps) as tables:
        space = AddressSpace([CodeMapping(4096, 8192, 0, None), CodeMapping(12288, 16384, 0, None)])
        for process in (7, 8, 7, 9):
            tables.publish(process, 1000 + process, space, lambda _: None)
        published = dict(loaded.maps["procs"].items())
        assert published.keys() == {7, 9}
        assert {each.count for each in published.values()} == {2}
        assert published[9].identity == 1009
        assert len({each.list for each in published.values()}) == 2
        assert tables.full == 0


def test_a_whole_walk_stays_whole_without_its_copy(tmp_path: Path) -> None:
    run = walk_run(build(tmp_path, _CHAIN), copies_all=True, copies_per_second=10)
    check_counters(run)
    sent = [each for each in run.found if not each.is_copied]
    assert len(sent) == run.stats["refused"] == run.stats["sent"] > 20
    whole = sum(each.trace.reason is Reason.COMPLETE for each in sent)
    copied = sum(each.walked.reason is Reason.COMPLETE for each in run.found if each.is_copied)
    assert whole + copied == run.ends[Reason.COMPLETE]
    assert whole > 10  # the first ones have no tables
