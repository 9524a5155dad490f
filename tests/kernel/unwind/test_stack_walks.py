"""Stacks walked in BPF are those that complete call frame information gives, sample by sample."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from array import array
from bisect import bisect_right
from collections import Counter
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from purebpf import objects
from purebpf.kernel.load.load import load
from purebpf.kernel.perf.perf_events import PerfEvents
from purebpf.kernel.unwind import word_shards
from purebpf.kernel.unwind.stack_walker import StackWalker, WalkedStack
from purebpf.kernel.unwind.walk_tables import WalkTables
from purebpf.kernel.unwind.word_shards import SHARD_WORDS, NoRoomError, WordShards
from purebpf.unwind.address_space import AddressSpace, CodeMapping
from purebpf.unwind.reason import Reason

pytestmark = [
    pytest.mark.needs("bpf", "perf_event", "task_pt_regs", "vmlinux_btf", "gcc", "nm", "x86_64"),
]

_LEAF = r"""
#define _GNU_SOURCE
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>
#define STEP __attribute__((noinline, noclone))
volatile unsigned long sink;
STEP unsigned long leaf(unsigned long x) {
  for (int i = 0; i < 200; i++) x = x * 6364136223846793005UL + i;
  return x;
}
"""
_LEVELS = r"""
STEP unsigned long level5(unsigned long x) { return leaf(x + 5) + 5; }
STEP unsigned long level4(unsigned long x) { return level5(x + 4) * 4; }
STEP unsigned long level3(unsigned long x) {
  char pad[x % 99 + 9];
  sink = (long)pad;
  return level4(x) + pad[3];
}
STEP unsigned long level2(unsigned long x) { return level3(x) ^ level3(x + 2); }
STEP unsigned long level1(unsigned long x) { return level2(x) - 1; }
"""
_CHAIN = _LEAF + _LEVELS + "int main(void) { for (;;) sink += level1(sink); }"
_DEEP = (
    _LEAF
    + r"""
STEP unsigned long recurse(int depth, unsigned long x) {
  return depth ? recurse(depth - 1, x + depth) * 3 + leaf(depth) : leaf(x);
}
int main(void) { for (;;) sink += recurse(sink % 300, 3); }
"""
)
_SHAPES = (
    _LEAF
    + _LEVELS
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
_COROUTINES = (
    _LEAF
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
_EXECUTES = (
    _LEAF
    + r"""
