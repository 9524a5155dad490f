"""From spans and samples to the wall clock of each thread. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from purebpf.results import Labels, Marks, Profile
from purebpf.results.build.offcpu_rows import GIL, ON_CPU, Place, Span, state_name, user_stack
from purebpf.results.build.stored_stacks import Stacks
from purebpf.tuples import NamedTuple

__all__ = ["Thread", "fill", "shares", "threads"]


class Thread(NamedTuple):
    """The time of a thread by use, in nanoseconds. `comm` is the last name it had.

    `gil_ns` is the part of `off_ns` that it waited for Python's GIL.
    """

    labels: Labels
    on_ns: int
    off_ns: int
    queued_ns: int
    gil_ns: int = 0

    @property
    def wall_ns(self) -> int:
        """All of it."""
        return self.on_ns + self.off_ns + self.queued_ns


def threads(spans: Mapping[Place, Span]) -> list[Thread]:
    """Each thread, the one that ran longest first."""
    times_by_thread: dict[tuple[int, int], list[int]] = {}
    names: dict[tuple[int, int], str] = {}
    for place, span in spans.items():
        key = place.pid, place.tid
        times = times_by_thread.setdefault(key, [0, 0, 0, 0])
        if place.state == ON_CPU:
            times[0] += span.duration_ns
        else:
            times[1] += span.blocked_ns
            times[2] += span.runnable_ns
            times[3] += span.blocked_ns if place.state == GIL else 0
        if place.comm:
            names[key] = place.comm
    made = [
        Thread(Labels(names.get(key, ""), *key), *times) for key, times in times_by_thread.items()
    ]
    return sorted(made, key=lambda thread: (-thread.on_ns, -thread.wall_ns, thread.labels))


def shares(total: int, weights: Mapping[Place, int]) -> dict[Place, int]:
    """`total` in whole parts in proportion to the weights: their sum is exact."""
    sum_of_weights = sum(weights.values())
    given = seen = 0
    given_by_place = {}
    for place, weight in weights.items():
        seen += weight
        until = total * seen // sum_of_weights
        given_by_place[place] = until - given
        given = until
    return given_by_place


def fill(
    profile: Profile,
    spans: Mapping[Place, Span],
    samples: Mapping[Place, int],
    stacks: Stacks,
    cgroup: Callable[[int], str],
) -> int:
    """Add every thread's time, each row with its kind; a thread's rows add up to its wall clock.

    Time on the CPU is exact; which stacks it goes to is in proportion to the samples.

    Returns:
        Nanoseconds on a CPU of threads that were never sampled: rows without stacks.
    """
    sampled: dict[tuple[int, int], dict[Place, int]] = {}
    for place, count in samples.items():
        sampled.setdefault((place.pid, place.tid), {})[place] = count
    running: dict[tuple[int, int], int] = {}
    labels: dict[tuple[int, int], Labels] = {}
    for place, span in spans.items():
        key = place.pid, place.tid
        labels[key] = Labels(place.comm, *key, cgroup=cgroup(place.pid))
        if place.state == ON_CPU:
            running[key] = running.get(key, 0) + span.duration_ns
        else:
            _add_off(profile, place, span, stacks, cgroup(place.pid))
    unsampled_ns = 0
    for key, on_ns in running.items():
        if not on_ns:
            continue
        if key not in sampled:
            unsampled_ns += on_ns
            profile.add((), (), on_ns, labels[key], marks=Marks("on-CPU"))
            continue
        for place, part_ns in shares(on_ns, sampled[key]).items():
            user = stacks.user(place.user, place.pid, place.comm)
            named = Labels(place.comm, *key, cgroup=cgroup(place.pid))
            marks = Marks("on-CPU", end=stacks.end(place.user, place.pid, place.comm))
            profile.add(user, stacks.kernel(place.kernel), part_ns, named, marks=marks)
    return unsampled_ns


def _add_off(profile: Profile, place: Place, span: Span, stacks: Stacks, cgroup: str) -> None:
    user = user_stack(place, stacks)
    kernel = stacks.waiting_kernel(place.kernel)
    owner = Labels(place.comm, place.pid, place.tid, cgroup=cgroup, state=state_name(place.state))
    for kind, part_ns in (("off-CPU", span.blocked_ns), ("run-queue", span.runnable_ns)):
        if part_ns:
            end = stacks.end(place.user, place.pid, place.comm)
            marks = Marks(kind, place.is_open, times=span.times, end=end)
            profile.add(user, kernel, part_ns, owner, marks=marks)
