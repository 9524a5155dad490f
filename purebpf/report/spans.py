"""Time that threads spent, each between two switches: from the kernel's sums to a profile."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from purebpf.report.profile import Labels, Marks, Profile, Row, Waker
from purebpf.report.stacks import Stacks
from purebpf.report.trim import without_switch

__all__ = ["BEFORE", "ON_CPU", "STATES", "Place", "Span", "SpanWaker", "fill", "merged", "row"]

STATES = "RSDITtPW?+"
"""enum state of bpf_src/offcpu.bpf.c, each as a letter of ps(1)."""

BEFORE = "?"
"""Off since before the run began, and nothing said why."""

ON_CPU = "+"


class SpanWaker(NamedTuple):
    """Who ended it; its stacks by number."""

    comm: str
    pid: int
    tid: int
    user: int
    kernel: int


class Place(NamedTuple):
    """Which thread was where, and how: stacks by number, 0 for none."""

    comm: str
    pid: int
    tid: int
    state: str
    user: int
    kernel: int
    waker: SpanWaker | None = None
    is_open: bool = False


class Span(NamedTuple):
    """How long. `runnable_ns` is the part after the wake-up, where that is known.

    A single one is dated: `ended_ns`, on CLOCK_MONOTONIC, and the CPU it began on.
    """

    times: int
    blocked_ns: int
    runnable_ns: int
    ended_ns: int = 0
    cpu: int = 0

    @property
    def duration_ns(self) -> int:
        """All of it."""
        return self.blocked_ns + self.runnable_ns


def fill(
    profile: Profile,
    spans: Mapping[Place, Span],
    stacks: Stacks,
    cgroup: Callable[[int], str],
    *,
    is_split: bool,
) -> None:
    """Add a row for each place, in nanoseconds; `cgroup` is that of a process."""
    for place, span in spans.items():
        profile.add_row(row(place, span, stacks, cgroup, is_split=is_split))


def row(
    place: Place, span: Span, stacks: Stacks, cgroup: Callable[[int], str], *, is_split: bool
) -> Row:
    """One place as a row, with names; the kernel stacks without what every switch has."""
    waker = None
    if place.waker is not None and place.waker.tid | place.waker.kernel | place.waker.user:
        comm, pid, tid, user, kernel = place.waker
        waker = Waker(
            comm, pid, tid, stacks.user(user, pid, comm), without_switch(stacks.kernel(kernel))
        )
    marks = Marks(
        is_open=place.is_open,
        waker=waker,
        times=span.times,
        runnable=span.runnable_ns if is_split else -1,
        ended_ns=span.ended_ns,
    )
    return Row(
        stacks.user(place.user, place.pid, place.comm),
        without_switch(stacks.kernel(place.kernel)),
        span.duration_ns,
        Labels(
            place.comm,
            place.pid,
            place.tid,
            span.cpu if span.ended_ns else -1,
            cgroup(place.pid),
            place.state,
        ),
        (),
        marks,
    )


def merged(spans: Iterable[tuple[Place, Span]]) -> dict[Place, Span]:
    """Spans of the same place, added up."""
    found: dict[Place, Span] = {}
    for place, span in spans:
        before = found.get(place)
        if before is not None:
            span = Span(  # noqa: PLW2901
                before.times + span.times,
                before.blocked_ns + span.blocked_ns,
                before.runnable_ns + span.runnable_ns,
            )
        found[place] = span
    return found
