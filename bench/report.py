"""What it takes to write each format: 100,000 different stacks of 40 frames.

    python bench/report.py [STACKS] [DEPTH]

Prints CPU seconds, size and the process's peak memory after each format; the stacks are made from
a random call graph of 5,000 functions, so most of them share only their first few frames.
"""

from __future__ import annotations

import gc
import random
import resource
import sys
import time

from purebpf.report import Labels, Profile, formats, json
from purebpf.symbols.frame import Address, FileOffset, Frame

FUNCTIONS = 5000
CALLEES = 3
MODULES = ("/usr/lib/libc.so.6", "/srv/app", "/usr/lib/libpython3.11.so", "/usr/lib/libssl.so")


def made(stacks: int, depth: int) -> Profile:
    """A profile with so many different stacks; the same one every time."""
    chance = random.Random(1)
    frames = [
        Frame(
            f"function_{number}",
            chance.randrange(64),
            MODULES[number % len(MODULES)],
            Address(0x400000 + 16 * number),
            "user",
            "ab12",
            FileOffset(0x1000 + 16 * number),
        )
        for number in range(FUNCTIONS)
    ]
    calls = [[chance.randrange(FUNCTIONS) for _ in range(CALLEES)] for _ in frames]
    profile = Profile(f"{stacks} stacks of {depth} frames")
    seen: set[tuple[int, ...]] = set()
    while len(seen) < stacks:
        at, path = chance.randrange(4), []
        for _ in range(depth):
            path.append(at)
            at = calls[at][min(int(chance.expovariate(1.2)), CALLEES - 1)]
        if tuple(path) not in seen:
            seen.add(tuple(path))
            pid = chance.randrange(1, 30)
            labels = Labels(f"process{pid % 9}", pid, cpu=chance.randrange(2))
            stack = tuple(frames[number] for number in reversed(path))
            profile.add(stack, (), chance.randrange(1, 6), labels)
    return profile


def peak_mb() -> int:
    """The most memory this process ever had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


def main(stacks: int = 100_000, depth: int = 40) -> None:
    gc.disable()  # as the commands do
    profile = made(stacks, depth)
    print(f"{'':12} {'CPU s':>6} {'kB':>8} {'peak MB':>8}")
    print(f"{'made':12} {'':6} {'':8} {peak_mb():8}")
    for name in ("html", "pprof", "json", "speedscope", "folded", "text", "csv", "firefox"):
        start, size = time.process_time(), 0
        for piece in formats.write(profile, name):
            size += len(piece)
        print(f"{name:12} {time.process_time() - start:6.2f} {size >> 10:8} {peak_mb():8}")
    text = json.document(profile)
    start = time.process_time()
    json.parse(text)
    print(f"{'read json':12} {time.process_time() - start:6.2f} {len(text) >> 10:8} {peak_mb():8}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
