"""What call frame information costs to read, and a copied stack to unwind.

    python bench/unwind.py [--rounds 5] [--pure] [FILE ...]

Each file whole (rows and windows), then 1,000 of its windows one by one, in CPU time: the best of
some rounds. Stacks: a chain of 20 frames, with rules that are known already.

As root also what walks in BPF take, on a chain of as many frames in code without frame pointers:
the best of some rounds of a second, and what the verifier looked at.
"""

from __future__ import annotations

import argparse
import glob
import random
import struct
import subprocess
import sys
import tempfile
import time
from array import array
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import results
from results import Figure

from purebpf import objects
from purebpf.loader.load.load import load
from purebpf.loader.perf.perf_events import PerfEvents
from purebpf.observe.instruments.stack_maps import sum_up
from purebpf.observe.unwind.stack_walker import StackWalker
from purebpf.symbols.elf_image import ElfImage
from purebpf.unwind.address_space import AddressSpace, CodeMapping
from purebpf.unwind.cfi_file import CfiFile
from purebpf.unwind.machine import X86_64
from purebpf.unwind.rule import Row
from purebpf.unwind.unwinder import Unwinder

_FILES = ("/lib/*/libc.so.6", "/usr/lib/*/libpython3.*.so.1.0", "/usr/lib/*/libLLVM*.so*")
_WINDOWS = 1000
_FRAMES = 20
_STACKS = 2000


def _open(path: Path) -> CfiFile:
    data = path.read_bytes()
    return CfiFile(ElfImage.of_bytes(data, str(path)))


def _best(rounds: int, make: Callable[[], object], work: Callable[[object], object]) -> float:
    spent = []
    for _ in range(rounds):
        subject = make()
        begun = time.process_time()
        work(subject)
        spent.append(time.process_time() - begun)
    return min(spent)


def _files(paths: list[Path], rounds: int) -> Iterator[Figure]:
    for path in paths:
        size = len(_open(path).rows.starts)
        whole = _best(rounds, lambda path=path: _open(path), lambda cfi: cfi.whole())
        yield Figure(f"{path.name}: {size:,} rows and all windows", 1e3 * whole, "ms")
        yield Figure(f"{path.name}: a row", 1e6 * whole / size, "us", limit=1.5)
        cfi = _open(path)
        chance = random.Random(1)
        count = min(_WINDOWS, cfi.window_count)
        numbers = [cfi.first_window + n for n in chance.sample(range(cfi.window_count), count)]
        if not cfi.is_small:
            apart = _best(
                rounds,
                lambda path=path: _open(path),
                lambda cfi, numbers=numbers: [cfi.window(number) for number in numbers],
            )
            yield Figure(f"{path.name}: a window alone", 1e6 * apart / count, "us", limit=200)
            slices = array("d")
            cfi = _open(path)
            before = time.process_time()
            for _ in cfi.build():
                slices.append(time.process_time() - before)
                before = time.process_time()
            yield Figure(f"{path.name}: longest slice but the last", 1e3 * max(slices), "ms")


class _Chain:
    """A file in which every function has a frame of 48 bytes."""

    def row(self, _address: int) -> Row:
        return Row(7, 48, {16: -8, 3: -16, 6: -24}, 16, False)

    def function(self, _address: int) -> tuple[int, int]:
        return 0, 1 << 40

    def code(self, _address: int, _size: int) -> bytes:
        return b""

    def stack_depth(self, _address: int) -> int | None:
        return None


def _stack(rounds: int) -> Figure:
    words = [0] * (6 * _FRAMES)
    for frame in range(_FRAMES - 1):
        words[6 * frame + 5] = 0x401000 + 16 * frame
    stack = struct.pack(f"<{len(words)}Q", *words)
    space = AddressSpace([CodeMapping(0x400000, 0x500000, 0, "file")])
    file = _Chain()
    registers: list[int | None] = [0] * X86_64.registers
    registers[X86_64.sp] = 0x7FFF0000

    def work(subject: object) -> None:
        assert isinstance(subject, Unwinder)
        for _ in range(_STACKS):
            assert len(subject.unwind(0x400800, registers, stack).frames) == _FRAMES

    spent = _best(rounds, lambda: Unwinder(X86_64, space, lambda _: file), work)
    return Figure("a frame of a copied stack", 1e6 * spent / _STACKS / _FRAMES, "us", limit=3)


_CHAIN = r"""
volatile unsigned long sink;
__attribute__((noinline, noclone)) unsigned long chain(int depth, unsigned long x) {
  if (depth) return chain(depth - 1, x + depth) * 3 + depth;
  for (int i = 0; i < 100000; i++) x = x * 6364136223846793005UL + i;
  return x;
}
int main(void) { for (;;) sink += chain(15, sink); }
"""
"""20 frames, with main, what calls it in libc, and _start."""


def _walks(rounds: int) -> Iterator[Figure]:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        (folder / "chain.c").write_text(_CHAIN)
        command = ["gcc", "-O2", "-fomit-frame-pointer", "-fno-optimize-sibling-calls"]
        subprocess.run([*command, "-o", "chain", "chain.c"], cwd=folder, check=True)
        child = subprocess.Popen([folder / "chain"])
        stack.callback(child.wait)
        stack.callback(child.kill)
        begun = time.process_time()
        spec = objects.spec("stack_walk").only("walk_sampled").set(has_tgids=True)
        loaded = stack.enter_context(load(spec))
        yield Figure("loading the walk", 1e3 * (time.process_time() - begun), "ms", limit=300)
        loaded.maps["tgids"][child.pid] = 1
        walker = stack.enter_context(StackWalker(loaded.maps))
        program = loaded.programs["walk_sampled"]
        for event in stack.enter_context(PerfEvents.sampling(frequency=997, event="cpu-clock")):
            stack.enter_context(program.attach(event))
        costs = []
        for _ in range(rounds + 1):  # the first fills the tables
            before = sum_up(loaded.maps["stats"])
            deadline = time.monotonic() + 1
            while time.monotonic() < deadline:
                time.sleep(0.05)
                list(walker.drain())
            after = sum_up(loaded.maps["stats"])
            spent, walked, frames = (after[n] - before[n] for n in ("walk_ns", "walked", "frames"))
            costs.append((spent / max(1, walked), frames / max(1, walked)))
        cost, frames = min(costs[1:])
        yield Figure("a walk in BPF", cost / 1e3, "us", limit=8)
        yield Figure(f"a frame of {frames:.1f}, in BPF", cost / frames, "ns", limit=400)


def measure(options: argparse.Namespace) -> Iterator[Figure]:
    """Every figure."""
    paths = options.files or sorted(
        {Path(path).resolve() for place in _FILES for path in glob.glob(place)}
    )
    yield from _files(paths, options.rounds)
    yield _stack(options.rounds)
    if not options.pure:
        yield from _walks(options.rounds)


if __name__ == "__main__":
    parser = results.parser(__doc__, rounds=5)
    parser.add_argument("--pure", action="store_true", help="no walks in BPF, which need root")
    parser.add_argument("files", nargs="*", type=Path)
    sys.exit(results.run(measure, parser.parse_args()))
