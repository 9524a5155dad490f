"""Run the profiler and a ring reader for a long time and print what memory they take.

    sudo .venv/bin/python scripts/soak.py                 both, 10 minutes each
    sudo .venv/bin/python scripts/soak.py --seconds 180 ring

The profiler is restarted every few seconds, as a service that profiles now and then would do it,
while processes come and go; the reader drains a ring buffer that is never empty for long. Both
run in this process, so a leak of either shows in its resident set (VmRSS), in its descriptors or
in its mappings. Exit status 1 when the second half grew by more than `--allowed-kib`.
"""

from __future__ import annotations

import argparse
import gc
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from purebpf.abi.bpf import bpf_map_type, bpf_prog_type
from purebpf.abi.helpers import bpf_func_id
from purebpf.abi.instruction import CALL, EXIT, Instruction, pack
from purebpf.kernel.map import Map
from purebpf.kernel.ring_buffer import RingBuffer
from purebpf.profile import Options, Profiler
from purebpf.spec import MapSpec
from purebpf.syscall import bpf
from purebpf.syscall.descriptor import Descriptor

_RING_BYTES = 1 << 18
_BURST = 1000
"""Records of 8 bytes that are sent at once; the ring holds sixteen times as many."""

_ROUND_S = 2.0
_REPORTS = 20


class Sample(NamedTuple):
    """This process, at a time: seconds since the start, KiB resident, descriptors, mappings."""

    time_s: float
    rss_kib: int
    descriptors: int
    mappings: int


def measured(start: float) -> Sample:
    """How it is now."""
    gc.collect()
    rows = dict(
        line.split(":", 1)
        for line in Path("/proc/self/status").read_text().splitlines()
        if ":" in line
    )
    mappings = len(Path("/proc/self/maps").read_text().splitlines())
    descriptors = len(os.listdir("/proc/self/fd"))
    return Sample(time.monotonic() - start, int(rows["VmRSS"].split()[0]), descriptors, mappings)


def profiler_rounds() -> Iterator[int]:
    """Profile the machine in rounds, while short processes run; yields the samples so far."""
    samples = 0
    while True:
        with Profiler(Options(frequency=199)) as profiler:
            end = time.monotonic() + _ROUND_S
            while time.monotonic() < end:
                subprocess.run(["true"], check=True)
                sum(range(100_000))
            samples += profiler.stop().total
        yield samples


def _program(ring: int) -> Descriptor:
    """Sends 8 bytes to the ring, each time that it runs."""
    mov, mov_reg, add, store, load_wide = 0xB7, 0xBF, 0x07, 0x7A, 0x18
    code = [
        Instruction(store, 10, 0, -8, 7),
        Instruction(load_wide, 1, 1, 0, ring),
        Instruction(0, 0, 0, 0, 0),
        Instruction(mov_reg, 2, 10, 0, 0),
        Instruction(add, 2, 0, 0, -8),
        Instruction(mov, 3, 0, 0, 8),
        Instruction(mov, 4, 0, 0, 0),
        Instruction(CALL, 0, 0, 0, bpf_func_id.BPF_FUNC_ringbuf_output),
        Instruction(mov, 0, 0, 0, 0),
        Instruction(EXIT, 0, 0, 0, 0),
    ]
    return bpf.prog_load(bpf_prog_type.BPF_PROG_TYPE_SCHED_CLS, pack(code), "GPL")


def ring_rounds() -> Iterator[int]:
    """Send and read records; yields how many were read so far."""
    spec = MapSpec("soak", bpf_map_type.BPF_MAP_TYPE_RINGBUF, 0, 0, _RING_BYTES)
    records = 0
    with (
        Map.create(spec) as made,
        _program(made.fileno()) as program,
        RingBuffer(made, bytes) as ring,
    ):
        while True:
            end = time.monotonic() + _ROUND_S
            while time.monotonic() < end:
                bpf.prog_test_run(program.fileno(), data_in=bytes(64), repeat=_BURST)
                found = sum(1 for _ in ring.read(0))
                if found != _BURST:
                    raise SystemExit(f"{found} records came of {_BURST}")
                records += found
            yield records


SOAKS: dict[str, tuple[Callable[[], Iterator[int]], str]] = {
    "profiler": (profiler_rounds, "samples"),
    "ring": (ring_rounds, "records"),
}


def soak(name: str, seconds: float, allowed_kib: int) -> bool:
    """Run one, print its figures, and say whether they stayed flat."""
    rounds, unit = SOAKS[name]
    print(f"{name}, for {seconds:.0f} s\n{'s':>6} {'RSS KiB':>9} {'fds':>5} {'maps':>5}  {unit}")
    start = time.monotonic()
    taken: list[Sample] = []
    next_report = 0.0
    for done in rounds():
        now = time.monotonic() - start
        if now >= next_report or now >= seconds:
            taken.append(measured(start))
            at, rss, descriptors, mappings = taken[-1]
            print(f"{at:6.0f} {rss:9} {descriptors:5} {mappings:5}  {done}", flush=True)
            next_report += seconds / _REPORTS
        if now >= seconds:
            break
    middle = taken[len(taken) // 2]
    grown = taken[-1].rss_kib - middle.rss_kib
    more = taken[-1].descriptors - middle.descriptors
    print(f"second half: {grown:+} KiB, {more:+} descriptors\n")
    return grown <= allowed_kib and more == 0


def main() -> int:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("which", nargs="*", metavar="{profiler,ring}", help="default: both")
    parser.add_argument("--seconds", type=float, default=600.0, help="for each (default: 600)")
    parser.add_argument("--allowed-kib", type=int, default=2048)
    options = parser.parse_args()
    which = options.which or list(SOAKS)
    if unknown := [name for name in which if name not in SOAKS]:
        parser.error(f"no such soak: {', '.join(unknown)}")
    flat = [soak(name, options.seconds, options.allowed_kib) for name in which]
    return 0 if all(flat) else 1


if __name__ == "__main__":
    sys.exit(main())
