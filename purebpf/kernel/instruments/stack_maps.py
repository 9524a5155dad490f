"""The maps of bpf_src/include/stacks.h: stacks that programs kept, and what happened to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from purebpf.kernel.maps.map import Map
from purebpf.syscall import proc

__all__ = ["MAX_DEPTH", "addresses", "max_depth", "sum_up"]

MAX_DEPTH = 127
"""Frames that there is room for."""


def max_depth() -> int:
    """Frames at which the kernel cuts a stack, for the constant of this name."""
    allowed = proc.sysctl("kernel.perf_event_max_stack")
    return MAX_DEPTH if allowed is None else min(MAX_DEPTH, int(allowed))


def addresses(stacks: Map) -> dict[int, Sequence[int]]:
    """What `stacks` holds: addresses by number, leaf first.

    Raises:
        KernelError: it could not be read.
    """
    return {number: stack.addresses[: stack.depth] for number, stack in stacks.items()}


def sum_up(counters: Map) -> dict[str, int]:
    """A per-CPU array of structs of counters: each field, added up over CPUs and entries.

    Raises:
        KernelError: it could not be read.
    """
    totals: dict[str, int] = {}
    for per_cpu in counters.values():
        entry: Any
        for entry in per_cpu:
            for name, value in entry._asdict().items():
                totals[name] = totals.get(name, 0) + value
    return totals
