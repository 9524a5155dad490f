"""A program with a known call chain, recorded by perf, and stacks as perf script prints them."""

from __future__ import annotations

import os
import subprocess
from collections import Counter
from pathlib import Path

from purebpf.observe.saved.perf_data_loader import build_ids_of
from purebpf.observe.saved.recorded_copies import RecordedCopies
from purebpf.observe.saved.recorded_kernel import origin_of
from purebpf.results.build.perf_data_aggregate import count
from purebpf.wire.perf_data_reader import PerfData

SOURCE = Path(__file__).with_name("chain.c")
WHOLE = ["main", "level1", "level2", "level3", "leaf"]

Stack = tuple[int, ...]


def build(directory: Path, *flags: str) -> Path:
    """The program; without frame pointers unless the flags say so."""
    target = directory / "chain"
    options = ["-O2", "-fomit-frame-pointer", *flags]
    subprocess.run(["gcc", *options, "-o", target, SOURCE], check=True)
    return target


def perf_record(file: Path, *arguments: str | Path) -> None:
    """Run `perf record` with a file for its output."""
    command = ["perf", "record", "-q", "-e", "cpu-clock", "-o", file, *arguments]
    subprocess.run(command, check=True, capture_output=True)


def perf_stacks(file: Path) -> Counter[Stack]:
    """User stacks by offset in their files, leaf first, and how many samples have each."""
    words = ["perf", "script", "-i", file, "--no-inline", "-F", "comm,pid,ip"]
    text = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    found: Counter[Stack] = Counter()
    for sample in text.split("\n\n"):
        addresses = [int(line.split()[0], 16) for line in sample.split("\n")[1:] if line.strip()]
        if addresses:
            found[tuple(at for at in addresses if at < 1 << 63)] += 1
    return found


def our_stacks(file: Path) -> Counter[Stack]:
    """The same as purebpf unwinds them."""
    fd = os.open(file, os.O_RDONLY)
    try:
        size = os.fstat(fd).st_size
        data = PerfData(lambda at, length: os.pread(fd, length, at), size, str(file))
        build_ids = build_ids_of(data)
        with RecordedCopies(data, origin_of(data, build_ids)) as copies:
            counted = count(data, build_ids, periods=[False], slots=False, unwind=copies.methods)
    finally:
        os.close(fd)
    found: Counter[Stack] = Counter()
    for (owner, stacks), samples in counted.found[0].items():
        leaf, callers = stacks.user[:1], stacks.user[1:]
        offsets = []
        for address in (*leaf, *(at - 1 for at in callers)):
            mapping = counted.spaces.find(owner.pid, address, owner.comm)
            offsets.append(mapping.file_offset(address) if mapping else address)
        found[tuple(offsets)] += samples
    return found
