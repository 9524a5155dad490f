"""Histograms with four buckets to each power of two, as bpf_src/include/histogram.h fills them.

Pure. 0 to 3 have a bucket each; a bucket above holds a quarter of the range between two powers of
two, up to 2^49.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from purebpf.results.model.units import count_in_unit

__all__ = [
    "BUCKETS",
    "bucket_bounds",
    "lines",
    "log2_lines",
    "octaves",
    "percentile",
    "picture",
    "trim_unused",
]

BUCKETS = 192
_STARS = 40
_DIGITS = 10


def bucket_bounds(bucket: int) -> tuple[int, int]:
    """The least value that a bucket holds, and the least that is too great for it."""
    if bucket < 4:
        return bucket, bucket + 1
    octave, quarter = divmod(bucket, 4)
    return 4 + quarter << octave - 1, 5 + quarter << octave - 1


def octaves(buckets: Sequence[int]) -> list[tuple[int, int, int]]:
    """By powers of two: (least, most, count), from the first to the last that has any."""
    rows: list[tuple[int, int, int]] = [
        (0, 1, sum(buckets[0:2])),
        (2, 3, sum(buckets[2:4])),
    ]
    for at in range(4, len(buckets), 4):
        low, _ = bucket_bounds(at)
        rows.append((low, 2 * low - 1, sum(buckets[at : at + 4])))
    return trim_unused(rows)


def trim_unused(rows: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """The rows of (least, most, count) from the first to the last that has any."""
    used = [index for index, (_, _, count) in enumerate(rows) if count]
    return rows[used[0] : used[-1] + 1] if used else []


def percentile(
    buckets: Sequence[int],
    percent: float,
    least: int = 0,
    most: int = 1 << 64,
    *,
    bounds: Callable[[int], tuple[int, int]] = bucket_bounds,
) -> int | None:
    """The value that `percent` of all do not exceed; None of an empty histogram.

    The bucket is exact, the place in it is interpolated: at most a quarter too high or a fifth too
    low. `least` and `most` are the extreme values, if available; `bounds` are a bucket's least
    value and the least value above it.
    """
    counted = sum(buckets)
    if not counted:
        return None
    rank = max(1, math.ceil(counted * percent / 100))
    below = 0
    for bucket, count in enumerate(buckets):
        if below + count >= rank:
            low, high = bounds(bucket)
            low, high = max(low, least), min(high, most + 1)
            return low + (high - low) * (rank - below) // (count + 1)
        below += count
    raise AssertionError("the buckets add up to fewer than they add up to")


def lines(buckets: Sequence[int], unit: str) -> Iterator[str]:
    """A histogram by powers of two, as bcc prints it; nothing of an empty one.

    usecs               : count     distribution
        0 -> 1          : 233      |***********                             |
    """
    yield from picture(octaves(buckets), unit)


def log2_lines(slots: Sequence[int], unit: str) -> Iterator[str]:
    """The same of slots that a program of yours counted in.

    Slot 0 has the values 0 and 1, slot N those from 2**N on, as with libbpf-tools' `log2l()`; bcc's
    `bpf_log2l()` gives one more, so leave out the first: `slots[1:]`.
    """
    rows = [(1 << slot & ~1, (2 << slot) - 1, count) for slot, count in enumerate(slots)]
    yield from picture(trim_unused(rows), unit)


def picture(rows: list[tuple[int, int, int]], unit: str) -> Iterator[str]:
    """Rows of (least, most, count) as bcc prints them; nothing of none."""
    if not rows:
        return
    most = max(count for *_, count in rows)
    # in 80 columns, as bcc's print_log2_hist() has them
    width, head, room = (10, 19, _STARS) if rows[-1][1] < 1 << 32 else (20, 29, _STARS // 2)
    yield f"     {unit:<{head}} : count     distribution\n"
    for low, high, count in rows:
        stars = "*" * (room * count // most)
        number = count_in_unit(count, _DIGITS)
        yield f"{low:>{width}} -> {high:<{width}} : {number:<8} |{stars:<{room}}|\n"
