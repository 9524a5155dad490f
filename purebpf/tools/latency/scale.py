"""The bounds of a histogram's buckets, and their drawing. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from purebpf.results.shape.histogram import bucket_bounds, lines, percentile, picture, trim_unused
from purebpf.tuples import NamedTuple

__all__ = ["Scale"]

_UNITS = {1: "nsecs", 1000: "usecs", 1_000_000: "msecs"}


class Scale(NamedTuple):
    """The buckets of bpf_src/latency/rows.h.

    Attributes:
        unit_ns: nanoseconds of a unit: 1, 1000 or 1000000.
        linear: units of each bucket; 0: four buckets to each power of two.
        fine: those four are drawn one by one, not together.
    """

    unit_ns: int = 1000
    linear: int = 0
    fine: bool = False

    @property
    def bounds(self) -> Callable[[int], tuple[int, int]]:
        """The least units that a bucket holds, and the least that is too great for it.

        The last linear one also has everything above.
        """
        if self.linear:
            return lambda bucket: (bucket * self.linear, (bucket + 1) * self.linear)
        return bucket_bounds

    def bounds_ns(self, bucket: int) -> tuple[int, int]:
        """The same in nanoseconds."""
        low, high = self.bounds(bucket)
        return low * self.unit_ns, high * self.unit_ns

    def limits_ns(self, buckets: Sequence[int]) -> tuple[int, int]:
        """Return the bounds around all values; 0 and 0 of none."""
        used = [bucket for bucket, count in enumerate(buckets) if count]
        if not used:
            return 0, 0
        return self.bounds_ns(used[0])[0], self.bounds_ns(used[-1])[1] - 1

    def percentile_ns(
        self, buckets: Sequence[int], percent: float, least_ns: int, most_ns: int
    ) -> int | None:
        """The time that `percent` of all do not exceed; None of an empty histogram."""
        value = percentile(
            buckets,
            percent,
            least_ns // self.unit_ns,
            most_ns // self.unit_ns,
            bounds=self.bounds,
        )
        return None if value is None else min(max(value * self.unit_ns, least_ns), most_ns)

    def picture(self, buckets: Sequence[int]) -> Iterator[str]:
        """The histogram, as bcc prints it."""
        unit = _UNITS[self.unit_ns]
        if not self.linear and not self.fine:
            yield from lines(buckets, unit)
            return
        rows = [(*self.bounds(bucket), count) for bucket, count in enumerate(buckets)]
        yield from picture(trim_unused([(low, high - 1, count) for low, high, count in rows]), unit)
