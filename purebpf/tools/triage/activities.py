"""From profiles with names to activities of threads. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from purebpf.findings.facts import Activity, MemoryUse
from purebpf.measure.activities import activity_of, named_frames
from purebpf.results import Profile
from purebpf.results.model.profile import Row

__all__ = ["cpu_times", "memory_use", "scale_of", "waiting_times"]

_MOST_SITES = 1000


def cpu_times(rows: Iterable[Row], scale: float, own: frozenset[int]) -> Iterator[Activity]:
    """Yield CPU time, from samples; `scale` makes one the seconds that it stands for.

    The processes of `own` are left out.
    """
    for row in rows:
        if row.labels.pid not in own:
            yield activity_of(row, "cpu", scale * row.weight)


def waiting_times(
    rows: Iterable[Row], scale: float, call_name: Callable[[int], str], own: frozenset[int]
) -> Iterator[Activity]:
    """Yield time off the CPUs, from looks; `scale` makes it that of the whole measurement."""
    for row in rows:
        if row.labels.pid in own or not row.weight:
            continue
        kind = "queue" if row.labels.state == "R" else "wait"
        activity = activity_of(row, kind, scale * row.weight / 1e9)
        call = call_name(row.marks.call)
        yield activity._replace(call=call, argument=row.marks.argument if call else 0)


def scale_of(profile: Profile, elapsed_s: float) -> float:
    """Return the measured time as a multiple of the time that the profile covers.

    On a machine without a free CPU, seconds pass between the starts of two instruments.
    """
    covered_s = profile.about.get("elapsed_s")
    return elapsed_s / covered_s if isinstance(covered_s, float) and covered_s else 1.0


def memory_use(
    faults: Iterable[Row], grown: Iterable[Row], own: frozenset[int]
) -> tuple[MemoryUse, ...]:
    """The largest sums of page faults and of growth by stack."""
    uses = [
        MemoryUse(row.labels.pid, kind, row.weight, named_frames(row.user))
        for kind, rows in (("faults", faults), ("grown", grown))
        for row in rows
        if row.labels.pid not in own
    ]
    uses.sort(key=lambda use: -use.amount)
    return tuple(uses[:_MOST_SITES])
