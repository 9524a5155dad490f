"""What a process asks malloc() for: sudo python malloc_sizes.py PID [SECONDS]."""

from __future__ import annotations

import argparse
import sys
import time
from contextlib import suppress
from pathlib import Path

import purebpf


def main() -> None:
    """Measure for some seconds, or until Ctrl-C; print sizes, and the stacks that ask for most."""
    parser = argparse.ArgumentParser(description="Sizes that a process asks malloc() for.")
    parser.add_argument("-l", "--library", default="libc.so.6", help="where malloc() is")
    parser.add_argument("-n", "--stacks", type=int, default=5, help="how many to print (5)")
    parser.add_argument("pid", type=int)
    parser.add_argument("seconds", type=float, nargs="?", default=float("inf"))
    options = parser.parse_args()

    symbolizer = purebpf.Symbolizer()
    path = Path(__file__).with_name("malloc_sizes.bpf.o")
    end = time.monotonic() + options.seconds
    with purebpf.load(path) as obj:
        with obj.programs["on_malloc"].attach(f"{options.library}:malloc", pid=options.pid):
            symbolizer.remember(options.pid)  # its mappings: so that it may end before we print
            with suppress(KeyboardInterrupt):
                print("attached; Ctrl-C ends", file=sys.stderr, flush=True)
                while (left := end - time.monotonic()) > 0:
                    time.sleep(min(left, 3600))
        slots = [sum(per_cpu) for per_cpu in obj.maps["sizes"].values()]
        print(*purebpf.log2_histogram(slots, "bytes"), sep="", end="")
        by_bytes = sorted(obj.maps["by_stack"].items(), key=lambda item: -item[1].bytes)
        for place, asked in by_bytes[: options.stacks]:
            print(f"\n{asked.bytes} bytes in {asked.calls} calls:")
            malloc, *callers = obj.maps["stacks"][place.stack]
            if place.caller not in callers:
                callers.insert(0, place.caller)
            for frame in symbolizer.user_stack(options.pid, (malloc, *callers)):
                print(f"    {purebpf.format_frame(frame)}")
        print(f"lost: {obj.globals['lost']}", file=sys.stderr)


if __name__ == "__main__":
    main()
