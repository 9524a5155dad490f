"""Rows for addresses without call frame information: stack depths, or judged gaps."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Generator, Iterator
from typing import Protocol

from purebpf.unwind.gaps import BLOCK, SHORTEST, Gaps
from purebpf.unwind.rows import NO_RULE, Rows, RuleTable
from purebpf.unwind.rule import DEPTH_FRAMELESS

__all__ = ["StackDepths", "add_depths", "judge_gaps"]


class StackDepths(Protocol):
    """The interface for the stack depth of functions without rules; `GoStack` is one.

    Below 0: `DEPTH_ELSEWHERE` and `DEPTH_OUTERMOST` of `purebpf.unwind.rule`.
    """

    def depth(self, address: int, /) -> int | None:
        """At an address; None: not known."""

    def depths(self, start: int, end: int, /) -> Iterator[tuple[int, int | None]]:
        """Yield each place from `start` to `end` at which the depth changes, and the new depth;
        `start` comes first.
        """


def add_depths(rows: Rows, table: RuleTable, depths: StackDepths, start: int, end: int) -> Rows:
    """Return the rows from one address up to another, with stack depths where they have no rule."""
    known = dict(depths.depths(start, end))
    first = bisect_right(rows.starts, start)
    past = bisect_left(rows.starts, end, first)
    ids = dict(zip(rows.starts[first:past], rows.ids[first:past], strict=True))
    rule_id = rows.ids[first - 1] if first else NO_RULE
    depth: int | None = None
    both = Rows(array("Q"), array("I"))
    for address in sorted({start, *known, *ids}):
        rule_id = ids.get(address, rule_id)
        depth = known.get(address, depth)
        both.starts.append(address)
        both.ids.append(table.depth(depth) if rule_id == NO_RULE else rule_id)
    return both


def judge_gaps(
    rows: Rows, table: RuleTable, gaps: Gaps, start: int, end: int
) -> Generator[None, None, Rows]:
    """Return the rows from one address up to another, with gaps without frame pointers.

    Short gaps stay as they are; long ones are judged block by block, with a pause after each.
    """
    first = bisect_right(rows.starts, start)
    past = bisect_left(rows.starts, end, first)
    starts = array("Q", (start,)) + rows.starts[first:past]
    ids = array("I", (rows.ids[first - 1] if first else NO_RULE,)) + rows.ids[first:past]
    starts.append(end)
    judged = Rows(array("Q"), array("I"))
    done = 0
    for at in _places_of(NO_RULE, ids):
        begun, stop = starts[at], starts[at + 1]
        if at and stop < end and stop - begun < SHORTEST:
            continue
        judged.starts.extend(starts[done:at])
        judged.ids.extend(ids[done:at])
        done = at + 1
        while begun < stop:
            is_kept = gaps.keeps(begun)
            rule_id = NO_RULE if is_kept else table.depth(DEPTH_FRAMELESS)
            if rule_id != (judged.ids[-1] if judged.ids else NO_RULE):
                judged.starts.append(begun)
                judged.ids.append(rule_id)
            begun = (begun & -BLOCK) + BLOCK
            yield
    judged.starts.extend(starts[done:-1])
    judged.ids.extend(ids[done:])
    if judged.ids and judged.ids[-1] != NO_RULE:  # it holds up to the end, in each window
        judged.starts.append(end)
        judged.ids.append(NO_RULE)
    return judged


def _places_of(wanted: int, numbers: array[int]) -> Iterator[int]:
    """Yield the places of a number in an array, in ascending order."""
    at = -1
    try:
        while True:
            at = numbers.index(wanted, at + 1)
            yield at
    except ValueError:
        return
