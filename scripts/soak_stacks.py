"""Walk user stacks for a long time: are they right, and how much does it take?

    sudo .venv/bin/python scripts/soak_stacks.py equality --samples 1000000
    sudo .venv/bin/python scripts/soak_stacks.py storm --seconds 3600 -- make -j8

`equality` runs several programs at once. Each sample is walked in BPF and copied, and what the walk
says must be what complete call frame information makes of the copy: all frames, and how it ends,
where the walk says that it is whole; the frames that it has where it gives up. Exit status 1 at the
first difference.

`storm` samples the whole machine beside a command (by default many short processes), as
`purebpf profile` does, and prints memory, tables, copies and losses over time. Exit status 1 if
samples were lost without being counted, or the second half grew by more than `--allowed-kib`.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from purebpf import objects
from purebpf.loader.load.load import load
from purebpf.loader.perf.perf_events import PerfEvents
from purebpf.observe.processes.sideband import SideBand
from purebpf.observe.unwind.process_stacks import ProcessStacks
from purebpf.observe.unwind.stack_walker import StackWalker, WalkedStack
from purebpf.symbols.address_spaces import AddressSpaces
from purebpf.symbols.budget import PROCESS, RUN, USER, Allowance, Budget
from purebpf.unwind.reason import Reason

_FINAL = (Reason.COMPLETE, Reason.FP_GUESS, Reason.TOO_DEEP)
_REPORTS = 20
_MOST_TGIDS = 4096
_BURST_S = 0.01
"""How long the programs run before they are stopped and their stacks read: rings hold that much."""
_PYTHON = r"""
import json, re, zlib, hashlib
def fibonacci(n): return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)
values = {str(i): [i] * 5 for i in range(500)}
while True:
    fibonacci(15)
    json.loads(json.dumps(values))
    re.sub(r"\d+", "x", "a1b22c333" * 100)
    zlib.decompress(zlib.compress(json.dumps(values).encode()))
    hashlib.sha256(bytes(9999)).hexdigest()
    sorted(values, key=lambda each: values[each][0])
