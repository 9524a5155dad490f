"""From profiles with names to activities of threads. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from purebpf.findings.facts import Activity, MemoryUse
from purebpf.measure.activities import activity_of, named_frames
from purebpf.results import Profile

__all__ = ["cpu_times", "memory_use", "waiting_times"]

_MOST_SITES = 1000


def cpu_times(
    profile: Profile, frequency: float, elapsed_s: float, own: frozenset[int]
) -> Iterator[Activity]:
    """Yield CPU time, from samples, scaled to `elapsed_s`; without the processes of `own`."""
    scale = _scale(profile, elapsed_s) / frequency
    for row in profile.rows():
        if row.labels.pid not in own:
            yield activity_of(row, "cpu", scale * row.weight)


def waiting_times(
    profile: Profile, elapsed_s: float, call_name: Callable[[int], str], own: frozenset[int]
) -> Iterator[Activity]:
    """Yield time off the CPUs, from looks, scaled to `elapsed_s`."""
    scale = _scale(profile, elapsed_s)
    for row in profile.rows():
        if row.labels.pid in own or not row.weight:
            continue
        kind = "queue" if row.labels.state == "R" else "wait"
        activity = activity_of(row, kind, scale * row.weight / 1e9)
        call = call_name(row.marks.call)
        yield activity._replace(call=call, argument=row.marks.argument if call else 0)


def memory_use(faults: Profile, grown: Profile, own: frozenset[int]) -> tuple[MemoryUse, ...]:
    """The largest sums of page faults and of growth by stack."""
    uses = [
        MemoryUse(row.labels.pid, kind, row.weight, named_frames(row.user))
        for kind, profile in (("faults", faults), ("grown", grown))
        for row in profile.rows()
        if row.labels.pid not in own
    ]
    uses.sort(key=lambda use: -use.amount)
    return tuple(uses[:_MOST_SITES])


def _scale(profile: Profile, elapsed_s: float) -> float:
    """Return the measured time as a multiple of the time that the profile covers.

    On a machine without a free CPU, seconds pass between the starts of two instruments.
    """
    covered_s = profile.about.get("elapsed_s")
    return elapsed_s / covered_s if isinstance(covered_s, float) and covered_s else 1.0
