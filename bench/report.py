"""What it takes to write each format: 100,000 different stacks of 40 frames.

    python bench/report.py [STACKS] [DEPTH]

Prints CPU seconds, size and the peak memory of each format, with that of the profile itself; the
stacks are made from a random call graph of 5,000 functions, so most of them share only their first
few frames.
"""

from __future__ import annotations

import gc
import os
import random
import resource
import sys
import time
from collections.abc import Callable
from functools import partial

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
            Address(0x400000 + (number % len(MODULES) << 28) + 16 * number),
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


def written(profile: Profile, name: str) -> int:
    """Write a format to nowhere, and how many characters or bytes it has."""
    return sum(map(len, formats.write(profile, name)))


def parsed(text: str) -> int:
    """Read a saved profile."""
    return len(json.parse(text).rows())


def measured(name: str, work: Callable[[], int]) -> None:
    """Print what a piece of work takes in a process of its own, which has the profile already."""
    sys.stdout.flush()
    if child := os.fork():
        os.waitpid(child, 0)
        return
    start = time.process_time()
    size = work()
    print(f"{name:12} {time.process_time() - start:6.2f} {size >> 10:8} {peak_mb():8}", flush=True)
    os._exit(0)


def main(stacks: int = 100_000, depth: int = 40) -> None:
    gc.disable()  # as the commands do
    profile = made(stacks, depth)
    print(f"{'':12} {'CPU s':>6} {'kB':>8} {'peak MB':>8}")
    print(f"{'made':12} {'':6} {'':8} {peak_mb():8}")
    for name in formats.FORMATS:
        measured(name, partial(written, profile, name))
    text = json.document(profile)
    measured("read json", partial(parsed, text))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
