"""Copied stacks of live programs without frame pointers, unwound to what they really called."""

from __future__ import annotations

import os
import re
import subprocess
import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from purebpf import objects
from purebpf.loader.load.load import load
from purebpf.loader.perf.perf_events import PerfEvents
from purebpf.observe.instruments.stack_maps import sum_up
from purebpf.observe.unwind.copied_stack import CopiedStack
from purebpf.observe.unwind.copy_buffer import CopyBuffer
from purebpf.observe.unwind.process_stacks import ProcessStacks
from purebpf.symbols.budget import PROCESS, Allowance, Budget
from purebpf.unwind.reason import Reason
from purebpf.unwind.unwinder import Unwound
from tests.support.host.faults import slow_host
from tests.support.nightly import by_day

pytestmark = [
    pytest.mark.needs("bpf", "perf_event", "task_pt_regs", "gcc", "nm", "x86_64"),
]

_CHAIN = r"""
#define STEP __attribute__((noinline, noclone))
volatile unsigned long sink;
STEP unsigned long leaf(unsigned long x) {
  for (int i = 0; i < 200; i++) x = x * 6364136223846793005UL + i;
  return x;
}
STEP unsigned long level5(unsigned long x) { return leaf(x + 5) + 5; }
STEP unsigned long level4(unsigned long x) { return level5(x + 4) * 4; }
STEP unsigned long level3(unsigned long x) {
  char pad[x % 99 + 9];
  sink = (long)pad;
  return level4(x) + pad[3];
}
STEP unsigned long level2(unsigned long x) { return level3(x) ^ level3(x + 2); }
STEP unsigned long level1(unsigned long x) { return level2(x) - 1; }
int main(void) { for (;;) sink += level1(sink); }
"""

_SHAPES = r"""
#define _GNU_SOURCE
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>
#define STEP __attribute__((noinline, noclone))
volatile unsigned long sink;
STEP unsigned long leaf(unsigned long x) {
  for (int i = 0; i < 200; i++) x = x * 6364136223846793005UL + i;
  return x;
}
STEP unsigned long recurse(int depth, unsigned long x) {
  return depth ? recurse(depth - 1, x + depth) * 3 + depth : leaf(x);
}
STEP int compare(const void *a, const void *b) {
  sink += recurse(*(unsigned long *)a & 31, 3);
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
  struct sigaction action = {.sa_handler = handler};
  struct itimerval often = {{0, 20000}, {0, 20000}};
  sigaction(SIGALRM, &action, 0);
  setitimer(ITIMER_REAL, &often, 0);
  for (;;) { sorts(); calls(); }
}
"""


class Functions(NamedTuple):
    """The functions of a program, by address in its file."""

    starts: list[int]
    names: list[str]
    bias: int
    end: int

    def name(self, address: int) -> str:
        """The function of an address of the process; "" outside of the program."""
        if not self.bias <= address < self.end:
            return ""
        return self.names[bisect_right(self.starts, address - self.bias) - 1]


class Run(NamedTuple):
    """What a run of a program gave."""

    traces: list[tuple[CopiedStack, Unwound]]
    stats: dict[str, int]
    lost: int
    functions: Functions
    seconds: float

    def names(self, found: Unwound) -> list[str]:
        """The program's own functions in a trace, the leaf first; repeated ones once."""
        exact = [found.frames[0], *(address - 1 for address in found.frames[1:])]
        named = [self.functions.name(address) for address in exact]
        return [name for at, name in enumerate(named) if name and named[at - 1 : at] != [name]]


def _build(folder: Path, source: str, *flags: str, compiler: str = "gcc") -> Path:
    file = folder / ("program.c" if compiler == "gcc" else "program.cc")
    program = folder / "program"
    file.write_text(source)
    command = [compiler, "-O2", "-fomit-frame-pointer", "-w", *flags]
    subprocess.run([*command, "-o", program, file], check=True)
    return program


def _listed(program: Path) -> str:
    command = ["nm", "-n", "--defined-only", program]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@contextmanager
def _running(program: Path, listed: str = "") -> Iterator[tuple[int, Functions]]:
    child = subprocess.Popen([program])
    try:
        time.sleep(0.1)
        text = Path(f"/proc/{child.pid}/maps").read_text()
        mapped = re.findall(rf"^(\w+)-(\w+) .*{re.escape(str(program))}$", text, re.MULTILINE)
        start, end = int(mapped[0][0], 16), int(mapped[-1][1], 16)
        rows = [line.split() for line in (listed or _listed(program)).splitlines()]
        code = [(int(row[0], 16), row[2]) for row in rows if row[1] in "tT"]
        bias = start if code[0][0] < 0x400000 else 0
        yield child.pid, Functions([at for at, _ in code], [name for _, name in code], bias, end)
    finally:
        child.kill()
        child.wait()


_AT_MOST_S = 60
"""For a program that does not run, or has ended."""