STEP void spins(void) { while (clock() < CLOCKS_PER_SEC) sink += leaf(1); }
int main(int count, char **arguments) {
  spins();
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


class Run(NamedTuple):
    """What a run gave: samples, counters, and walks by how they ended."""

    found: list[WalkedStack]
    stats: Counter[str]
    ends: Counter[Reason]
    tables_full: int
    maps: str

    def late(self) -> list[WalkedStack]:
        """Those from a second after the first on."""
        first = min(each.time_ns for each in self.found)
        return [each for each in self.found if each.time_ns > first + 10**9]


def _build(folder: Path, source: str, *flags: str, name: str = "program") -> Path:
    program = folder / name
    program.with_suffix(".c").write_text(source)
    command = ["gcc", "-O2", "-fomit-frame-pointer", "-w", *flags, "-o", program]
    subprocess.run([*command, program.with_suffix(".c")], check=True)
    return program


def _run(*command: Any, seconds: float = 2.5, unread: float = 0, **constants: Any) -> Run:
    """Walk the stacks of a command at 497 Hz on each CPU, not reading for the first `unread` s."""
    with ExitStack() as stack:
        quiet = {"stdout": subprocess.DEVNULL, "stdin": subprocess.DEVNULL}
        child = subprocess.Popen(list(map(str, command)), **quiet)
        stack.callback(child.wait)
        stack.callback(child.kill)
        time.sleep(0.2)
        spec = objects.spec("stack_walk").only("walk_sampled")
        loaded = stack.enter_context(load(spec.set(has_tgids=True, **constants)))
        loaded.maps["tgids"][child.pid] = 1
        walker = stack.enter_context(StackWalker(loaded.maps, pages=1024))
        events = stack.enter_context(
            PerfEvents.sampling(frequency=497, event="cpu-clock", disabled=1)
        )
        for event in events:
            stack.enter_context(loaded.programs["walk_sampled"].attach(event, enable=False))
        events.enable()
        time.sleep(unread)
        found: list[WalkedStack] = []
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            time.sleep(0.02)
            found += walker.drain()
        events.disable()
        found += walker.drain()
        stats: Counter[str] = Counter()
        ends: Counter[Reason] = Counter()
        for each in loaded.maps["stats"][0]:
            counters = each._asdict()
            for number, count in enumerate(counters.pop("ends")):
                if count:
                    ends[Reason(number)] += count
            stats.update(counters)
        maps = Path(f"/proc/{child.pid}/maps").read_text()
        assert {each.tgid for each in found} <= {child.pid}
        assert walker.lost_copies == stats["output_full"]
        return Run(found, stats, ends, walker.tables.full, maps)


def _check_counters(run: Run) -> None:
    """Every sample is counted once, and every walk is here."""
    stats = run.stats
    passed_over = stats["others"] + stats["outside_namespace"] + stats["no_registers"]
    assert stats["seen"] == passed_over + stats["walked"]
    assert stats["walked"] == run.ends.total()
    assert stats["walked"] == stats["copied"] + stats["sent"] + stats["lost"]
    assert len(run.found) == stats["copied"] + stats["sent"]
    assert stats["lost"] == run.tables_full == 0
    assert stats["frames"] == sum(len(each.walked.frames) for each in run.found)


def _check_equality(run: Run) -> None:
    """What BPF calls whole is what user space makes of the copy of the same sample."""
    whole = 0
    for each in run.found:
        assert each.is_copied
        by_bpf, by_copy = each.walked, each.trace
        if by_bpf.reason in (Reason.COMPLETE, Reason.TOO_DEEP):
            if by_copy.reason is Reason.COPY_SHORT:  # BPF reads the whole stack, and others
                assert by_bpf.frames[: len(by_copy.frames)] == by_copy.frames
                continue
            assert by_bpf == by_copy
            whole += 1
        else:  # whether the frame it stopped at is the first of its stack it does not know
            certain = by_bpf.frames[:-1] or by_bpf.frames
            assert by_copy.frames[: len(certain)] == certain
    assert whole > 20


def _share_in_bpf(run: Run) -> float:
    late = run.late()
    assert len(late) > 20
    return sum(each.walked.reason in (Reason.COMPLETE, Reason.TOO_DEEP) for each in late) / len(
        late
    )


def _names(run: Run, program: Path, frames: list[int]) -> list[str]:
    """The program's own functions in a trace from main on, repeated ones once."""
    mapped = re.findall(rf"^(\w+)-(\w+) .*{re.escape(str(program))}$", run.maps, re.MULTILINE)
    bias, end = int(mapped[0][0], 16), int(mapped[-1][1], 16)
    listed = subprocess.run(["nm", "-n", program], capture_output=True, text=True, check=True)
    rows = [line.split() for line in listed.stdout.splitlines()]
    code = [(int(row[0], 16), row[2]) for row in rows if row[1] in "tT"]
    starts = [at for at, _ in code]
    exact = [frames[0], *(frame - 1 for frame in frames[1:])]
    names = [code[bisect_right(starts, at - bias) - 1][1] for at in exact if bias <= at < end]
    return names[names.index("main") :: -1] if "main" in names else []


@pytest.mark.parametrize("flags", [(), ("-static-pie",)], ids=["pie", "static-pie"])
def test_a_known_chain_is_walked_in_bpf(tmp_path: Path, flags: tuple[str, ...]) -> None:
    program = _build(tmp_path, _CHAIN, *flags)
    run = _run(program)
    _check_counters(run)
    assert {each.trace.reason for each in run.found} <= {Reason.COMPLETE, Reason.FINISHED}
    assert _share_in_bpf(run) > 0.98
    assert run.stats["copied"] < len(run.found) / 2
    chain = ["main", "level1", "level2", "level3", "level4", "level5", "leaf"]
    traces = Counter(tuple(each.trace.frames) for each in run.found if not each.is_copied)
    named = {trace: _names(run, program, list(trace)) for trace in traces}
    assert all(names == chain[: len(names)] for names in named.values())
    in_leaf = sum(traces[trace] for trace, names in named.items() if names == chain)
    assert in_leaf > traces.total() / 2


@pytest.mark.parametrize(
    ("source", "flags"),
    [
        pytest.param(_CHAIN, [], id="chain"),
        pytest.param(_DEEP, [], id="deep"),
        pytest.param(_SHAPES, ["-DHANDLED=0"], id="signals"),
        pytest.param(_SHAPES, ["-DHANDLED=SA_ONSTACK"], id="alternate-stack"),
    ],
)
def test_walks_equal_the_evaluator(tmp_path: Path, source: str, flags: list[str]) -> None:
    run = _run(_build(tmp_path, source, *flags), copies_all=True, copies_per_second=0)
    _check_counters(run)
    _check_equality(run)
    assert _share_in_bpf(run) > 0.9


def test_a_stack_that_begins_at_a_function_is_left_to_user_space(tmp_path: Path) -> None:
    """makecontext(3): the return address is the start of a function, after padding."""
    run = _run(_build(tmp_path, _COROUTINES), copies_all=True, copies_per_second=0)
    _check_counters(run)
    assert {each.trace.reason for each in run.found} <= {Reason.COMPLETE, Reason.FINISHED}
    for each in run.found:
        if each.walked.reason is Reason.COMPLETE:
            assert each.walked == each.trace
    assert run.ends[Reason.NO_UNWIND_INFO] > 20


@pytest.mark.parametrize("command", ["python", "xz"])
def test_programs_of_the_system(tmp_path: Path, command: str) -> None:
    arguments = {
        "python": [sys.executable, "-c", _PYTHON],
        "xz": ["/usr/bin/xz", "-9", "-k", "-c", "-T1", "/dev/urandom"],
    }[command]
    if not Path(arguments[0]).exists():
        pytest.skip(f"there is no {arguments[0]}")
    run = _run(*arguments, seconds=3, copies_all=True, copies_per_second=0)
    _check_counters(run)
    _check_equality(run)
    assert _share_in_bpf(run) > 0.8


def test_another_program_at_the_same_addresses_is_not_walked_by_old_tables(tmp_path: Path) -> None:
    first = _build(tmp_path, _EXECUTES, "-no-pie", name="first")
    second = _build(tmp_path, _CHAIN, "-no-pie", "-O3", name="second")
    run = _run(first, second, seconds=4, copies_all=True, copies_per_second=0)
    _check_counters(run)
    _check_equality(run)
    assert {each.comm for each in run.found} >= {"first", "second"}
    unknown = Counter(
        each.comm for each in run.found if each.walked.reason is Reason.PROCESS_UNKNOWN
    )
    assert unknown["first"]
    assert unknown["second"]


def test_walks_without_a_copy_say_so(tmp_path: Path) -> None:
    run = _run(_build(tmp_path, _CHAIN), seconds=0.5, unread=1.5, copies_per_second=20)
    _check_counters(run)
    refused = [each for each in run.found if each.trace.reason is Reason.COPY_REFUSED]
    assert len(refused) == run.stats["refused"] > 20
    assert not any(each.is_copied or each.trace.reason.is_whole for each in refused)
    assert run.ends[Reason.PROCESS_UNKNOWN] > len(refused) / 2


def test_shards_hand_out_each_word_once() -> None:
    spec = objects.spec("stack_walk").only("walk_sampled")
    with load(spec) as loaded, WordShards(loaded.maps["shards"]) as shards:
        pieces = [(shards.take(count), count) for count in (1, 9, SHARD_WORDS, 8, 3)]
        ends = sorted((at, at + count) for at, count in pieces)
        assert all(end <= start for (_, end), (start, _) in pairwise(ends))
        assert {at >> 18 for at, _ in pieces[:2]} == {0}
        assert pieces[2][0] == 1 << 18
        shards.write(pieces[1][0], array("I", range(9)))
        shards.write_word(pieces[1][0] + 8, 77)
        assert shards.read_word(pieces[1][0] + 8) == 77
        assert shards.read_word(pieces[0][0]) == 0
        with pytest.raises(NoRoomError):
            shards.take(SHARD_WORDS + 1)
        assert shards.nbytes == 3 * 4 * SHARD_WORDS


def test_a_piece_is_used_again_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = objects.spec("stack_walk").only("walk_sampled")
    with load(spec) as loaded, WordShards(loaded.maps["shards"]) as shards:
        first = shards.take_reusable(24)
        shards.give_back(first, 24)
        assert shards.take_reusable(24) != first
        monkeypatch.setattr(word_shards, "_GRACE_S", -1.0)
        other = shards.take_reusable(100)
        shards.give_back(other, 100)
        assert shards.take_reusable(24) != other
        assert shards.take_reusable(128) == other


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
    run = _run(_build(tmp_path, _CHAIN), copies_all=True, copies_per_second=30)
    _check_counters(run)
    sent = [each for each in run.found if not each.is_copied]
    assert len(sent) == run.stats["refused"] == run.stats["sent"] > 20
    whole = sum(each.trace.reason is Reason.COMPLETE for each in sent)
    copied = sum(each.walked.reason is Reason.COMPLETE for each in run.found if each.is_copied)
    assert whole + copied == run.ends[Reason.COMPLETE]
    assert whole > 20
