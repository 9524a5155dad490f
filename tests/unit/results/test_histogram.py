"""Buckets, what they tell, and bcc's picture of them."""

from __future__ import annotations

import math
import random
from itertools import pairwise

import pytest

from purebpf.results.shape.histogram import (
    BUCKETS,
    bucket_bounds,
    lines,
    log2_lines,
    octaves,
    percentile,
)
from tests.support.builders.histograms import bucket_of, filled


def test_every_value_is_within_its_bucket() -> None:
    for value in [*range(4096), *(2**bit + off for bit in range(12, 49) for off in (-1, 0, 1))]:
        low, high = bucket_bounds(bucket_of(value))
        assert low <= value < high
    assert bucket_bounds(BUCKETS - 1)[1] == 1 << 49


def test_buckets_leave_no_gap() -> None:
    bounds = [bucket_bounds(bucket) for bucket in range(BUCKETS)]
    assert bounds[0][0] == 0
    assert all(left[1] == right[0] for left, right in pairwise(bounds))


@pytest.mark.parametrize("percent", [1, 50, 95, 99, 100])
def test_percentiles_are_within_a_quarter(percent: int) -> None:
    generator = random.Random(percent)
    values = sorted(int(generator.lognormvariate(8, 3)) for _ in range(9973))
    exact = values[math.ceil(len(values) * percent / 100) - 1]
    found = percentile(filled(values), percent)
    assert found is not None
    assert 0.8 * exact - 1 <= found <= 1.25 * exact + 1


def test_percentiles_of_nothing_are_none() -> None:
    assert percentile([0] * BUCKETS, 50) is None


def test_octaves_begin_and_end_with_values() -> None:
    assert octaves(filled([2, 3, 3, 20, 31])) == [(2, 3, 3), (4, 7, 0), (8, 15, 0), (16, 31, 2)]
    assert octaves([0] * BUCKETS) == []
    assert octaves(filled([0, 1])) == [(0, 1, 2)]


def test_the_picture_is_that_of_bcc() -> None:
    stars = "*" * 40
    assert "".join(lines(filled([0, 1, 1, 1, 5, 6]), "usecs")) == (
        "     usecs               : count     distribution\n"
        f"         0 -> 1          : 4        |{stars}|\n"
        f"         2 -> 3          : 0        |{' ' * 40}|\n"
        f"         4 -> 7          : 2        |{'*' * 20:<40}|\n"
    )
    wide = "".join(lines(filled([1 << 40]), "nsecs")).splitlines()
    assert wide[0] == "     nsecs                         : count     distribution"
    assert wide[1] == f"{1 << 40:>20} -> {(1 << 41) - 1:<20} : 1        |{stars[:20]}|"
    assert max(map(len, wide)) <= 80
    assert "".join(lines([0] * BUCKETS, "usecs")) == ""


def test_slots_of_powers_of_two_make_the_same_picture() -> None:
    values = [0, 1, 1, 2, 3, 70, 70, 127, 128]
    slots = [0] * 64
    for value in values:
        slots[max(value, 1).bit_length() - 1] += 1
    assert list(log2_lines(slots, "usecs")) == list(lines(filled(values), "usecs"))
    assert list(log2_lines([0] * 64, "usecs")) == []
