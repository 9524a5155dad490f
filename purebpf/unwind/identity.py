"""The identity of a process's program: `process_identity()` of bpf_src/include/process_identity.h.

The upper 54 bits are when the process began (CLOCK_MONOTONIC, ns), the lower 10 how many programs
it and those before it have executed. Both wrap around.
"""

from __future__ import annotations

__all__ = ["forked_identity", "is_child_of", "is_older"]

_EXECUTED_BITS = 10
_EXECUTED = 1 << _EXECUTED_BITS
_BEGUN = 1 << 64 - _EXECUTED_BITS


def forked_identity(parent: int, time_ns: int) -> int:
    """Return the identity of a child, by the time of its report: it began then or shortly
    before.
    """
    return time_ns % _BEGUN << _EXECUTED_BITS | parent % _EXECUTED


def is_child_of(identity: int, forked: int) -> bool:
    """Return True if a process with an identity is the child, before it executed another
    program.
    """
    return not (identity ^ forked) % _EXECUTED and not _is_before(forked, identity)


def is_older(one: int, other: int) -> bool:
    """Return True if a program began before another one with the same process number."""
    if one >> _EXECUTED_BITS != other >> _EXECUTED_BITS:
        return _is_before(one, other)
    return 0 < (other - one) % _EXECUTED < _EXECUTED // 2


def _is_before(one: int, other: int) -> bool:
    return 0 < ((other >> _EXECUTED_BITS) - (one >> _EXECUTED_BITS)) % _BEGUN < _BEGUN // 2
