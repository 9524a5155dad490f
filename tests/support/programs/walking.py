"""Walked stacks of processes that come and go, with and without who follows them."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Self

from purebpf import objects
from purebpf.loader.load.load import load
from purebpf.loader.perf.perf_events import PerfEvents
from purebpf.observe.processes.sideband import SideBand
from purebpf.observe.unwind.process_stacks import ProcessStacks
from purebpf.observe.unwind.stack_walker import StackWalker, WalkedStack
from purebpf.symbols.address_spaces import AddressSpaces
from purebpf.syscall.descriptor import Descriptor
from purebpf.unwind.reason import Reason
from tests.support.host.cgroups import made
from tests.support.host.faults import slow_host

__all__ = ["CHAIN", "LEVELS", "Walking", "build"]

LEVELS = r"""
#define STEP __attribute__((noinline, noclone))
volatile unsigned long sink;
STEP unsigned long leaf(unsigned long x) {
  for (int i = 0; i < 20000; i++) x = x * 6364136223846793005UL + i;
  return x;
}
STEP unsigned long level3(unsigned long x) { return leaf(x + 5) + 5; }
STEP unsigned long level2(unsigned long x) { return level3(x + 4) * 4; }
STEP unsigned long level1(unsigned long x) { return level2(x) - 1; }
"""
CHAIN = LEVELS + "int main(void) { for (;;) sink += level1(sink); }"


def build(folder: Path, source: str, *flags: str, name: str = "program", cc: str = "gcc") -> Path:
    """A program without frame pointers."""
    program = folder / name
    program.with_suffix(".c").write_text(source)
    command = [cc, "-O2", "-fomit-frame-pointer", "-w", *flags, "-o", program]
    subprocess.run([*command, program.with_suffix(".c")], check=True)
    return program


class Walking:
    """Walks every stack of the programs that it runs, until it is closed.

    Attributes:
        found: the stacks so far.
        spaces: what was mapped when, by the kernel's records.
    """

    def __init__(
        self, *, frequency: int = 499, follow: bool = True, pages: int = 1024, **constants: Any
    ) -> None:
        self.found: list[WalkedStack] = []
        self.spaces = AddressSpaces()
        self._keeps: Callable[[WalkedStack], bool] = lambda _: True
        with ExitStack() as stack:
            self._cgroup = stack.enter_context(made())
            stack.callback(self._kill_all)
            self._children: list[subprocess.Popen[bytes]] = []
            spec = objects.spec("stack_walk").only("walk_sampled").set(has_cgroup=True, **constants)
            self.loaded = stack.enter_context(load(spec))
            with Descriptor(os.open(self._cgroup, os.O_RDONLY)) as cgroup:
                self.loaded.maps["cgroup"][0] = cgroup.fileno()
            self._band = stack.enter_context(SideBand(pages=256)) if follow else None
            stacks = ProcessStacks(
                earlier=self.spaces.earlier if follow else None,
                catch_up=self.follow if follow else None,
            )
            self.walker = stack.enter_context(StackWalker(self.loaded.maps, stacks, pages=pages))
            if slow_host():  # Python would not keep up
                frequency //= 10
            events = stack.enter_context(
                PerfEvents.sampling(frequency=frequency, event="cpu-clock", disabled=1)
            )
            for event in events:
                stack.enter_context(
                    self.loaded.programs["walk_sampled"].attach(event, enable=False)
                )
            events.enable()
            self._events = events
            self._closing = stack.pop_all()

    def only(self, *comms: str) -> None:
        """Keep stacks of processes with these names."""
        self._keeps = lambda walked: walked.comm in comms

    def start(self, *command: Any) -> subprocess.Popen[bytes]:
        """Run a program; it is killed at the end, and what it started."""
        procs = os.open(self._cgroup / "cgroup.procs", os.O_WRONLY)
        try:
            child = subprocess.Popen(
                list(map(str, command)),
                stdout=subprocess.DEVNULL,
                stdin=subprocess.DEVNULL,
                preexec_fn=lambda: os.write(procs, b"0"),  # noqa: PLW1509 - there are none
            )
        finally:
            os.close(procs)
        self._children.append(child)
        return child

    def run(self, *command: Any) -> None:
        """Run a program to its end, which must be a good one."""
        assert self.start(*command).wait() == 0

    def _kill_all(self) -> None:
        while pids := (self._cgroup / "cgroup.procs").read_text().split():
            for pid in map(int, pids):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            for child in self._children:
                child.wait()

    def follow(self) -> None:
        """Take in what processes did."""
        if self._band is not None:
            for record in self._band.drain():
                self.spaces.feed(record)
                self.walker.feed(record)

    def drain(self) -> None:
        """Take in what happened, then the stacks."""
        self.follow()
        self.found += [walked for walked in self.walker.drain() if self._keeps(walked)]

    def wait(self, seconds: float) -> None:
        """Read every 10 ms."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            time.sleep(0.01)
            self.drain()

    def until(self, is_over: Callable[[], bool], at_most_s: float = 60) -> None:
        """Read every 10 ms until something holds."""
        deadline = time.monotonic() + at_most_s
        while not is_over() and time.monotonic() < deadline:
            self.wait(0.01)

    def collect(self, count: int, whole: int = 0) -> None:
        """Read until there are so many stacks, and so many walks in BPF that were whole."""
        self.until(lambda: len(self.found) >= count and self.missed[Reason.COMPLETE] >= whole)

    def stop(self) -> None:
        """Read what is left."""
        self._events.disable()
        self.drain()

    @property
    def ends(self) -> Counter[Reason]:
        """Traces by how they ended."""
        return Counter(walked.trace.reason for walked in self.found)

    @property
    def missed(self) -> Counter[Reason]:
        """Walks in BPF by how they ended."""
        return Counter(walked.walked.reason for walked in self.found)

    @property
    def stats(self) -> Counter[str]:
        """The program's counters."""
        total: Counter[str] = Counter()
        for counters in self.loaded.maps["stats"][0]:
            total.update({k: v for k, v in counters._asdict().items() if isinstance(v, int)})
        return total

    def close(self) -> None:
        """Stop; again is harmless."""
        self._closing.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