"""
_PERL = r"""
sub deep { my $n = shift; return $n ? 1 + deep($n - 1) : 0 }
while (1) { deep(90); my %h = map { $_ => $_ * 2 } 1 .. 500; my @s = sort { $h{$a} <=> $h{$b} }
keys %h; my $t = join ",", @s; $t =~ s/(\d+)/<$1>/g; }
"""
_C = r"""
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
  char pad[x % 99 + 9];
  sink = (long)pad;
  return depth ? recurse(depth - 1, x + depth) * 3 + pad[3] : leaf(x);
}
STEP int compare(const void *a, const void *b) {
  sink += recurse(*(unsigned long *)a % 40, 3);
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
  struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
  struct itimerval often = {{0, 20000}, {0, 20000}};
  sigaltstack(&stack, 0);
  sigaction(SIGALRM, &action, 0);
  setitimer(ITIMER_REAL, &often, 0);
  for (;;) { sorts(); calls(); }
}
"""


@contextmanager
def programs() -> Iterator[list[subprocess.Popen[bytes]]]:
    """What equality is tried on: of each kind one that does not end."""
    source = Path(f"/tmp/soak_stacks_{os.getpid()}.c")
    built = source.with_suffix("")
    source.write_text(_C)
    subprocess.run(["gcc", "-O2", "-w", "-o", built, source], check=True)
    commands = [
        [str(built)],
        [sys.executable, "-c", _PYTHON],
        ["perl", "-e", _PERL],
        ["xz", "-6", "-k", "-c", "-T1", "/dev/urandom"],
        ["sh", "-c", "exec bzip2 -c < /dev/urandom"],
        ["openssl", "speed", "-seconds", "86400", "rsa2048"],
    ]
    quiet: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
    running = []
    try:
        for command in commands:
            try:
                running.append(subprocess.Popen(command, **quiet))
            except FileNotFoundError:
                print(f"no {command[0]} here")
        yield running
    finally:
        for child in running:
            child.kill()
            child.wait()
        source.unlink()
        built.unlink()


class Walks:
    """Walks stacks, follows processes, and counts.

    Args:
        tgids: only these processes; all if there are none.
        frequency: samples a second and CPU.
        budget: pays for the files that are read; None: what the commands allow.
        constants: of the program.
    """

    def __init__(
        self, tgids: list[int], frequency: int, budget: Budget | None = None, **constants: Any
    ) -> None:
        self._spaces = AddressSpaces()
        with ExitStack() as stack:
            spec = objects.spec("stack_walk").only("walk_sampled").resize(tgids=len(tgids) or 1)
            spec = spec.set(has_tgids=bool(tgids), **constants)
            self.loaded = stack.enter_context(load(spec))
            for tgid in tgids:
                self.loaded.maps["tgids"][tgid] = 1
            self.band = stack.enter_context(SideBand(pages=256))
            stacks = ProcessStacks(
                earlier=self._spaces.earlier, catch_up=self.follow, budget=budget
            )
            self.walker = stack.enter_context(StackWalker(self.loaded.maps, stacks, pages=1024))
            self.events = stack.enter_context(
                PerfEvents.sampling(frequency=frequency, event="cpu-clock", disabled=1)
            )
            for event in self.events:
                stack.enter_context(
                    self.loaded.programs["walk_sampled"].attach(event, enable=False)
                )
            self.events.enable()
            self.close = stack.pop_all().close

    def follow(self) -> None:
        """Take in what processes did."""
        for record in self.band.drain():
            self._spaces.feed(record)
            self.walker.feed(record)

    def forget_exited(self) -> None:
        """Forget processes that had exited at the last call, as the commands do."""
        self._spaces.forget_exited(())

    def drain(self) -> Iterator[WalkedStack]:
        """The stacks since the last time."""
        self.follow()
        yield from self.walker.drain()

    @property
    def stats(self) -> Counter[str]:
        """The program's counters."""
        total: Counter[str] = Counter()
        for counters in self.loaded.maps["stats"][0]:
            total.update({k: v for k, v in counters._asdict().items() if isinstance(v, int)})
        return total


def difference(each: WalkedStack) -> str:
    """What is wrong with a walk, by the copy of the same sample; "" if nothing is."""
    walk, copy = each.walked, each.trace
    if walk.reason not in _FINAL:  # whether the last frame is one it does not know
        certain = walk.frames[:-1] or walk.frames
        is_right = copy.frames[: len(certain)] == certain
    elif copy.reason is Reason.COPY_SHORT:
        is_right = walk.frames[: len(copy.frames)] == copy.frames
    else:
        is_right = walk == copy
    return "" if is_right else f"{each.comm} {each.tgid}:\n  walk {walk}\n  copy {copy}"


def _signal(children: list[subprocess.Popen[bytes]], number: int) -> None:
    for child in children:
        child.send_signal(number)


def equality(options: argparse.Namespace) -> int:
    """Compare so many samples."""
    started = time.monotonic()
    compared: Counter[str] = Counter()
    ends: Counter[str] = Counter()
    reports = 0
    endless = Allowance(1 << 60, 1e9)  # all samples of a process are copied: minutes of work
    with programs() as children:
        time.sleep(1)
        walks = Walks(
            [child.pid for child in children],
            options.frequency,
            Budget(dict.fromkeys((PROCESS, USER, RUN), endless)),
            copies_all=True,
            copies_per_second=0,
        )
        try:
            while compared.total() < options.samples:
                _signal(children, signal.SIGCONT)
                walks.events.enable()
                time.sleep(_BURST_S)
                walks.events.disable()
                _signal(children, signal.SIGSTOP)
                for each in walks.drain():
                    if not each.is_copied:
                        continue
                    problem = difference(each)
                    if problem:
                        print(problem)
                        return 1
                    compared[each.comm] += 1
                    ends[each.walked.reason.name] += 1
                if compared.total() >= reports * options.samples // _REPORTS:
                    reports += 1
                    took = time.monotonic() - started
                    print(f"{took:7.0f} s  {compared.total()} equal", flush=True)
            stats = walks.stats
        finally:
            walks.close()
    print(f"programs: {dict(compared)}")
    print(f"walks ended: {dict(ends.most_common())}")
    print(
        f"seen {stats['seen']}, walked {stats['walked']}, copied {stats['copied']}, ring full "
        f"{stats['output_full']}, lost {stats['lost']}"
    )
    print(f"{compared.total()} samples, 0 differences, {time.monotonic() - started:.0f} s")
    return 0


