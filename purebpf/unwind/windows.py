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

from purebpf.unwind.rows import NO_RULE, Rows

__all__ = ["WINDOW", "WINDOW_BITS", "cut_all", "cut_window", "find_in_block"]

WINDOW_BITS = 10
WINDOW = 1 << WINDOW_BITS
_OFFSET_BITS = 11
_OFFSET = (1 << _OFFSET_BITS) - 1


def cut_window(rows: Rows, number: int) -> array[int]:
    """The block of the window at address `number * WINDOW`, from rows that cover it."""
    start = number << WINDOW_BITS
    first = bisect_right(rows.starts, start)
    past = bisect_left(rows.starts, start + WINDOW, first)
    carried = rows.ids[first - 1] if first else NO_RULE
    block = array("I", (past - first + 1, carried << _OFFSET_BITS))
    block.extend(
        [
            at - start | rule << _OFFSET_BITS
            for at, rule in zip(rows.starts[first:past], rows.ids[first:past], strict=True)
        ]
    )
    return block


def cut_all(rows: Rows, first: int, count: int) -> tuple[array[int], array[int]]:
    """All windows from number `first` on.

    Returns:
        the index, with words that count from the start of the blocks, plus 1; and the blocks.
    """
    index, blocks = array("I"), array("I")
    past = bisect_left(rows.starts, first << WINDOW_BITS)
    values = [at & WINDOW - 1 | rule << _OFFSET_BITS for at, rule in zip(*rows, strict=True)]
    carried = (rows.ids[past - 1] if past else NO_RULE) << _OFFSET_BITS
    for number in range(first, first + count):
        begin = past
        past = bisect_left(rows.starts, number + 1 << WINDOW_BITS, begin)
        index.append(len(blocks) + 1)
        if begin < past and not values[begin] & _OFFSET:
            blocks.append(past - begin)
        else:
            blocks.extend((past - begin + 1, carried))
        if begin < past:
            blocks.extend(values[begin:past])
            carried = values[past - 1] & ~_OFFSET
    return index, array("I", blocks)


def find_in_block(block: array[int], offset: int) -> int:
    """The rule at an offset in a window, found as BPF does it."""
    at = bisect_right(block, offset, 1, 1 + block[0], key=_OFFSET.__and__)
    return block[at - 1] >> _OFFSET_BITS
