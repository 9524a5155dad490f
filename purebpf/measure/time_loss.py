"""The losses, the cost and the dates of the times of threads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from purebpf.measure.in_flight import MOST_THREADS
from purebpf.measure.provenance import origin
from purebpf.observe.instruments.stack_maps import MAX_DEPTH
from purebpf.results import Loss, Profile, count_cause
from purebpf.results.build import stored_stacks as kept

if TYPE_CHECKING:
    from purebpf.measure.sched_trace import Request, Times

__all__ = ["about", "cost", "cost_line", "losses"]


_NOTES = frozenset({"switches_missed"})
"""Causes that leave every sum as it is: a time ends at the next switch that was traced."""


def losses(times: Times, request: Request) -> Loss:
    """Every cause, zero or not."""
    stats = times.stats
    more = f"at {request.hash_storage_size} entries. Raise --hash-storage-size"
    what = {
        "map_full": (stats["sums_full"], f"times were dropped: the map was full, {more}"),
        "ring_full": (
            stats["ring_full"],
            (
                "times at or above the threshold were lost as single records, since their ring "
                "buffer was full; they are counted. Raise --thresh"
            ),
        ),
        "storage_failed": (
            stats["storage_failed"],
            "switches of threads had no memory for their state: their time is missing",
        ),
        "births_missed": (
            stats["births_missed"],
            "new threads were not traced: children of the target may be missing",
        ),
        "switches_missed": (
            stats["switches_missed"],
            "switches were not traced: times around them are correct up to the next traced one",
        ),
        "clock_backwards": (
            stats["clock_backwards"],
            "times had a clock that ran backwards; they count as 0",
        ),
        "outside_namespace": (
            stats["outside_namespace"],
            "times a task had no ID in this PID namespace: it is shown as process 0",
        ),
        "recursion_misses": (
            stats["recursion_misses"],
            "recursion misses: the kernel does not run a program inside itself",
        ),
        "undescribed": (
            times.undescribed,
            (
                "threads were off the CPU when the run began, and "
                + (
                    "moved before the stack was read"
                    if times.are_shown
                    else "this kernel does not show such stacks (Linux 5.15 does)"
                )
            ),
        ),
        "threads_left_out": (
            times.left_out,
            (
                f"threads were beyond the first {MOST_THREADS} in flight: the time that was not "
                "over at the end is missing. Narrow the target with -p or --cgroup"
            ),
        ),
        "sideband_lost": (
            times.side_band_lost,
            (
                "records of new processes and mappings were lost: names of processes that ended "
                "during the run may be missing"
            ),
        ),
    }
    if request.on_cpu:
        what["samples_full"] = (
            stats["samples_full"],
            f"samples were dropped: the map was full, {more}",
        )
    causes = [count_cause(name, lost, text, name in _NOTES) for name, (lost, text) in what.items()]
    causes[1:1] = kept.causes(
        stats,
        "times",
        storage_size=request.stack_storage_size,
        max_depth=min(MAX_DEPTH, times.max_depth),
        room=MAX_DEPTH,
        rarer="Trace less at once",
    )
    return Loss(seen=stats["counted"] + stats["direct"], causes=tuple(causes))


def cost(times: Times) -> dict[str, int]:
    """Return the time of the programs: they measure one switch in so many."""
    stats = times.stats
    timed = stats["timed"] or 1
    return {
        "run_time_ns": stats["run_time_ns"] * stats["switches"] // timed,
        "run_cnt": stats["switches"],
    }


def cost_line(profile: Profile) -> str:
    """`cost: 10134 switches, 2.6 us each: 5.30% of one CPU`."""
    switches, spent_ns = profile.cost["run_cnt"], profile.cost["run_time_ns"]
    elapsed_s = profile.about["elapsed_s"]
    assert isinstance(elapsed_s, float)
    each_us = spent_ns / 1e3 / (switches or 1)
    share = 100 * spent_ns / 1e9 / (elapsed_s or 1)
    return f"cost: {switches} switches, {each_us:.1f} us each: {share:.2f}% of one CPU"


def about(times: Times) -> dict[str, object]:
    """Facts about the run; times are nanoseconds of CLOCK_MONOTONIC."""
    names = ("switches", "counted", "direct", "filtered", "outside_namespace", "stacks_displaced")
    return {
        "started_ns": times.started_ns,
        "ended_ns": times.ended_ns,
        **origin((times.ended_ns - times.started_ns) / 1e9),
        **{name: times.stats[name] for name in names},
    }
