"""Perf events by name, as perf(1) spells them: `cpu-cycles`, `page-faults`, `sched:sched_switch`.

Modifiers and the events of sysfs (`cpu/event=0x3c/u`) are in `event_choice`.
"""

from __future__ import annotations

from functools import cache

from purebpf.abi.perf import (
    perf_hw_cache_id,
    perf_hw_cache_op_id,
    perf_hw_cache_op_result_id,
    perf_hw_id,
    perf_sw_ids,
    perf_type_id,
)
from purebpf.tuples import NamedTuple

__all__ = ["Event", "event_named", "known_names"]


class Event(NamedTuple):
    """The kind of an event.

    `asked` is the name of the requested event if this one replaces it, and `why_not`
    the error that stood in its way; both are "" otherwise.
    """

    name: str
    type: int
    config: int
    asked: str = ""
    why_not: str = ""

    @property
    def fell_back(self) -> bool:
        """True if this is not the requested event."""
        return bool(self.asked)


_ALIASES = {
    "cycles": "cpu-cycles",
    "branches": "branch-instructions",
    "ref-cycles": "ref-cpu-cycles",
    "idle-cycles-frontend": "stalled-cycles-frontend",
    "idle-cycles-backend": "stalled-cycles-backend",
    "faults": "page-faults",
    "minor-faults": "page-faults-min",
    "major-faults": "page-faults-maj",
    "cs": "context-switches",
    "migrations": "cpu-migrations",
}

_CACHES = {
    "L1-dcache": perf_hw_cache_id.PERF_COUNT_HW_CACHE_L1D,
    "L1-icache": perf_hw_cache_id.PERF_COUNT_HW_CACHE_L1I,
    "LLC": perf_hw_cache_id.PERF_COUNT_HW_CACHE_LL,
    "dTLB": perf_hw_cache_id.PERF_COUNT_HW_CACHE_DTLB,
    "iTLB": perf_hw_cache_id.PERF_COUNT_HW_CACHE_ITLB,
    "branch": perf_hw_cache_id.PERF_COUNT_HW_CACHE_BPU,
    "node": perf_hw_cache_id.PERF_COUNT_HW_CACHE_NODE,
}

_OPERATIONS = {
    "load": perf_hw_cache_op_id.PERF_COUNT_HW_CACHE_OP_READ,
    "store": perf_hw_cache_op_id.PERF_COUNT_HW_CACHE_OP_WRITE,
    "prefetch": perf_hw_cache_op_id.PERF_COUNT_HW_CACHE_OP_PREFETCH,
}

_RESULTS = {
    "-misses": perf_hw_cache_op_result_id.PERF_COUNT_HW_CACHE_RESULT_MISS,
    "s": perf_hw_cache_op_result_id.PERF_COUNT_HW_CACHE_RESULT_ACCESS,
    "es": perf_hw_cache_op_result_id.PERF_COUNT_HW_CACHE_RESULT_ACCESS,
}


def event_named(name: str) -> Event:
    """The event called `name`: hardware, software, cache, raw (`r01c2`) or `category:tracepoint`.

    Raises:
        ValueError: no such name.
        KernelError: this kernel has no such tracepoint, or its number may not be read.
        NotSupportedError: the tracepoint's number cannot be read for want of a tracefs.
    """
    category, colon, tracepoint = name.partition(":")
    if colon:
        from purebpf.syscall import tracefs

        number = tracefs.tracepoint_id(category, tracepoint)
        return Event(name, perf_type_id.PERF_TYPE_TRACEPOINT, number)
    type_and_config = _generic(_ALIASES.get(name, name)) or _cache(name) or _raw(name)
    if type_and_config is None:
        raise ValueError(f"unknown perf event {name!r}; see `perf list`, or pass a type")
    return Event(name, *type_and_config)


@cache
def known_names() -> frozenset[str]:
    """Return every name except for tracepoints and raw events."""
    generic = [
        member.split("_", 3)[3].lower().replace("_", "-")
        for kinds in (perf_sw_ids, perf_hw_id)
        for member in kinds.__members__
        if not member.endswith("_MAX")
    ]
    caches = [
        f"{unit}-{operation}{result}"
        for unit in _CACHES
        for operation in _OPERATIONS
        for result in _RESULTS
    ]
    return frozenset((*generic, *_ALIASES, *caches))


def _generic(name: str) -> tuple[int, int] | None:
    spelling = name.upper().replace("-", "_")
    software = perf_sw_ids.__members__.get(f"PERF_COUNT_SW_{spelling}")
    if software not in (None, perf_sw_ids.PERF_COUNT_SW_MAX):
        return perf_type_id.PERF_TYPE_SOFTWARE, software
    hardware = perf_hw_id.__members__.get(f"PERF_COUNT_HW_{spelling}")
    if hardware not in (None, perf_hw_id.PERF_COUNT_HW_MAX):
        return perf_type_id.PERF_TYPE_HARDWARE, hardware
    return None


def _cache(name: str) -> tuple[int, int] | None:
    """`L1-dcache-load-misses`, `LLC-stores`, `dTLB-prefetches` (PERF_TYPE_HW_CACHE)."""
    for unit, unit_id in _CACHES.items():
        for operation, operation_id in _OPERATIONS.items():
            for result, result_id in _RESULTS.items():
                if name == f"{unit}-{operation}{result}":
                    config = unit_id | operation_id << 8 | result_id << 16
                    return perf_type_id.PERF_TYPE_HW_CACHE, config
    return None


def _raw(name: str) -> tuple[int, int] | None:
    digits = name.removeprefix("r")
    if digits == name or not digits or set(digits.lower()) - set("0123456789abcdef"):
        return None
    return perf_type_id.PERF_TYPE_RAW, int(digits, 16)
