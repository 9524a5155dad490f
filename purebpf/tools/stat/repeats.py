"""Several runs of one command: means and their standard errors. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean, stdev

from purebpf.tools.stat.counts import Count, Result, Usage, losses

__all__ = ["average"]


def average(results: Sequence[Result]) -> Result:
    """Return the mean of each count over the runs that counted it; of one run, itself."""
    if len(results) == 1:
        return results[0]
    counts = tuple(map(_average_count, zip(*(result.counts for result in results), strict=True)))
    elapsed_s = [result.elapsed_s for result in results]
    usages = [result.usage for result in results if result.usage is not None]
    return Result(
        counts,
        mean(elapsed_s),
        mean(result.time_s for result in results),
        losses(counts),
        tuple(dict.fromkeys(note for result in results for note in result.notes)),
        _average_usage(usages) if usages else None,
        len(results),
        _standard_error(elapsed_s),
    )


def _average_count(runs: tuple[Count, ...]) -> Count:
    values = [count.value for count in runs if count.value is not None]
    return runs[0]._replace(
        counted=sum(count.counted for count in runs),
        value=mean(values) if values else None,
        enabled_ns=sum(count.enabled_ns for count in runs),
        running_ns=sum(count.running_ns for count in runs),
        uncounted=sum(count.uncounted for count in runs),
        standard_error=_standard_error(values),
    )


def _average_usage(usages: Sequence[Usage]) -> Usage:
    return Usage(
        mean(usage.user_s for usage in usages),
        mean(usage.system_s for usage in usages),
    )


def _standard_error(values: Sequence[float]) -> float | None:
    """Return the standard error of their mean: the deviation of a sample over the root of its
    size.
    """
    return stdev(values) / len(values) ** 0.5 if len(values) > 1 else None
