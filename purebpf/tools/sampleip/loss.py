"""The losses of sampleip in the kernel, from the counters of its program. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from purebpf.results import Cause, count_cause
from purebpf.tools.sampleip.request import SampleIpOptions

__all__ = ["losses"]


def losses(stats: Mapping[str, int], options: SampleIpOptions) -> tuple[Cause, ...]:
    """Every way to lose a sample after it was seen, zero or not.

    Args:
        stats: `struct stats` of bpf_src/sampleip.bpf.c by field, summed over the CPUs.
        options: the options of the run, for the advice.
    """
    full, none, failed = (stats[f"output_{name}"] for name in ("full", "none", "failed"))
    return (
        count_cause(
            "output_full",
            full,
            "samples were lost: their CPU's ring was full (ENOSPC). Lower -F, or raise -m",
        ),
        count_cause(
            "output_none",
            none,
            "samples were lost: their CPU had no ring (ENOENT), as it came online later",
        ),
        count_cause("output_failed", failed, "samples could not be sent"),
        count_cause(
            "map_full",
            stats["counts_full"],
            "samples were dropped: the map was full, at "
            f"{options.map_entries} addresses. Raise --map-entries",
        ),
        count_cause(
            "map_busy",
            stats["counts_busy"],
            ("samples interrupted an update of the counts and were dropped. Lower -F"),
        ),
        count_cause(
            "outside_namespace",
            stats["outside_namespace"],
            "samples were of tasks without an ID in this PID "
            "namespace: they are shown as process 0",
        ),
    )
