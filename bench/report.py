"""What it takes to write each format: 100,000 different stacks of 40 frames.

    python bench/report.py [--stacks 100000] [--depth 40] [--rounds 1]

CPU seconds and the peak memory of each format, the profile itself included; the stacks are made
from a random call graph of 5,000 functions, so most of them share only their first few frames.
"""

from __future__ import annotations

import argparse
import gc
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import results
from results import Figure

from purebpf.results import Labels, Profile
from purebpf.results.formats import json, registry
from purebpf.symbols.frame import Address, FileOffset, Frame

FUNCTIONS = 5000
CALLEES = 3
LIMITS_S = {"html": 5.0, "pprof": 2.0}
LIMIT_MB = 300
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
    return sum(map(len, registry.write(profile, name)))


def parsed(text: str) -> int:
    """Read a saved profile."""
    return len(json.parse(text).rows())


def alone(work: Callable[[], int]) -> tuple[float, int, int]:
    """CPU seconds, size in kB and peak memory in MB of a child that has the profile already."""
    reading, writing = os.pipe()
    if child := os.fork():
        os.close(writing)
        with open(reading) as pipe:
            seconds, kilobytes, megabytes = pipe.read().split()
        os.waitpid(child, 0)
        return float(seconds), int(kilobytes), int(megabytes)
    start = time.process_time()
    size = work()
    os.write(writing, f"{time.process_time() - start} {size >> 10} {peak_mb()}".encode())
    os._exit(0)


def converted(text: str, rounds: int) -> Iterator[Figure]:
    """`purebpf convert` of a saved profile to pprof, from its start to its end."""
    with tempfile.TemporaryDirectory() as folder:
        saved, there = Path(folder, "saved.json"), Path(folder, "profile.pb.gz")
        saved.write_text(text)
        command = [sys.executable, "-m", "purebpf", "convert", str(saved), "-o", str(there)]
        seconds = []
        for _ in range(rounds):
            start = time.perf_counter()
            subprocess.run(command, check=True)
            seconds.append(time.perf_counter() - start)
    what = "saved json to pprof, the whole command"
    yield Figure(what, statistics.median(seconds), "s", limit=LIMITS_S["pprof"])


def measure(options: argparse.Namespace) -> Iterator[Figure]:
    """Each format's seconds, the most memory, and those of a whole command."""
    gc.disable()  # as the commands do
    profile = made(options.stacks, options.depth)
    text = json.document(profile)
    works = {name: partial(written, profile, name) for name in registry.FORMATS}
    most = (0.0, "")
    for name, work in (works | {"saved json": partial(parsed, text)}).items():
        rounds = [alone(work) for _ in range(options.rounds)]
        seconds, kilobytes, megabytes = map(statistics.median, zip(*rounds, strict=True))
        size = f"{kilobytes / 1024:,.1f} MB written" if name in works else "read"
        yield Figure(f"{name}, {size}", seconds, "s of CPU", limit=LIMITS_S.get(name))
        most = max(most, (megabytes, name))
    yield Figure(f"most memory of all, for {most[1]}", most[0], "MB", limit=LIMIT_MB)
    yield from converted(text, options.rounds)


def parser(text: str | None, rounds: int) -> argparse.ArgumentParser:
    """The options of every bench, and how many stacks there are."""
    made = results.parser(text, rounds)
    made.add_argument("--stacks", type=int, default=100_000)
    made.add_argument("--depth", type=int, default=40)
    return made


if __name__ == "__main__":
    sys.exit(results.run(measure, parser(__doc__, rounds=1).parse_args()))
