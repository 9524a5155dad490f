"""How long disks take: sudo python block_latency.py [-d /dev/vda] [SECONDS]."""

from __future__ import annotations

import argparse
import os
import sys
import time
from contextlib import suppress
from pathlib import Path

import purebpf


def main() -> None:
    """Measure for some seconds, or until Ctrl-C, and print the histograms."""
    parser = argparse.ArgumentParser(description="Histograms of how long disks take.")
    parser.add_argument("-d", "--disk", help="this one only, such as /dev/vda")
    parser.add_argument("seconds", type=float, nargs="?", default=float("inf"))
    options = parser.parse_args()

    spec = purebpf.read_object(Path(__file__).with_name("block_latency.bpf.o"))
    if options.disk:
        device = os.stat(options.disk).st_rdev
        spec = spec.set(target_major=os.major(device), target_minor=os.minor(device))
    with purebpf.load(spec) as obj:
        obj.attach()
        end = time.monotonic() + options.seconds
        with suppress(KeyboardInterrupt):
            print("attached; Ctrl-C ends", file=sys.stderr, flush=True)
            while (left := end - time.monotonic()) > 0:
                time.sleep(min(left, 3600))
        for kind, per_cpu in zip(("reads", "others"), obj.maps["latencies"].values(), strict=True):
            slots = [sum(counts) for counts in zip(*(cpu.slots for cpu in per_cpu), strict=True)]
            print(f"\n{kind}: {sum(slots)}")
            print(*purebpf.log2_histogram(slots, "usecs"), sep="", end="")
        print(f"lost: {obj.globals['lost']}", file=sys.stderr)


if __name__ == "__main__":
    main()
