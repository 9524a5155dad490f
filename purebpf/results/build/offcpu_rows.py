"""Time that threads spent, each between two switches: from the kernel's sums to a profile."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from purebpf.results.build.interrupts import INTERRUPT, Interrupts, interrupt_part
from purebpf.results.build.stored_stacks import Stacks
from purebpf.results.model.profile import Labels, Marks, Profile, Row, Stack, Waker
from purebpf.symbols.frame import Address, Frame
from purebpf.tuples import NamedTuple

__all__ = [
    "BEFORE",
    "GIL",
    "ON_CPU",
    "STATES",
    "Place",
    "Span",
    "SpanWaker",
    "fill",
    "merge_spans",
    "numbers",
    "row",
    "since",
    "state_name",
    "sum_waits",
    "user_stack",
]

STATES = "RSDITtPW?+G"
"""enum state of bpf_src/offcpu.bpf.c, each as a letter of ps(1); `+` and `G` are ours."""

BEFORE = "?"
"""Off since before the run began, and nothing said why."""

ON_CPU = "+"

GIL = "G"
"""Asleep, for Python's lock."""


class SpanWaker(NamedTuple):
    """The thread that ended it; its stacks by number."""

    comm: str
    pid: int
    tid: int
    user: int
    kernel: int


class Place(NamedTuple):
    """A thread, its state and its place: stacks by number, 0 for none.

    `holder` is the thread that had the GIL when the wait for that began; 0: not known, or another
    wait. `call` and `argument` are as in `Marks`.
    """

    comm: str
    pid: int
    tid: int
    state: str
    user: int
    kernel: int
    waker: SpanWaker | None = None
    is_open: bool = False
    holder: int = 0
    call: int = -1
    argument: int = 0


class Span(NamedTuple):
    """The length of a wait. `runnable_ns` is the part after the wake-up, or unknown.

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
    """Add a row for each place, in nanoseconds; `cgroup` returns the cgroup of a process.

    Waits that equal interrupts ended are one row, whatever the interrupts stopped.
    """
    for place, span in _by_interrupt(spans, Interrupts(stacks)).items():
        profile.add_row(row(place, span, stacks, cgroup, is_split=is_split))


def _by_interrupt(spans: Mapping[Place, Span], interrupts: Interrupts) -> Mapping[Place, Span]:
    if not any(place.waker for place in spans):
        return spans
    return merge_spans((_without_victim(place, interrupts), span) for place, span in spans.items())


def _without_victim(place: Place, interrupts: Interrupts) -> Place:
    if place.waker is None:
        return place
    number = interrupts.number(place.waker.kernel)
    if number is None:
        return place
    return place._replace(waker=SpanWaker(INTERRUPT, 0, 0, 0, number))


def row(
    place: Place, span: Span, stacks: Stacks, cgroup: Callable[[int], str], *, is_split: bool
) -> Row:
    """Return one place as a row, with names; without the kernel frames that every switch has."""
    waker = None
    if place.waker is not None and place.waker.tid | place.waker.kernel | place.waker.user:
        waker = _waker(place.waker, stacks)
    marks = Marks(
        is_open=place.is_open,
        waker=waker,
        times=span.times,
        runnable=span.runnable_ns if is_split else -1,
        ended_ns=span.ended_ns,
        end=stacks.end(place.user, place.pid, place.comm),
        call=place.call,
        argument=place.argument,
    )
    return Row(
        user_stack(place, stacks),
        stacks.waiting_kernel(place.kernel),
        span.duration_ns,
        Labels(
            place.comm,
            place.pid,
            place.tid,
            span.cpu if span.ended_ns else -1,
            cgroup(place.pid),
            state_name(place.state),
        ),
        (),
        marks,
    )


def state_name(state: str) -> str:
    """A state as results have it: a letter, or "gil"."""
    return "gil" if state == GIL else state


def user_stack(place: Place, stacks: Stacks) -> Stack | None:
    """The user stack of a place; one that waits for the GIL says at its leaf who had it."""
    stack = stacks.user(place.user, place.pid, place.comm)
    if place.state != GIL or stack is None:
        return stack
    name = f"[GIL held by {place.holder}]" if place.holder else "[GIL]"
    return (Frame(name, 0, "", Address(0), "python"), *stack)


def _waker(waker: SpanWaker, stacks: Stacks) -> Waker:
    comm, pid, tid, user, kernel = waker
    stack = stacks.waiting_kernel(kernel)
    interrupt = interrupt_part(stack)
    if interrupt is not None:
        return Waker(INTERRUPT, 0, 0, (), interrupt)
    return Waker(comm, pid, tid, stacks.user(user, pid, comm), stack)


def merge_spans(spans: Iterable[tuple[Place, Span]]) -> dict[Place, Span]:
    """Spans of the same place, added up."""
    spans_by_place: dict[Place, Span] = {}
    for place, span in spans:
        before = spans_by_place.get(place)
        if before is not None:
            span = Span(  # noqa: PLW2901
                before.times + span.times,
                before.blocked_ns + span.blocked_ns,
                before.runnable_ns + span.runnable_ns,
            )
        spans_by_place[place] = span
    return spans_by_place


def numbers(places: Iterable[Place]) -> set[int]:
    """The stacks that the kernel's programs keep, of all these."""
    stack_numbers: set[int] = set()
    for place in places:
        stack_numbers.update((place.user, place.kernel))
        if place.waker is not None:
            stack_numbers.update((place.waker.user, place.waker.kernel))
    return {number for number in stack_numbers if number < 1 << 64}


def since(now: Mapping[Place, Span], before: Mapping[Place, Span]) -> dict[Place, Span]:
    """Return the time between two looks at the same run.

    A time that was not over at the first look, and is now, counts with the difference.
    """
    open_now = _close_spans(now)
    for place, earlier in _close_spans(before).items():
        later = open_now.get(place)
        if later is not None:
            open_now[place] = Span(
                max(later.times - earlier.times, 0),
                max(later.blocked_ns - earlier.blocked_ns, 0),
                max(later.runnable_ns - earlier.runnable_ns, 0),
            )
    return {place: span for place, span in open_now.items() if span.duration_ns}


def _close_spans(spans: Mapping[Place, Span]) -> dict[Place, Span]:
    return merge_spans((place._replace(is_open=False), span) for place, span in spans.items())


def sum_waits(profile: Profile) -> Profile:
    """The same with single waits added up where all but their time is equal."""
    dated = [row for row in profile.rows() if row.marks.ended_ns]
    if not dated:
        return profile
    summed = Profile(profile.title, unit=profile.unit, about=profile.about, loss=profile.loss)
    summed.cost, summed.slot_ns, summed.hints = profile.cost, profile.slot_ns, profile.hints
    known: dict[tuple[object, ...], Row] = {}
    for wait in profile.rows():
        labels, marks = wait.labels, wait.marks
        if marks.ended_ns:
            labels, marks = labels._replace(cpu=-1), marks._replace(ended_ns=0)
        # stacks are shared, and hashing one takes long
        key = (id(wait.user), id(wait.kernel), labels, marks._replace(times=0, runnable=-1))
        before = known.get(key)
        if before is None:
            known[key] = wait._replace(labels=labels, marks=marks)
            continue
        runnable = -1
        if marks.runnable >= 0 and before.marks.runnable >= 0:
            runnable = marks.runnable + before.marks.runnable
        marks = marks._replace(times=marks.times + before.marks.times, runnable=runnable)
        known[key] = before._replace(weight=before.weight + wait.weight, marks=marks)
    for wait in known.values():
        summed.add_row(wait)
    return summed
