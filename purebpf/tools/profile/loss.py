"""The losses of a profiler run, from the counters of its BPF program. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from purebpf.observe.instruments.process_tree import CAPACITY
from purebpf.observe.instruments.stack_maps import MAX_DEPTH
from purebpf.results import Loss, count_cause
from purebpf.results.build.stored_stacks import causes
from purebpf.tools.profile.request import ProfileOptions
from purebpf.tuples import NamedTuple

if TYPE_CHECKING:
    from purebpf.loader.perf.perf_event import Reading

__all__ = ["Clock", "count_asleep", "expected_samples", "losses"]

_SECOND_NS = 1_000_000_000


class Clock(NamedTuple):
    """The intended sampling rate of an event.

    `is_time`: it counts nanoseconds, idle or not, as cpu-clock does; cycles stop with the CPU.
    """

    is_time: bool
    frequency: int
    period: int | None


def expected_samples(clock: Clock, counts: Iterable[Reading]) -> int:
    """Return the number of samples due: count / period, or time enabled x frequency."""
    period = clock.period
    if period is None and clock.is_time:
        period = _SECOND_NS // clock.frequency  # as the kernel does (perf_swevent_init_hrtimer)
    if period is not None:
        return sum(count.value // period for count in counts)
    return sum(count.time_enabled_ns * clock.frequency // _SECOND_NS for count in counts)


def count_asleep(clock: Clock, missed: int, idle_s: float, idle_seen: int) -> int:
    """Return how many of the samples that never arrived were due while a CPU slept.

    A CPU that sleeps may be woken for each of them, late or not at all: by the kernel without
    ticks, by a hypervisor that has no reason to run it. There was nothing to sample. Samples that a
    busy CPU missed (a throttled event, time that a hypervisor stole) do not count.

    Args:
        clock: the sampling rate.
        missed: samples that never arrived.
        idle_s: how long the CPUs of the events were idle, together.
        idle_seen: samples of the idle task that did arrive.
    """
    if not clock.is_time:  # cycles: nothing was due
        return 0
    period_ns = clock.period or _SECOND_NS // clock.frequency
    due = int(idle_s * _SECOND_NS) // period_ns
    return max(0, min(missed, due - idle_seen))


def losses(
    stats: Mapping[str, int],
    options: ProfileOptions,
    *,
    expected: int,
    tolerance: int,
    max_depth: int,
    side_band_lost: int,
    children_missed: int | None = None,
) -> Loss:
    """Every way to lose something, zero or not.

    Args:
        stats: `struct stats` of bpf_src/profile.bpf.c and `struct stack_stats` by field, summed
            over the CPUs.
        options: the options of the run, for the advice.
        expected: samples that were due.
        tolerance: how many of them may be missing in an honest run.
        max_depth: the most frames of a stack.
        side_band_lost: records of `SideBand` that found no room.
        children_missed: processes that `ProcessTree` could not enter; None: there is no tree.
    """
    lost = (
        count_cause(
            "map_full",
            stats["counts_full"],
            f"samples (table of counts full: --hash-storage-size {2 * options.hash_storage_size})",
        ),
        count_cause(
            "map_busy",
            stats["counts_busy"],
            "samples interrupted an update of the counts and were dropped. Lower -F",
        ),
        *causes(
            stats,
            "samples",
            storage_size=options.stack_storage_size,
            max_depth=max_depth,
            room=MAX_DEPTH,
            rarer="Lower -F",
        ),
        count_cause(
            "outside_namespace",
            stats["outside_namespace"],
            "samples were of tasks without an ID in this PID "
            "namespace: they are shown as process 0",
        ),
        count_cause(
            "sideband_lost",
            side_band_lost,
            "records of new processes and mappings were lost: names of "
            "processes that ended during the run may be missing",
        ),
    )
    if children_missed is not None:
        lost += (
            count_cause(
                "children_missed",
                children_missed,
                f"child processes were not followed: more than {CAPACITY} lived "
                "at once, or the map was busy",
            ),
        )
    return Loss(expected, stats["seen"], tolerance, lost)
