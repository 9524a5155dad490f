"""Counting records by type, without looking into them: 5 ms for a million of one length.

A header is 8 bytes: type, misc and size. When the header at every step of one size is the same,
these are the headers of that many records: each leads to the next. So comparing strided copies
finds the length of a run, at a few nanoseconds a record, where a loop takes 80.
"""

from __future__ import annotations

from collections import Counter

from purebpf.errors import FormatError
from purebpf.wire.perf_ring import HEADER

__all__ = ["count_types"]

_STREAK = 8
"""Records of one size in succession, after which a run is looked for."""

_WORTH = 64
"""A shorter run was not worth it: the next one is looked for after a longer streak."""

_FIRST_LOOK, _LONGEST_LOOK = 32, 1 << 12
_WORD = 8


def count_types(data: bytes) -> Counter[int]:
    """Return how many records of each type (enum perf_event_type) the bytes hold.

    Raises:
        FormatError: a record claims to be shorter than its header.
    """
    at, end = 0, len(data)
    unpack, size_of_header = HEADER.unpack_from, HEADER.size
    runs: Counter[int] = Counter()
    single: list[int] = []
    append = single.append
    last = streak = 0
    wanted = _STREAK
    while at < end:
        type_, _, size = unpack(data, at)
        if size < size_of_header:
            raise FormatError("perf ring", f"offset {at}", f"a record of {size} bytes")
        append(type_)
        if size != last:
            last, streak = size, 0
        elif (streak := streak + 1) == wanted:
            count = _run(data, at, size)
            runs[type_] += count - 1  # this one is noted
            at += (count - 1) * size
            wanted = _STREAK if count > _WORTH else 2 * wanted
            streak = 0
        at += size
    runs.update(single)
    return runs


def _run(data: bytes, at: int, size: int) -> int:
    """Return how many consecutive records at `at` have the same header as the first."""
    if at % _WORD or size % _WORD:
        return 1
    words = memoryview(data)[: len(data) // _WORD * _WORD].cast("Q")
    header = data[at : at + _WORD]
    total, length, may_grow = 0, _FIRST_LOOK, True
    at, step = at // _WORD, size // _WORD
    while length and at < len(words):
        headers = words[at : at + length * step : step].tobytes()
        count = len(headers) // _WORD
        if headers == header * count:
            total += count
            at += count * step
            length = min(2 * length, _LONGEST_LOOK) if may_grow else length // 2
        else:
            may_grow = False
            length //= 2
    return total
