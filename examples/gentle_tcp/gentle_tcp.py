"""Register a congestion control of TCP until Ctrl-C: sudo python gentle_tcp.py."""

from __future__ import annotations

import signal
import sys
from contextlib import suppress
from pathlib import Path

import purebpf


def main() -> None:
    """Register, wait, print what it did, and take it away again."""
    with purebpf.load(Path(__file__).with_name("gentle_tcp.bpf.o")) as obj:
        with obj.maps["gentle"].attach(), suppress(KeyboardInterrupt):
            print("bpf_gentle is registered; Ctrl-C ends", file=sys.stderr, flush=True)
            signal.pause()
        # connections that use it keep it until they are closed
        print(f"connections: {obj.globals['connections']}")
        print(f"reductions: {obj.globals['reductions']}")


if __name__ == "__main__":
    main()
