"""Rows for addresses without call frame information: stack depths, or judged gaps."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Generator, Iterator
from typing import Protocol

from purebpf.unwind.gaps import PIECE, SHORTEST, Gap, Gaps
from purebpf.unwind.interpreter import PlainRule
from purebpf.unwind.machine import X86_64
from purebpf.unwind.rows import NO_RULE, Rows, RuleTable
from purebpf.unwind.rule import CFA_EXPRESSION, DEPTH_FRAMELESS, DEPTH_UNKNOWN

__all__ = ["StackDepths", "add_depths", "code_rule", "judge_gaps", "read_gaps"]

_WORD = 8
_BY_SLOT = 2
_BREG_SP, _DEREF, _PLUS_UCONST = 0x77, 0x06, 0x23
"""Operations of DWARF expressions."""


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
    rows: Rows, table: RuleTable, gaps: Gaps, part: Gap, most: int
) -> Generator[None, None, tuple[Rows, bool]]:
    """Return the rows from one address up to another, with rules for gaps without frame pointers.

    Short gaps stay as they are; long ones are judged piece by piece, with a pause after each.

    Args:
        rows: the rows of entries.
        table: numbers the rules.
        gaps: the gaps of the file.
        part: the addresses.
        most: bytes of code whose instructions are read; code behind them has `DEPTH_FRAMELESS`.

    Returns:
        the rows, and True if there is code that was not read: see `read_gaps`.
    """
    start, end = part
    first = bisect_right(rows.starts, start)
    past = bisect_left(rows.starts, end, first)
    starts = array("Q", (start,)) + rows.starts[first:past]
    ids = array("I", (rows.ids[first - 1] if first else NO_RULE,)) + rows.ids[first:past]
    starts.append(end)
    judged = Rows(array("Q"), array("I"))
    done, is_unread = 0, False
    for at in _places_of(NO_RULE, ids):
        begun, stop = starts[at], starts[at + 1]
        if at and stop < end and stop - begun < SHORTEST:
            continue
        judged.starts.extend(starts[done:at])
        judged.ids.extend(ids[done:at])
        done = at + 1
        while begun < stop:
            following = min(stop, (begun & -PIECE) + PIECE)
            if gaps.keeps(begun):
                _add(judged, begun, NO_RULE)
            elif following - begun > most:
                is_unread = True
                _add(judged, begun, table.depth(DEPTH_FRAMELESS))
            else:
                most -= following - begun
                _add_frames(judged, table, gaps, Gap(begun, following))
            begun = following
            yield
    judged.starts.extend(starts[done:-1])
    judged.ids.extend(ids[done:])
    if judged.ids and judged.ids[-1] != NO_RULE:  # it holds up to the end, in each window
        judged.starts.append(end)
        judged.ids.append(NO_RULE)
    return judged, is_unread


def read_gaps(
    rows: Rows, table: RuleTable, gaps: Gaps, most: int
) -> Generator[None, None, tuple[Rows, list[Gap]]]:
    """Return the rows with rules for code that `judge_gaps` did not read, and where that code is.

    Args:
        rows: the result of `judge_gaps`.
        table: numbers the rules.
        gaps: the gaps of the file.
        most: bytes of code whose instructions are read.
    """
    known, parts = Rows(array("Q"), array("I")), []
    done = 0
    for at in _places_of(table.depth(DEPTH_FRAMELESS), rows.ids):
        begun, stop = rows.starts[at], rows.starts[at + 1]
        if stop - begun > most:
            continue
        most -= stop - begun
        known.starts.extend(rows.starts[done:at])
        known.ids.extend(rows.ids[done:at])
        done = at + 1
        parts.append(Gap(begun, stop))
        while begun < stop:
            following = min(stop, (begun & -PIECE) + PIECE)
            _add_frames(known, table, gaps, Gap(begun, following))
            begun = following
            yield
    known.starts.extend(rows.starts[done:])
    known.ids.extend(rows.ids[done:])
    return known, parts


def _add_frames(rows: Rows, table: RuleTable, gaps: Gaps, part: Gap) -> None:
    """Append the rules of code by its instructions."""
    unknown = DEPTH_UNKNOWN if gaps.are_read else DEPTH_FRAMELESS
    for place, frame in gaps.frames(*part):
        rule = table.number(code_rule(*frame)) if frame else NO_RULE
        _add(rows, place, rule or table.depth(unknown))


def code_rule(depth: int, fp: int, base: int, slot: int) -> PlainRule:
    """Return the rule of code by its frame, as in `CodeFrameLike`."""
    saved = -fp - _WORD if fp else None
    if base == _BY_SLOT:
        code = bytes((_BREG_SP, slot & 0x7F | 0x80, slot >> 7, _DEREF, _PLUS_UCONST, depth + _WORD))
        return CFA_EXPRESSION, code, saved, -_WORD, False
    register = X86_64.fp if base else X86_64.sp
    return register, depth + _WORD, saved, -_WORD, False


def _add(rows: Rows, address: int, rule_id: int) -> None:
    """Append a row, if its rule is another one than that before."""
    if rule_id != (rows.ids[-1] if rows.ids else NO_RULE):
        rows.starts.append(address)
        rows.ids.append(rule_id)


def _places_of(wanted: int, numbers: array[int]) -> Iterator[int]:
    """Yield the places of a number in an array, in ascending order."""
    at = -1
    try:
        while True:
            at = numbers.index(wanted, at + 1)
            yield at
    except ValueError:
        return
