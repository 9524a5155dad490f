"""Tests if a share differs between two sides by more than chance explains. Pure.

A share is a ratio of sums over clusters (hosts, or windows): its error comes from how clusters
differ from it (linearised ratio estimator: Cochran, Sampling Techniques, 1977, section 6.4). The
same cluster on both sides makes a pair, so that hosts which always differ do not hide a change.
"""

from __future__ import annotations

import math
from typing import NamedTuple

__all__ = ["MISTAKES", "Moments", "Wholes", "least_z", "standard_error", "z_of"]

MISTAKES = 0.001
"""One comparison of so many may show, by chance alone, a single function that has not changed."""


class Moments(NamedTuple):
    """Sums over clusters of a function's value x and of the whole t, of sides a and b."""

    x_a: float
    x_b: float
    xx_a: float
    xx_b: float
    xt_a: float
    xt_b: float
    xx_ab: float
    """x of a times x of b, where a cluster has both; the next two likewise."""
    xt_ab: float
    xt_ba: float


class Wholes(NamedTuple):
    """Sums over clusters of the whole t, and how many clusters each side has.

    `period` is the weight of one sample, in the unit of x; 0: x was not sampled.
    """

    t_a: float
    t_b: float
    tt_a: float
    tt_b: float
    tt_ab: float
    clusters_a: int
    clusters_b: int
    period: float = 0.0


def standard_error(of: Moments, whole: Wholes) -> float:
    """The standard error of the difference of both shares, as a part of 1.

    It is not less than the error of counting: samples arrive by chance even where clusters agree.
    """
    a, b = of.x_a / whole.t_a, of.x_b / whole.t_b
    within_a = of.xx_a - 2 * a * of.xt_a + a * a * whole.tt_a
    within_b = of.xx_b - 2 * b * of.xt_b + b * b * whole.tt_b
    across = of.xx_ab - b * of.xt_ab - a * of.xt_ba + a * b * whole.tt_ab
    clusters = min(whole.clusters_a, whole.clusters_b)
    variance = (
        within_a / whole.t_a**2 + within_b / whole.t_b**2 - 2 * across / (whole.t_a * whole.t_b)
    ) * (clusters / (clusters - 1) if clusters > 1 else 1)
    counting = whole.period * (of.x_a / whole.t_a**2 + of.x_b / whole.t_b**2)
    return math.sqrt(max(variance, counting, 0.0))


def z_of(difference: float, error: float, clusters: int) -> float:
    """Return a difference as standard normal deviates, reduced for the uncertainty of few clusters.

    Student's t with `clusters` - 1 degrees of freedom, by Wallace's approximation (Annals of
    Mathematical Statistics 30, 1959).
    """
    if not error:
        return math.copysign(math.inf, difference) if difference else 0.0
    t, freedom = difference / error, max(1, clusters - 1)
    root = math.sqrt(freedom * math.log1p(t * t / freedom))
    return math.copysign((8 * freedom + 1) / (8 * freedom + 3) * root, t)


def least_z(functions: int) -> float:
    """The deviates that count, where so many functions are compared (Bonferroni)."""
    from statistics import NormalDist

    return -NormalDist().inv_cdf(MISTAKES / 2 / max(1, functions))
