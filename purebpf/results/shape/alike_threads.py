"""Threads of a process that run alike, such as the workers of a pool. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

__all__ = ["Thread", "group_threads"]

Thread = tuple[int, int]
"""Process and thread ID."""

_NUMBER = re.compile(r"[-_ #:/]?\d+$")
_OUTERMOST = 4
"""Functions from the start of a thread that tell pools apart: the first three of each thread of
Python are the same."""


def group_threads(
    names: Mapping[Thread, str], stacks: Iterable[tuple[Thread, Sequence[int]]]
) -> dict[Thread, tuple[str, int]]:
    """Return the name and the number of threads of the group of each thread.

    Threads of a process are alike if their names differ at most in a number at the end, and if all
    their stacks begin with the same functions. A thread without alike ones keeps its name, and one
    without stacks has none.

    Args:
        names: of the threads.
        stacks: a thread, and the numbers of the functions of a stack, the outermost first.
    """
    begins: dict[Thread, Sequence[int]] = {}
    for thread, stack in stacks:
        start = stack[:_OUTERMOST]
        begins[thread] = _common(begins[thread], start) if thread in begins else start
    groups: dict[tuple[object, ...], list[Thread]] = defaultdict(list)
    for thread, name in names.items():
        begin = tuple(begins.get(thread, ())) or thread  # nothing in common: alone
        groups[thread[0], _NUMBER.sub("", name), begin].append(thread)
    grouped: dict[Thread, tuple[str, int]] = {}
    for (_, base, _), threads in groups.items():
        same = {names[thread] for thread in threads}
        shown = same.pop() if len(same) == 1 else str(base)
        grouped |= dict.fromkeys(threads, (shown, len(threads)))
    return grouped


def _common(one: Sequence[int], other: Sequence[int]) -> Sequence[int]:
    """Return the beginning that two stacks share."""
    for at, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right:
            return one[:at]
    return one if len(one) <= len(other) else other
