"""Rows cut into windows of 1 KiB of text, as BPF searches them.

    block  u32 number of rows, rows
    row    u32: 11 bits offset in the window, 21 bits rule; ascending, the first at offset 0
    index  u32 for each window: where its block is, 0: not built

The first row of a block carries over the rule from the window before, so that a search never
leaves its block. The largest block is 1025 words.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Generator
from itertools import repeat
from operator import and_, lshift, or_

from purebpf.unwind.rows import NO_RULE, Rows, finish

__all__ = [
    "OFFSET_BITS",
    "WINDOW",
    "WINDOW_BITS",
    "cut_all",
    "cut_window",
    "cutting_all",
    "find_in_block",
]

WINDOW_BITS = 10
WINDOW = 1 << WINDOW_BITS
OFFSET_BITS = 11
_OFFSET = (1 << OFFSET_BITS) - 1
_SHIFT = repeat(OFFSET_BITS)
_SLICE_WINDOWS = 1024
"""Windows cut between two yields: about 3 ms."""


def cut_window(rows: Rows, number: int) -> array[int]:
    """The block of the window at address `number * WINDOW`, from rows that cover it."""
    start = number << WINDOW_BITS
    first = bisect_right(rows.starts, start)
    past = bisect_left(rows.starts, start + WINDOW, first)
    carried = rows.ids[first - 1] if first else NO_RULE
    block = array("I", (past - first + 1, carried << OFFSET_BITS))
    block.extend(
        [
            at - start | rule << OFFSET_BITS
            for at, rule in zip(rows.starts[first:past], rows.ids[first:past], strict=True)
        ]
    )
    return block


def cut_all(rows: Rows, first: int, count: int) -> tuple[array[int], array[int]]:
    """All windows from number `first` on; see `cutting_all`."""
    return finish(cutting_all(rows, first, count))


def cutting_all(
    rows: Rows, first: int, count: int
) -> Generator[None, None, tuple[array[int], array[int]]]:
    """All windows from number `first` on, in slices.

    Returns:
        the index, with words that count from the start of the blocks, plus 1; and the blocks.
    """
    index, blocks = array("I"), array("I")
    past = bisect_left(rows.starts, first << WINDOW_BITS)
    carried = (rows.ids[past - 1] if past else NO_RULE) << OFFSET_BITS
    for begun in range(first, first + count, _SLICE_WINDOWS):
        yield
        ended = min(begun + _SLICE_WINDOWS, first + count)
        begin, base = past, past
        stop = bisect_left(rows.starts, ended << WINDOW_BITS, begin)
        offsets = map(and_, rows.starts[begin:stop], repeat(WINDOW - 1))
        values = array("I", map(or_, offsets, map(lshift, rows.ids[begin:stop], _SHIFT)))
        for number in range(begun, ended):
            begin = past
            past = bisect_left(rows.starts, number + 1 << WINDOW_BITS, begin, stop)
            index.append(len(blocks) + 1)
            if begin == past:
                blocks.extend((1, carried))
                continue
            if values[begin - base] & _OFFSET:
                blocks.extend((past - begin + 1, carried))
            else:
                blocks.append(past - begin)
            blocks.extend(values[begin - base : past - base])
            carried = values[past - base - 1] & ~_OFFSET
    return index, blocks


def find_in_block(block: array[int], offset: int) -> int:
    """The rule at an offset in a window, found as BPF does it."""
    at = bisect_right(block, offset, 1, 1 + block[0], key=_OFFSET.__and__)
    return block[at - 1] >> OFFSET_BITS
