"""Limits of this process, also where it may not ask for them.

A service with `SystemCallFilter=~@resources` may not call prlimit64(2): then /proc has them.
"""

from __future__ import annotations

import resource

__all__ = ["locked_memory", "open_files"]

_USUAL_FILES = 1024
"""The soft RLIMIT_NOFILE of most processes."""


def open_files() -> tuple[int, int]:
    """Return the soft and the hard RLIMIT_NOFILE."""
    return _limit(resource.RLIMIT_NOFILE, "Max open files", _USUAL_FILES)


def locked_memory() -> tuple[int, int]:
    """Return the soft and the hard RLIMIT_MEMLOCK, in bytes; RLIM_INFINITY if there is none."""
    return _limit(resource.RLIMIT_MEMLOCK, "Max locked memory", resource.RLIM_INFINITY)


def _limit(number: int, name: str, usual: int) -> tuple[int, int]:
    try:
        return resource.getrlimit(number)
    except OSError:
        pass
    try:
        with open("/proc/self/limits", encoding="ascii") as limits:
            line = next(line for line in limits if line.startswith(name))
        soft, hard, *_ = (_number(word) for word in line.removeprefix(name).split()[:2])
    except (OSError, ValueError, StopIteration):
        return usual, usual
    return soft, hard


def _number(word: str) -> int:
    return resource.RLIM_INFINITY if word == "unlimited" else int(word)
