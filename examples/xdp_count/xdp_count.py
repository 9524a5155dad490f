"""Count what an interface receives, by protocol: sudo python xdp_count.py eth0 [SECONDS]."""

from __future__ import annotations

import argparse
import socket
import sys
import time
from contextlib import suppress
from pathlib import Path

import purebpf

NAMES = {
    number: name.removeprefix("IPPROTO_").lower()
    for name, number in vars(socket).items()
    if name.startswith("IPPROTO_")
} | {256: "no IP"}


def main() -> None:
    """Count for some seconds, or until Ctrl-C."""
    parser = argparse.ArgumentParser(description="Count what an interface receives, by protocol.")
    parser.add_argument("interface")
    parser.add_argument("seconds", type=float, nargs="?", default=float("inf"))
    options = parser.parse_args()

    path = Path(__file__).with_name("xdp_count.bpf.o")
    end = time.monotonic() + options.seconds
    with purebpf.load(path) as obj:
        with obj.programs["count_packet"].attach(options.interface), suppress(KeyboardInterrupt):
            print("attached; Ctrl-C ends", file=sys.stderr, flush=True)
            while (left := end - time.monotonic()) > 0:
                time.sleep(min(left, 3600))
        print(f"{'PROTOCOL':12} {'PACKETS':>10} {'BYTES':>14}")
        for protocol, per_cpu in obj.maps["protocols"].items():
            packets, size = sum(cpu.packets for cpu in per_cpu), sum(cpu.bytes for cpu in per_cpu)
            if packets:
                print(f"{NAMES.get(protocol, protocol):12} {packets:10} {size:14}")


if __name__ == "__main__":
    main()