def _run(program: Path, *, samples: int = 500, pages: int = 1024, **options: Any) -> Run:
    """Copy the stacks of a program, on each CPU 497 times a second, or 47 where all is emulated;
    and unwind them. It ends with the samples: how many a second has depends on what else runs.
    """
    if slow_host():
        samples //= 3
    stack_bytes = options.pop("stack_bytes", 16384)
    with ExitStack() as stack:
        listed = options.pop("listed", "")
        pid, functions = stack.enter_context(_running(program, listed))
        constants = {"has_tgids": True, "copies_per_second": 0, **options}
        spec = objects.spec("stack_copy").only("copy_stack").set(**constants)
        loaded = stack.enter_context(load(spec))
        loaded.maps["tgids"][pid] = 1
        buffer = stack.enter_context(
            CopyBuffer(loaded.maps["copies"], stack_bytes=stack_bytes, pages=pages)
        )
        stacks = stack.enter_context(ProcessStacks())
        events = stack.enter_context(
            PerfEvents.sampling(frequency=47 if slow_host() else 497, event="cpu-clock", disabled=1)
        )
        for event in events:
            stack.enter_context(loaded.programs["copy_stack"].attach(event, enable=False))
        events.enable()
        traces: list[tuple[CopiedStack, Unwound]] = []
        begun = time.monotonic()
        while len(traces) < samples and time.monotonic() < begun + _AT_MOST_S:
            time.sleep(0.02)
            traces += [(copy, stacks.unwind(copy)) for copy in buffer.drain()]
        events.disable()
        seconds = time.monotonic() - begun
        traces += [(copy, stacks.unwind(copy)) for copy in buffer.drain()]
        assert {copy.tgid for copy, _ in traces} <= {pid}
        return Run(traces, sum_up(loaded.maps["stats"]), buffer.lost, functions, seconds)


@pytest.mark.parametrize(
    "flags",
    by_day(
        [(), ("-static",), ("-no-pie",), ("-fcf-protection=full", "-O3")],
        [("-static",), ("-fcf-protection=full", "-O3")],
    ),
    ids=["pie", "static", "no-pie", "cf-protection"],
)
def test_every_stack_of_a_known_chain_is_whole(tmp_path: Path, flags: tuple[str, ...]) -> None:
    run = _run(_build(tmp_path, _CHAIN, *flags))
    stats = run.stats
    assert len(run.traces) == stats["sent"] > 20
    assert run.lost == 0
    outcomes = ("others", "outside_namespace", "no_registers", "refused", "sent")
    failed = ("output_full", "output_none", "output_failed")
    assert stats["seen"] == sum(stats[name] for name in (*outcomes, *failed))
    assert Counter(found.reason for _, found in run.traces) == {Reason.COMPLETE: len(run.traces)}
    chain = ["main", "level1", "level2", "level3", "level4", "level5", "leaf"]
    for _, found in run.traces:
        names = run.names(found)[::-1]
        names = names[names.index("main") :]
        assert names == chain[: len(names)]
    leaves = sum(run.names(found)[0] == "leaf" for _, found in run.traces)
    assert leaves > len(run.traces) // 2


def test_signals_callbacks_and_recursion(tmp_path: Path) -> None:
    run = _run(_build(tmp_path, _SHAPES), samples=900)
    assert len(run.traces) == run.stats["sent"] > 40
    assert Counter(found.reason for _, found in run.traces) == {Reason.COMPLETE: len(run.traces)}
    seen = Counter()
    for _, found in run.traces:
        names = run.names(found)[::-1]
        inner = names[names.index("main") + 1 :]
        if "handler" in inner:
            at = inner.index("handler")
            assert inner[at:] in (["handler"], ["handler", "leaf"])
            inner = inner[:at]
            seen["handler"] += 1
        if "compare" in inner:
            assert inner[:2] == ["sorts", "compare"]
            assert inner[2:] in ([], ["recurse"], ["recurse", "leaf"])
            seen["compare"] += 1
    assert seen["handler"] > 1
    assert seen["compare"] > 10


_COROUTINES = r"""
#include <ucontext.h>
#define STEP __attribute__((noinline, noclone))
volatile unsigned long sink;
static ucontext_t outer, inner;
static char room[65536];
STEP unsigned long leaf(unsigned long x) {
  for (int i = 0; i < 200; i++) x = x * 6364136223846793005UL + i;
  return x;
}
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
  inner.uc_link = &outer;
  makecontext(&inner, coroutine, 0);
  for (;;) { swapcontext(&outer, &inner); sink += leaf(1); }
}
"""

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


