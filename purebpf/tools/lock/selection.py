"""The waits and rows to show, and their order, by the options of `perf lock contention`. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from purebpf.tools.lock.event import LockRow
    from purebpf.tools.lock.user_event import UserRow

__all__ = ["SORT_KEYS", "is_lock_wanted", "is_stack_wanted", "order"]


def _average_ns(row: LockRow | UserRow) -> float:
    return row.total_ns / max(1, row.waits + row.open)


SORT_KEYS: dict[str, Callable[[LockRow | UserRow], float]] = {
    "wait_total": lambda row: row.total_ns,
    "wait_max": lambda row: row.max_ns,
    "avg_wait": _average_ns,
    "contended": lambda row: row.waits + row.open,
}
"""By perf's names, without wait_min: the shortest wait is not measured."""


def order(key: str) -> Callable[[LockRow | UserRow], tuple[float, int]]:
    """Return the sort key of rows; rows with equal values are in the order of their total."""
    value = SORT_KEYS[key]
    return lambda row: (-value(row), -row.total_ns)


def is_lock_wanted(name: str, address: int, wanted: Iterable[str]) -> bool:
    """Return True if an address in `wanted` is the lock's, or a word in `wanted` is in its name."""
    return any(
        _number(text) == address if _number(text) is not None else text in name for text in wanted
    )


def is_stack_wanted(stack: Iterable[str], wanted: Iterable[str]) -> bool:
    """Return True if the name of a function in the stack contains one of these."""
    parts = tuple(wanted)
    return any(part in function for function in stack for part in parts)


def _number(text: str) -> int | None:
    try:
        return int(text, 16) if text[:2] in ("0x", "0X") else None
    except ValueError:
        return None
