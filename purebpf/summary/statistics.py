"""Counts, times and their spread, exact: integers until the last division. Pure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

__all__ = ["BUCKETS", "Statistics", "bucket_bounds", "octaves"]

BUCKETS = 192
"""As in bpf_src/summary.bpf.c: one for each of 0 to 3 ns, then four to each power of two."""


class Statistics:
    """What is known of the calls in a row. Times are in nanoseconds.

    Attributes:
        calls: how many there were.
        errors: how many of them failed.
        total_ns, min_ns, max_ns: of their durations.
        squares: the sum of the squared durations.
        buckets: calls by duration (`bucket_bounds`); empty unless they were asked for.
    """

    __slots__ = ("_errnos", "buckets", "calls", "errors", "max_ns", "min_ns", "squares", "total_ns")

    def __init__(self) -> None:
        self.calls = 0
        self.errors = 0
        self.total_ns = 0
        self.min_ns = 0
        self.max_ns = 0
        self.squares = 0
        # a machine may have a hundred thousand rows: most have neither
        self._errnos: Counter[int] | None = None
        self.buckets: Sequence[int] = ()

    def add(
        self, calls: int, errors: int, total_ns: int, *, min_ns: int, max_ns: int, squares: int
    ) -> None:
        """Add what one writer saw. Sums are exact, so the order does not matter."""
        if not calls:
            return
        self.min_ns = min(self.min_ns, min_ns) if self.calls else min_ns
        self.max_ns = max(self.max_ns, max_ns)
        self.calls += calls
        self.errors += errors
        self.total_ns += total_ns
        self.squares += squares

    @property
    def errnos(self) -> Counter[int]:
        """Failed calls by error number."""
        return Counter() if self._errnos is None else self._errnos

    def add_errnos(self, errnos: Mapping[int, int]) -> None:
        """Add failed calls by error number; they are among `errors` already."""
        if errnos:
            self._errnos = self.errnos + Counter(errnos)

    def add_buckets(self, buckets: Sequence[int]) -> None:
        """Add a histogram."""
        if not self.buckets:
            self.buckets = [0] * BUCKETS
        self.buckets = [mine + theirs for mine, theirs in zip(self.buckets, buckets, strict=True)]

    def merge(self, other: Statistics) -> None:
        """Add another row."""
        self.add(
            other.calls,
            other.errors,
            other.total_ns,
            min_ns=other.min_ns,
            max_ns=other.max_ns,
            squares=other.squares,
        )
        self.add_errnos(other.errnos)
        if other.buckets:
            self.add_buckets(other.buckets)

    @property
    def avg_ns(self) -> float:
        """The mean duration."""
        return self.total_ns / self.calls if self.calls else 0.0

    @property
    def variance(self) -> float:
        """The sample variance in ns^2, `statistics.variance` of the durations; 0 of one call."""
        if self.calls < 2:
            return 0.0
        return self._spread / (self.calls * (self.calls - 1))

    @property
    def stddev_pct(self) -> float:
        """The standard error of the mean, in percent of the mean: perf's `stddev` column."""
        if self.calls < 2 or not self.total_ns:
            return 0.0
        return 100 * math.sqrt(self._spread / (self.calls - 1)) / self.total_ns

    @property
    def _spread(self) -> int:
        return self.calls * self.squares - self.total_ns * self.total_ns

    def percentile_ns(self, percent: float) -> int | None:
        """The duration that `percent` of the calls do not exceed; None without a histogram.

        The bucket is exact, the place in it is interpolated: at most a quarter too high or a
        fifth too low.
        """
        counted = sum(self.buckets)
        if not counted:
            return None
        rank = max(1, math.ceil(counted * percent / 100))
        below = 0
        for bucket, count in enumerate(self.buckets):
            if below + count >= rank:
                low, high = bucket_bounds(bucket)
                low, high = max(low, self.min_ns), min(high, self.max_ns + 1)
                return low + (high - low) * (rank - below) // (count + 1)
            below += count
        raise AssertionError("the buckets add up to fewer calls than they add up to")


def bucket_bounds(bucket: int) -> tuple[int, int]:
    """The least duration that a bucket holds, and the least that is too long for it."""
    if bucket < 4:
        return bucket, bucket + 1
    octave, quarter = divmod(bucket, 4)
    return 4 + quarter << octave - 1, 5 + quarter << octave - 1


def octaves(buckets: Sequence[int]) -> list[tuple[int, int, int]]:
    """A histogram by powers of two: (least, most, calls), from the first to the last with calls."""
    found: list[tuple[int, int, int]] = [
        (0, 1, sum(buckets[0:2])),
        (2, 3, sum(buckets[2:4])),
    ]
    for at in range(4, len(buckets), 4):
        low, _ = bucket_bounds(at)
        found.append((low, 2 * low - 1, sum(buckets[at : at + 4])))
    used = [index for index, (_, _, calls) in enumerate(found) if calls]
    return found[used[0] : used[-1] + 1] if used else []
