"""Programs that are walked in BPF, and what their walks must be like."""

from __future__ import annotations

import re
import signal
import subprocess
import time
from bisect import bisect_right
from collections import Counter
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from purebpf import objects
from purebpf.loader.load.load import load
from purebpf.loader.perf.perf_events import PerfEvents
from purebpf.observe.unwind.native_machine import native_code_bits
from purebpf.observe.unwind.stack_walker import StackWalker, WalkedStack
from purebpf.unwind.reason import Reason
from tests.support.host.faults import slow_host

LEAF = r"""
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
SIGNALLED = r"""
static volatile int is_signalled;
static void handles(int signal) { is_signalled = 1; }
STEP void spins_until_signal(void) {
  signal(SIGUSR1, handles);
  while (!is_signalled) sink += leaf(1);
}
"""
LEVELS = r"""
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


_AT_MOST_S = 60
"""For a program that does not run, or has ended."""


class Run(NamedTuple):
    """What a run gave: samples, counters, and walks by how they ended.

    `warm_ns`: when a quarter of the samples were read, and the tables had what they lacked.
    """

    found: list[WalkedStack]
    warm_ns: int
    stats: Counter[str]
    ends: Counter[Reason]
    tables_full: int
    maps: str

    def late(self) -> list[WalkedStack]:
        """Those that were taken when the tables had what the program does all the time."""
        return [each for each in self.found if each.time_ns > self.warm_ns]


def build(folder: Path, source: str, *flags: str, name: str = "program") -> Path:
    program = folder / name
    program.with_suffix(".c").write_text(source)
    command = ["gcc", "-O2", "-fomit-frame-pointer", "-w", *flags, "-o", program]
    subprocess.run([*command, program.with_suffix(".c")], check=True)
    return program


def walk_run(
    *command: Any, samples: int = 600, unread: int = 0, signals: bool = False, **constants: Any
) -> Run:
    """Walk the stacks of a command, on each CPU 497 times a second of its CPU time.

    It ends when a quarter of `samples` were read, and then half of them were taken: how many come
    in a second, and how long Python takes to read them, depends on what else runs. Where all is
    emulated, 47 times a second, and a third of the samples. The first `unread` samples are not
    read before there are so many. With `signals` the program then gets SIGUSR1.
    """
    if slow_host():
        samples, unread = samples // 3, unread // 3
    with ExitStack() as stack:
        quiet = {"stdout": subprocess.DEVNULL, "stdin": subprocess.DEVNULL}
        child = subprocess.Popen(list(map(str, command)), **quiet)
        stack.callback(child.wait)
        stack.callback(child.kill)
        time.sleep(0.2)
        spec = objects.spec("stack_walk").only("walk_sampled")
        machine = {"arm64_code_bits": native_code_bits()}
        loaded = stack.enter_context(load(spec.set(has_tgids=True, **machine, **constants)))
        loaded.maps["tgids"][child.pid] = 1
        walker = stack.enter_context(StackWalker(loaded.maps, pages=1024))
        events = stack.enter_context(
            PerfEvents.sampling(frequency=47 if slow_host() else 497, event="cpu-clock", disabled=1)
        )
        for event in events:
            stack.enter_context(loaded.programs["walk_sampled"].attach(event, enable=False))
        events.enable()
        found: list[WalkedStack] = []
        warm_ns = late = 0
        deadline = time.monotonic() + _AT_MOST_S
        while late < samples // 2 and time.monotonic() < deadline:
            time.sleep(0.02)
            if unread and sum(each.walked for each in loaded.maps["stats"][0]) < unread:
                continue
            new = list(walker.drain())
            found += new
            late += sum(warm_ns > 0 and each.time_ns > warm_ns for each in new)
            if not warm_ns and len(found) >= samples // 4:
                warm_ns = time.monotonic_ns()
                if signals:
                    child.send_signal(signal.SIGUSR1)
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
        return Run(found, warm_ns, stats, ends, walker.tables.full, maps)


def check_counters(run: Run) -> None:
    """Every sample is counted once, and every walk is here."""
    stats = run.stats
    passed_over = stats["others"] + stats["outside_namespace"] + stats["no_registers"]
    assert stats["seen"] == passed_over + stats["walked"]
    assert stats["walked"] == run.ends.total()
    assert stats["walked"] == stats["copied"] + stats["sent"] + stats["lost"]
    assert len(run.found) == stats["copied"] + stats["sent"]
    assert stats["lost"] == run.tables_full == 0
    assert stats["frames"] == sum(len(each.walked.frames) for each in run.found)


