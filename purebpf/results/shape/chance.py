"""Tells a change between two samplings from the chance of sampling. Pure.

The number of samples in a function varies from run to run as the counts of rare events do: its
variance is the number itself.
"""

from __future__ import annotations

import math

__all__ = ["is_chance", "least_deviates"]

_MISTAKES = 0.01
"""One comparison of so many shows, by chance alone, a single function that has not changed."""


def least_deviates(functions: int) -> float:
    """The standard deviations that count, where so many functions are compared (Bonferroni)."""
    from statistics import NormalDist  # which text without a comparison need not pay

    return -NormalDist().inv_cdf(_MISTAKES / 2 / max(1, functions))


def is_chance(samples: tuple[float, float], scales: tuple[float, float], deviates: float) -> bool:
    """Return True if two numbers of samples differ by no more than chance explains.

    Args:
        samples: before and after.
        scales: the value of a sample on each side.
        deviates: of `least_deviates`.
    """
    values = [count * scale for count, scale in zip(samples, scales, strict=True)]
    error = math.hypot(
        *(math.sqrt(count) * scale for count, scale in zip(samples, scales, strict=True))
    )
    return abs(values[1] - values[0]) <= deviates * error