def _rss_kib() -> int:
    text = Path("/proc/self/status").read_text()
    return int(text.split("VmRSS:")[1].split()[0])


def storm(options: argparse.Namespace) -> int:
    """Sample the machine beside a command that starts many processes."""
    command = options.command or ["sh", "-c", "while :; do /bin/true; /bin/ls / >/dev/null; done"]
    quiet: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
    walks = Walks([], options.frequency)
    started = time.monotonic()
    ends: Counter[Reason] = Counter()
    rss: list[int] = []
    found = processes = 0
    forgotten = 0.0
    last_tgids: dict[int, None] = {}
    print("  time s  RSS KiB  tables KiB  processes  samples  copies  refused  cut %  full  lost")
    child = subprocess.Popen(command, **quiet, start_new_session=True)
    try:
        while (now := time.monotonic() - started) < options.seconds:
            time.sleep(0.02)
            for each in walks.drain():
                found += 1
                ends[each.trace.reason] += 1
                if each.tgid not in last_tgids:
                    last_tgids[each.tgid] = None
                    processes += 1
                if len(last_tgids) > _MOST_TGIDS:  # memory is what is measured
                    del last_tgids[next(iter(last_tgids))]
            if child.poll() is not None:
                child = subprocess.Popen(command, **quiet, start_new_session=True)
            if now - forgotten >= 1:
                forgotten = now
                walks.forget_exited()
            if now >= len(rss) * options.seconds / _REPORTS:
                rss.append(_rss_kib())
                stats = walks.stats
                cut = sum(count for reason, count in ends.items() if not reason.is_whole)
                share = 100 * cut / max(found, 1)
                print(
                    f"{now:8.0f} {rss[-1]:8} {walks.walker.tables.nbytes >> 10:11} {processes:10}"
                    f" {found:8} {stats['copied']:7} {stats['refused']:8} {share:6.2f}"
                    f" {walks.walker.tables.full:5} {stats['lost'] + walks.band.lost:5}",
                    flush=True,
                )
        walks.events.disable()
        found += sum(1 for _ in walks.drain())
        stats = walks.stats
    finally:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        walks.close()
    print(f"ends: { {reason.name: count for reason, count in ends.most_common()} }")
    uncounted = stats["copied"] + stats["sent"] - found
    grown = rss[-1] - rss[len(rss) // 2]
    print(f"not counted: {uncounted}; second half grew by {grown} KiB")
    return int(uncounted != 0 or grown > options.allowed_kib)


_SOAKS: dict[str, Callable[[argparse.Namespace], int]] = {"equality": equality, "storm": storm}


def main() -> int:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("which", choices=_SOAKS)
    parser.add_argument("--samples", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=3600.0)
    parser.add_argument("--frequency", type=int, default=0, help="default: 9997, storm: 99")
    parser.add_argument("--allowed-kib", type=int, default=8192)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    words = sys.argv[1:]
    at = words.index("--") if "--" in words else len(words)
    options = parser.parse_args(words[:at])
    options.command = words[at + 1 :]
    options.frequency = options.frequency or {"equality": 9997, "storm": 99}[options.which]
    return _SOAKS[options.which](options)


if __name__ == "__main__":
    sys.exit(main())