_FINAL = (
    *(Reason.COMPLETE, Reason.FP_GUESS, Reason.NO_UNWIND_INFO, Reason.TOO_DEEP),
    Reason.NO_CALLER,
)
"""Where a walk in BPF ends as one in user space does."""


def check_equality(run: Run, *, remaps: bool = False) -> None:
    """What BPF calls whole is what user space makes of the copy of the same sample.

    Args:
        run: of a program.
        remaps: it unmaps libraries: user space, which comes later, may not find their code.
    """
    whole = 0
    for each in run.found:
        if not each.is_copied:  # Python has not kept up with the samples
            assert run.stats["output_full"]
            continue
        by_bpf, by_copy = each.walked, each.trace
        if by_bpf.reason is Reason.TOO_DEEP:  # where user space goes on
            common = min(len(by_bpf.frames), len(by_copy.frames))
            assert by_bpf.frames[:common] == by_copy.frames[:common]
            assert by_copy.reason is Reason.COPY_SHORT or common == len(by_bpf.frames)
            whole += 1
        elif by_bpf.reason in _FINAL:
            if by_copy.reason is Reason.COPY_SHORT:  # BPF reads the whole stack, and others
                assert by_bpf.frames[: len(by_copy.frames)] == by_copy.frames
                continue
            if remaps and by_copy.reason is Reason.UNKNOWN_MAPPING:
                assert by_bpf.frames[: len(by_copy.frames)] == by_copy.frames
                continue
            assert by_bpf == by_copy
            whole += 1
        else:  # whether the frame it stopped at is the first of its stack it does not know
            certain = by_bpf.frames[:-1] or by_bpf.frames
            if by_bpf.reason is Reason.COMPAT32:  # guesses, which may lead out of the copy
                certain = by_bpf.frames[:1]
            if by_copy.reason is Reason.COPY_SHORT:  # BPF reads other stacks
                certain = certain[: len(by_copy.frames)]
            assert by_copy.frames[: len(certain)] == certain
    assert whole > 20


def ends_of_traces(run: Run) -> set[Reason]:
    """How they ended, but for those without a copy because Python has not kept up."""
    late = {Reason.COPY_LOST: run.stats["output_full"], Reason.COPY_REFUSED: run.stats["refused"]}
    return {each.trace.reason for each in run.found} - {why for why, count in late.items() if count}


def share_in_bpf(run: Run) -> float:
    late = run.late()
    assert len(late) > 20
    return sum(each.walked.reason in _FINAL for each in late) / len(late)


@cache
def _code_of(program: Path) -> list[tuple[int, str]]:
    """The functions of a program: where each begins, and its name."""
    kept = program.with_suffix(".nm")  # of a program that was built elsewhere
    if kept.exists():
        listed = kept.read_text()
    else:
        listed = subprocess.check_output(["nm", "-n", program], text=True)
    rows = [line.split() for line in listed.splitlines()]
    return [(int(row[0], 16), row[2]) for row in rows if row[1] in "tT"]


def names_of(run: Run, program: Path, frames: list[int]) -> list[str]:
    """The program's own functions in a trace from main on, repeated ones once."""
    names = own_names(run, program, frames)
    return names[names.index("main") :: -1] if "main" in names else []


def own_names(run: Run, program: Path, frames: list[int]) -> list[str]:
    """The program's own functions in a trace, the innermost first."""
    mapped = re.findall(rf"^(\w+)-(\w+) .*{re.escape(str(program))}$", run.maps, re.MULTILINE)
    bias, end = int(mapped[0][0], 16), int(mapped[-1][1], 16)
    code = _code_of(program)
    starts = [at for at, _ in code]
    bias = 0 if starts[0] >= bias else bias  # linked to where it is mapped
    exact = [frames[0], *(frame - 1 for frame in frames[1:])]
    inside = [at - bias for at in exact if int(mapped[0][0], 16) <= at < end]
    return [code[bisect_right(starts, at) - 1][1] for at in inside]
