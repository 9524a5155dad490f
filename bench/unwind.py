"""What call frame information costs to read, and a copied stack to unwind.

    python bench/unwind.py [--rounds 5] [FILE ...]

Each file whole (rows and windows), then 1,000 of its windows one by one, in CPU time: the best of
some rounds. Stacks: a chain of 20 frames, with rules that are known already.
"""

from __future__ import annotations

import argparse
import glob
import random
import struct
import sys
import time
from array import array
from collections.abc import Callable, Iterator
from pathlib import Path

import results
from results import Figure

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


def measure(options: argparse.Namespace) -> Iterator[Figure]:
    """Every figure."""
    paths = options.files or sorted(
        {Path(path).resolve() for place in _FILES for path in glob.glob(place)}
    )
    yield from _files(paths, options.rounds)
    yield _stack(options.rounds)


if __name__ == "__main__":
    parser = results.parser(__doc__, rounds=5)
    parser.add_argument("files", nargs="*", type=Path)
    sys.exit(results.run(measure, parser.parse_args()))
