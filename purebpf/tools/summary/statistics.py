"""Counts, times and their spread, exact: integers until the last division. Pure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from purebpf.results.shape.histogram import BUCKETS, percentile

__all__ = ["Statistics"]


class Statistics:
    """The calls of a row: counts, and times in nanoseconds.

    Attributes:
        calls: how many there were.
        errors: how many of them failed.
        untimed: how many of them have no duration, as only their return was seen: they were in
            flight when the run began, or seccomp or a tracer refused them.
        total_ns, min_ns, max_ns: of the durations of the others.
        squares: the sum of the squared durations.
        buckets: calls by duration (`purebpf.results.shape.histogram`); empty without histograms.
    """

    __slots__ = (
        *("_errnos", "buckets", "calls", "errors", "max_ns", "min_ns", "squares", "total_ns"),
        "untimed",
    )

    def __init__(self) -> None:
        self.calls = 0
        self.errors = 0
        self.untimed = 0
        self.total_ns = 0
        self.min_ns = 0
        self.max_ns = 0
        self.squares = 0
        # a machine may have a hundred thousand rows: most have neither
        self._errnos: Counter[int] | None = None
        self.buckets: Sequence[int] = ()

    def add(  # noqa: PLR0913 - the members of struct statistics
        self,
        calls: int,
        errors: int,
        total_ns: int,
        *,
        min_ns: int,
        max_ns: int,
        squares: int,
        untimed: int = 0,
    ) -> None:
        """Add the counts of one writer. Sums are exact, so the order does not matter."""
        if calls > untimed:
            self.min_ns = min(self.min_ns, min_ns) if self.timed else min_ns
        self.untimed += untimed
        self.max_ns = max(self.max_ns, max_ns)
        self.calls += calls
        self.errors += errors
        self.total_ns += total_ns
        self.squares += squares

    @property
    def timed(self) -> int:
        """The calls with a duration."""
        return self.calls - self.untimed

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
            untimed=other.untimed,
        )
        self.add_errnos(other.errnos)
        if other.buckets:
            self.add_buckets(other.buckets)

    @property
    def avg_ns(self) -> float:
        """The mean duration."""
        return self.total_ns / self.timed if self.timed else 0.0

    @property
    def variance(self) -> float:
        """The sample variance in ns^2, `statistics.variance` of the durations; 0 of one call."""
        if self.timed < 2:
            return 0.0
        return self._spread / (self.timed * (self.timed - 1))

    @property
    def stddev_pct(self) -> float:
        """The standard error of the mean, in percent of the mean: perf's `stddev` column."""
        if self.timed < 2 or not self.total_ns:
            return 0.0
        return 100 * math.sqrt(self._spread / (self.timed - 1)) / self.total_ns

    @property
    def _spread(self) -> int:
        return self.timed * self.squares - self.total_ns * self.total_ns

    def percentile_ns(self, percent: float) -> int | None:
        """The duration that `percent` of the calls do not exceed; None without a histogram.

        At most a quarter too high or a fifth too low.
        """
        return percentile(self.buckets, percent, self.min_ns, self.max_ns)
