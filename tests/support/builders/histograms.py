"""Histograms as bpf_src/include/histogram.h fills them."""

from __future__ import annotations

from collections.abc import Iterable

from purebpf.results.shape.histogram import BUCKETS


def bucket_of(value: int) -> int:
    """As the C computes it."""
    if value < 4:
        return value
    exponent = value.bit_length() - 1
    return min((exponent - 1) * 4 + (value >> (exponent - 2) & 3), BUCKETS - 1)


def filled(values: Iterable[int]) -> list[int]:
    """The buckets with these values in them."""
    buckets = [0] * BUCKETS
    for value in values:
        buckets[bucket_of(value)] += 1
    return buckets
