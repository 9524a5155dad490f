"""The maps of bpf_src/include/stacks.h: the stacks of programs, and their counters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from purebpf.loader.maps.map import Map
from purebpf.observe.unwind.user_stacks import Trace
from purebpf.syscall import proc

__all__ = ["MAX_DEPTH", "addresses", "max_depth", "sum_up", "trace", "traces"]

MAX_DEPTH = 127
"""Frames that there is room for."""


def max_depth() -> int:
    """Frames at which the kernel cuts a stack, for the constant of this name."""
    allowed = proc.sysctl("kernel.perf_event_max_stack")
    return MAX_DEPTH if allowed is None else min(MAX_DEPTH, int(allowed))


def addresses(stacks: Map) -> dict[int, Sequence[int]]:
    """Return the content of `stacks`: addresses by number, leaf first.

    Raises:
        KernelError: it could not be read.
    """
    return {number: stack.addresses[: stack.depth] for number, stack in stacks.items()}


def traces(stacks: Map) -> dict[int, Trace]:
    """Return the content of `stacks`, by number.

    Raises:
        KernelError: it could not be read.
    """
    numbers: dict[int, int] = {}  # callers are in many stacks: one int for each instead of many
    by_number: dict[int, Trace] = {}
    for number, stack in stacks.items():
        own = stack.addresses[: stack.depth]
        shared = tuple(map(numbers.setdefault, own, own))
        by_number[number] = Trace(shared, stack.reason, stack.guessed)
    return by_number


def trace(stack: Any) -> Trace:
    """A struct stack."""
    return Trace(tuple(stack.addresses[: stack.depth]), stack.reason, stack.guessed)


def sum_up(counters: Map) -> dict[str, int]:
    """A per-CPU array of structs of counters: each field, added up over CPUs and entries.

    Arrays are skipped.

    Raises:
        KernelError: it could not be read.
    """
    totals: dict[str, int] = {}
    for per_cpu in counters.values():
        entry: Any
        for entry in per_cpu:
            for name, value in entry._asdict().items():
                if isinstance(value, int):
                    totals[name] = totals.get(name, 0) + value
    return totals
