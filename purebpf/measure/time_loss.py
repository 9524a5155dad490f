"""What the times of threads do not include, what they cost, and when they were taken."""

from __future__ import annotations

from typing import TYPE_CHECKING

from purebpf.kernel.instruments.stack_maps import MAX_DEPTH
from purebpf.measure.provenance import origin
from purebpf.results import Cause, Loss, Profile
from purebpf.results.build import stored_stacks as kept

if TYPE_CHECKING:
    from purebpf.measure.sched_trace import Request, Times

__all__ = ["about", "cost", "cost_line", "losses"]


def losses(times: Times, request: Request) -> Loss:
    """Every cause, zero or not."""
    stats = times.stats
    more = f"among {request.hash_storage_size}. Raise --hash-storage-size"
    what = {
        "map_full": (stats["sums_full"], f"times found no place {more}"),
        "ring_full": (
            stats["ring_full"],
            (
                "times at or above the threshold came faster than they could be read: they are "
                "counted, but not one by one. Raise --thresh"
            ),
        ),
        "storage_failed": (
            stats["storage_failed"],
            "switches of threads that found no memory for their state: their time is missing",
        ),
        "births_missed": (
            stats["births_missed"],
            "threads were not seen to begin: children of what is traced may be missing",
        ),
        "switches_missed": (
            stats["switches_missed"],
            "switches were not traced: times around them are right to the next one that was",
        ),
        "clock_backwards": (
            stats["clock_backwards"],
            "times seem to end before they begin; they count with 0",
        ),
        "outside_namespace": (
            stats["outside_namespace"],
            "times a task had no number in this pid namespace: it is shown as process 0",
        ),
        "recursion_misses": (
            stats["recursion_misses"],
            "times a program was not run, as it would have interrupted itself",
        ),
        "undescribed": (
            times.undescribed,
            (
                "threads were off when the run began, and moved before their stacks could "
                "be walked, or this kernel does not say where (Linux 5.15 does)"
            ),
        ),
        "sideband_lost": (
            times.side_band_lost,
            (
                "records of new processes and mappings were lost: names of processes that ended "
                "meanwhile may be missing"
            ),
        ),
    }
    if request.on_cpu:
        what["samples_full"] = (stats["samples_full"], f"samples found no place {more}")
    causes = [Cause(name, lost, f"{lost} {text}") for name, (lost, text) in what.items()]
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
    """What the programs took: they time one switch in so many."""
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
