"""The clocks that the kernel's programs and events read, also in a time namespace.

In a time namespace (Linux 5.6, time_namespaces(7)), CLOCK_MONOTONIC and CLOCK_BOOTTIME of a process
differ from the kernel's own by an offset; bpf_ktime_get_ns() and perf events know no namespaces.
"""

from __future__ import annotations

import time
from functools import cache

__all__ = ["boottime_ns", "monotonic_ns", "own_s", "parse_offsets"]

_SECOND_NS = 1_000_000_000


def monotonic_ns() -> int:
    """The time of the kernel's CLOCK_MONOTONIC, in ns, as bpf_ktime_get_ns() has it."""
    return time.monotonic_ns() - _offset_ns("monotonic")


def own_s(at_ns: int) -> float:
    """A time of `monotonic_ns` in seconds of time.monotonic(), for deadlines."""
    return (at_ns + _offset_ns("monotonic")) / 1e9


def boottime_ns() -> int:
    """The time of the kernel's CLOCK_BOOTTIME, in ns."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) - _offset_ns("boottime")


@cache
def _offset_ns(clock: str) -> int:
    """Return how far a clock of this time namespace is ahead; a process with threads cannot
    change its namespace.
    """
    try:
        # as bytes: a process that gave up its rights may be unable to import a codec
        with open("/proc/self/timens_offsets", "rb") as file:
            text = file.read().decode()
    except OSError:  # a kernel without time namespaces
        return 0
    return parse_offsets(text).get(clock, 0)


def parse_offsets(text: str) -> dict[str, int]:
    """The offsets in ns by the name of a clock: lines of a name, seconds and nanoseconds."""
    rows = [line.split() for line in text.split("\n") if line]
    return {name: int(seconds) * _SECOND_NS + int(ns) for name, seconds, ns in rows}
