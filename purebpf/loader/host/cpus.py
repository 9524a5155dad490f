"""The CPUs by number: the numbers may have holes."""

from __future__ import annotations

from functools import cache

from purebpf.syscall import proc
from purebpf.syscall.proc import parse_cpu_list as parse

__all__ = ["online", "parse", "possible"]


def online() -> tuple[int, ...]:
    """The CPUs that run now."""
    return proc.cpu_numbers("online")


@cache
def possible() -> tuple[int, ...]:
    """Return the CPUs that may ever run: per-CPU map values have room for them. Set when Linux
    boots.
    """
    return proc.cpu_numbers("possible")
