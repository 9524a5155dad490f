"""A program of phases that knows how its CPU time is split: known_shares.py SECONDS.

Each function runs for a quarter of a second in turn, so that a sampler at 99 Hz is at most one
sample off at each change. A line of JSON on standard output for each phase: when it began (ns of
the monotonic clock), its function, its calls, and the CPU time of each function so far.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable

PHASE_S = 0.25
WORD = re.compile(r"\d+")


def loop() -> None:
    """Bytecode only."""
    total = 0
    for number in range(2000):
        total += number * number


def negative(number: int) -> int:
    """Called by C, for each element."""
    return -number


def order() -> None:
    """C that calls Python."""
    sorted(range(1000), key=negative)


def squares(count: int) -> int:
    """A recursion and a generator."""
    if count:
        return squares(count - 1)
    return sum(number * number for number in range(2000))


def recurse() -> None:
    """Fifty frames."""
    squares(50)


def double(match: re.Match[str]) -> str:
    """Called by the C part of re."""
    return match[0] * 2


def substitute() -> None:
    """C under Python under C."""
    WORD.sub(double, "1 two 3 four " * 100)


def encode() -> None:
    """C alone."""
    json.dumps({"numbers": list(range(1000))})


FUNCTIONS: list[Callable[[], None]] = [loop, order, recurse, substitute, encode]


def main() -> None:
    """Run the phases until the time is over."""
    seconds = float(sys.argv[1])
    used = {function.__name__: 0 for function in FUNCTIONS}
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for function in FUNCTIONS:
            began, calls = time.monotonic_ns(), phase(function, used)
            print(json.dumps([began, function.__name__, calls, used]), flush=True)


def phase(function: Callable[[], None], used: dict[str, int]) -> int:
    """Calls of one function in a phase of its own; its CPU time goes to `used`."""
    calls, before, end = 0, time.thread_time_ns(), time.monotonic() + PHASE_S
    while time.monotonic() < end:
        function()
        calls += 1
    used[function.__name__] += time.thread_time_ns() - before
    return calls


if __name__ == "__main__":
    main()
