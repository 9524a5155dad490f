"""What a run of sampleip lost in the kernel, from the counters of its program. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from purebpf.results import Cause
from purebpf.sampleip.request import Options

__all__ = ["losses"]


def losses(stats: Mapping[str, int], options: Options) -> tuple[Cause, ...]:
    """Every way to lose a sample after it was seen, zero or not.

    Args:
        stats: `struct stats` of bpf_src/sampleip.bpf.c by field, summed over the CPUs.
        options: what was asked for, for the advice.
    """
    full, none, failed = (stats[f"output_{name}"] for name in ("full", "none", "failed"))
    return (
        Cause(
            "output_full",
            full,
            f"{full} samples were lost: their CPU's ring was full (ENOSPC). Lower -F, or raise -m",
        ),
        Cause(
            "output_none",
            none,
            f"{none} samples were lost: their CPU had no ring (ENOENT), as it came online later",
        ),
        Cause("output_failed", failed, f"{failed} samples could not be sent"),
        Cause(
            "map_full",
            stats["counts_full"],
            f"{stats['counts_full']} samples were dropped: the map was full, at "
            f"{options.map_entries} addresses. Raise --map-entries",
        ),
        Cause(
            "map_busy",
            stats["counts_busy"],
            (
                f"{stats['counts_busy']} samples interrupted an update of the counts and were "
                "dropped. Lower -F"
            ),
        ),
        Cause(
            "outside_namespace",
            stats["outside_namespace"],
            f"{stats['outside_namespace']} samples were of tasks without an ID in this PID "
            "namespace: they are shown as process 0",
        ),
    )