@pytest.mark.parametrize(
    ("source", "compiler"),
    [
        pytest.param(_COROUTINES, "gcc", id="coroutines"),
        pytest.param(_EXCEPTIONS, "g++", id="exceptions", marks=pytest.mark.needs("g++")),
    ],
)
def test_stacks_that_are_switched_or_unwound(tmp_path: Path, source: str, compiler: str) -> None:
    """libgcc writes the frame that it goes to over its own (uw_install_context_1) before it jumps:
    for these few instructions no rule holds, and a trace must not claim to be complete.
    """
    run = _run(_build(tmp_path, source, compiler=compiler))
    assert len(run.traces) == run.stats["sent"] > 20
    whole = [found for _, found in run.traces if found.reason is Reason.COMPLETE]
    assert len(whole) >= len(run.traces) * (0.9 if compiler == "g++" else 1)
    roots = {run.names(found)[-1] for found in whole if run.names(found)}
    assert roots <= {"_start", "coroutine", "main"}


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
def test_the_caller_of_a_leaf_of_go_is_there(tmp_path: Path) -> None:
    """A leaf of Go has no frame pointer of its own: without the SP table level2 would be missing.

    The program is stripped; its names are those of the same program with symbols.
    """
    (tmp_path / "program.go").write_text(_GO)
    cache = {**os.environ, "GOCACHE": str(tmp_path / "cache"), "HOME": str(tmp_path)}
    build = ["go", "build", "-o", "program", "program.go"]
    subprocess.run(build, cwd=tmp_path, env=cache, check=True)
    program = tmp_path / "program"
    listed = _listed(program)
    stripped = ["strip", "-o", "stripped", "program"]
    subprocess.run(stripped, cwd=tmp_path, check=True)
    run = _run(tmp_path / "stripped", listed=listed)
    leaves = [run.names(found) for _, found in run.traces if run.names(found)[0] == "main.leaf"]
    chain = ["main.leaf", "main.level2", "main.level1", "main.main", "runtime.main"]
    assert len(leaves) > 10
    assert {tuple(names[:5]) for names in leaves} == {tuple(chain)}
    assert {found.reason for _, found in run.traces if found.frames[2:]} <= {
        Reason.COMPLETE,
        Reason.COPY_SHORT,
        Reason.NO_UNWIND_INFO,
    }


def test_a_copy_that_is_too_short_is_said_to_be(tmp_path: Path) -> None:
    run = _run(_build(tmp_path, _CHAIN), stack_bytes=64, samples=150)
    assert {found.reason for _, found in run.traces} <= {Reason.COPY_SHORT, Reason.COMPLETE}
    short = [found for _, found in run.traces if found.reason is Reason.COPY_SHORT]
    assert len(short) > 3
    assert all(not found.reason.is_whole for found in short)


def test_copies_over_the_budget_are_refused_and_counted(tmp_path: Path) -> None:
    run = _run(_build(tmp_path, _CHAIN), copies_per_second=5, samples=45)
    cpus = len(os.sched_getaffinity(0))
    assert run.stats["refused"] > 0
    assert len(run.traces) == run.stats["sent"] <= cpus * (5 + 5 * run.seconds + 5)


def test_a_full_ring_is_counted(tmp_path: Path) -> None:
    with ExitStack() as stack:
        pid, _ = stack.enter_context(_running(_build(tmp_path, _CHAIN)))
        spec = objects.spec("stack_copy").only("copy_stack")
        loaded = stack.enter_context(load(spec.set(has_tgids=True, copies_per_second=0)))
        loaded.maps["tgids"][pid] = 1
        buffer = stack.enter_context(CopyBuffer(loaded.maps["copies"], pages=8))
        events = stack.enter_context(PerfEvents.sampling(frequency=497, event="cpu-clock"))
        for event in events:
            stack.enter_context(loaded.programs["copy_stack"].attach(event))
        deadline = time.monotonic() + _AT_MOST_S
        while sum_up(loaded.maps["stats"])["output_full"] <= 5 and time.monotonic() < deadline:
            time.sleep(0.02)
        events.disable()
        came = len(list(buffer.drain()))
        stats = sum_up(loaded.maps["stats"])
        assert 0 < came == stats["sent"]
        assert stats["output_full"] > 5
        assert buffer.lost == stats["output_full"]


def test_a_process_that_is_gone(tmp_path: Path) -> None:
    run = _run(_build(tmp_path, _CHAIN), samples=30)
    with ProcessStacks() as stacks:
        copy, _ = run.traces[0]
        found = stacks.unwind(copy)
        assert found == Unwound([copy.pc], Reason.PROCESS_GONE, 0)


def test_reading_files_has_a_budget(tmp_path: Path) -> None:
    with _running(_build(tmp_path, _CHAIN)) as (pid, functions):
        pc = functions.bias + functions.starts[-1]
        now_ns = time.monotonic_ns()
        copy = CopiedStack(now_ns, 0, pid, pid, "", False, pc, (1 << 40,) * 16, b"")  # noqa: FBT003
        budget = Budget({PROCESS: Allowance(nbytes=100, seconds=9.0)})
        with ProcessStacks(budget=budget) as stacks:
            assert stacks.unwind(copy) == Unwound([copy.pc], Reason.OVER_BUDGET, 0)
        assert budget.exceeded
        with ProcessStacks() as stacks:
            assert stacks.unwind(copy).reason is Reason.COPY_SHORT


def test_descriptors_are_given_back(tmp_path: Path) -> None:
    program = _build(tmp_path, _CHAIN)
    before = sorted(os.listdir("/proc/self/fd"))
    _run(program, samples=30)
    assert sorted(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize("size", [0, 12, 65536])
def test_impossible_sizes_of_copies(size: int) -> None:
    with pytest.raises(ValueError, match=f"cannot copy {size} bytes"):
        CopyBuffer(None, stack_bytes=size)
