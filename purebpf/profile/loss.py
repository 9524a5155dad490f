"""What a run of the profiler lost, from the counters of its BPF program. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from purebpf.profile.options import MAX_DEPTH, Options
from purebpf.report import Cause, Loss

if TYPE_CHECKING:
    from purebpf.kernel.perf_event import Reading

__all__ = ["Clock", "expected_samples", "losses"]

_SECOND_NS = 1_000_000_000


class Clock(NamedTuple):
    """How often an event was to sample.

    `is_time`: it counts nanoseconds, idle or not, as cpu-clock does; cycles stop with the CPU.
    """

    is_time: bool
    frequency: int
    period: int | None


def expected_samples(clock: Clock, counts: Iterable[Reading]) -> int:
    """How many samples the events were due: count / period, or time enabled x frequency."""
    period = clock.period
    if period is None and clock.is_time:
        period = _SECOND_NS // clock.frequency  # as the kernel does (perf_swevent_init_hrtimer)
    if period is not None:
        return sum(count.value // period for count in counts)
    return sum(count.time_enabled_ns * clock.frequency // _SECOND_NS for count in counts)


def losses(
    stats: Mapping[str, int],
    options: Options,
    *,
    expected: int,
    tolerance: int,
    max_depth: int,
    side_band_lost: int,
) -> Loss:
    """Every way to lose something, zero or not.

    Args:
        stats: `struct stats` of bpf_src/profile.bpf.c by field, summed over the CPUs.
        options: what was asked for, for the advice.
        expected: samples that were due.
        tolerance: how many of them may be missing in an honest run.
        max_depth: frames at which a stack is cut.
        side_band_lost: records of `SideBand` that found no room.
    """
    stacks = stats["stacks_full"] + stats["stacks_crowded"] + stats["stacks_busy"]
    truncated = stats["user_truncated"] + stats["kernel_truncated"]
    unavailable = stats["user_unavailable"] + stats["kernel_unavailable"]
    causes = (
        Cause(
            "map_full",
            stats["counts_full"],
            f"{stats['counts_full']} samples found no place among "
            f"{options.hash_storage_size} counts. Raise --hash-storage-size",
        ),
        Cause(
            "map_busy",
            stats["counts_busy"],
            f"{stats['counts_busy']} samples interrupted an update of the counts. Lower -F",
        ),
        Cause("stacks_lost", stacks, _stacks_lost(stats, options)),
        Cause(
            "truncated",
            truncated,
            f"{stats['user_truncated']} user and {stats['kernel_truncated']} kernel stacks reached "
            f"{max_depth} frames and lack their roots. {_deeper(max_depth)}",
        ),
        Cause(
            "unavailable",
            unavailable,
            f"{stats['user_unavailable']} user and {stats['kernel_unavailable']} kernel stacks "
            "could not be walked (bpf_get_stack failed)",
        ),
        Cause(
            "sideband_lost",
            side_band_lost,
            f"{side_band_lost} records of new processes and mappings were lost: names of "
            "processes that ended meanwhile may be missing",
        ),
    )
    return Loss(expected, stats["seen"], tolerance, causes)


def _stacks_lost(stats: Mapping[str, int], options: Options) -> str:
    parts = []
    if stats["stacks_full"]:
        parts.append(
            f"{stats['stacks_full']} samples have a stack that found no place among "
            f"{options.stack_storage_size}. Raise --stack-storage-size"
        )
    if stats["stacks_crowded"]:
        parts.append(f"{stats['stacks_crowded']} share their hash with too many other stacks")
    if stats["stacks_busy"]:
        parts.append(f"{stats['stacks_busy']} interrupted an update of the stacks. Lower -F")
    return "; ".join(parts)


def _deeper(max_depth: int) -> str:
    if max_depth < MAX_DEPTH:
        return f"Raise it: sysctl kernel.perf_event_max_stack={MAX_DEPTH}"
    return f"{MAX_DEPTH} is the most that is kept"
