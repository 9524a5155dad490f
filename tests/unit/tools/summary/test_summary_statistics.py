"""Exact merging and Python's `statistics` as the oracle."""

from __future__ import annotations

import math
import random
import statistics

import pytest

from purebpf.tools.summary.statistics import Statistics
from tests.support.builders.histograms import filled


def counted(*writers: list[int]) -> Statistics:
    found = Statistics()
    for durations in writers:
        if durations:
            found.add(
                len(durations),
                0,
                sum(durations),
                min_ns=min(durations),
                max_ns=max(durations),
                squares=sum(each * each for each in durations),
            )
            found.add_buckets(filled(durations))
    return found


@pytest.mark.parametrize(
    "durations",
    [
        [1, 2],
        [7] * 1000,
        [2_100_000_000, 2_100_000_001, 2_099_999_999],  # squares beyond 64 bits
        [10_000_000_000, 10_000_000_001, 9_999_999_999, 150],
        [random.Random(5).randrange(1 << 40) for _ in range(997)],
    ],
)
def test_the_spread_is_that_of_the_standard_library(durations: list[int]) -> None:
    half = len(durations) // 2
    found = counted(durations[:half], [], durations[half:])
    assert found.calls == len(durations)
    assert found.total_ns == sum(durations)
    assert (found.min_ns, found.max_ns) == (min(durations), max(durations))
    assert found.avg_ns == statistics.mean(durations)
    assert found.variance == pytest.approx(statistics.variance(durations), rel=1e-12)
    error = statistics.stdev(durations) / math.sqrt(len(durations)) / statistics.mean(durations)
    assert found.stddev_pct == pytest.approx(100 * error, rel=1e-12)


def test_the_order_of_merging_does_not_matter() -> None:
    parts = [[3, 5, 8], [13], [21, 34, 55, 1 << 41]]
    one, other = Statistics(), Statistics()
    for part in parts:
        one.merge(counted(part))
    for part in reversed(parts):
        other.merge(counted(part))
    whole = counted([each for part in parts for each in part])
    names = ["errnos", *(name for name in Statistics.__slots__ if name != "_errnos")]
    for found in (one, other):
        assert [getattr(found, name) for name in names] == [getattr(whole, name) for name in names]


@pytest.mark.parametrize("durations", [[], [0], [12345], [0, 0]])
def test_few_calls_have_no_spread(durations: list[int]) -> None:
    found = counted(durations)
    assert found.variance == found.stddev_pct == 0.0


def test_zero_is_a_minimum() -> None:
    assert counted([5], [0, 9]).min_ns == 0


@pytest.mark.parametrize("percent", [1, 50, 95, 99, 100])
def test_percentiles_are_within_a_quarter(percent: int) -> None:
    generator = random.Random(percent)
    durations = sorted(int(generator.lognormvariate(8, 3)) for _ in range(9973))
    exact = durations[math.ceil(len(durations) * percent / 100) - 1]
    found = counted(durations).percentile_ns(percent)
    assert found is not None
    assert 0.8 * exact <= found <= 1.25 * exact


def test_percentiles_stay_between_the_extremes() -> None:
    found = counted([50_071_000] * 18 + [53_000_000])
    low, high = found.percentile_ns(1), found.percentile_ns(100)
    assert low is not None
    assert high is not None
    assert 50_071_000 <= low < high <= 53_000_000


def test_percentiles_of_equal_calls_are_that_duration() -> None:
    assert counted([777] * 5).percentile_ns(50) == 777


def test_no_histogram_no_percentile() -> None:
    assert Statistics().percentile_ns(50) is None
