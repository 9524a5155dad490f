"""Time that was open when a run began, or still is when it ends: no switch tells of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from purebpf.measure.stacks.sleeping import Sleeping, read_python, read_stacks, unwind
from purebpf.observe.instruments.offcpu_tracer import ADOPTED, UNDECIDED, WANTED, Listed, Switches
from purebpf.results.build.offcpu_rows import BEFORE, ON_CPU, Place, Span
from purebpf.syscall.process_memory import reading_others
from purebpf.tuples import NamedTuple

if TYPE_CHECKING:
    from purebpf.observe.unwind.user_stacks import Trace

__all__ = ["MOST_THREADS", "Sleepers", "open_spans"]

_UNAVAILABLE = 1  # enum stack_id of bpf_src/include/stacks.h
_OURS = 1 << 64
"""From here on, the numbers of stacks that were walked by us."""

_AT_ONCE = 256
"""Threads with stacks that are held at once: 16 MiB."""

MOST_THREADS = 16384
"""Threads that are shown in flight; each takes 4 kB."""

IsWanted = Callable[[Listed], bool]


class Sleepers:
    """The threads that were off the CPU when a run began, and where.

    They are listed once the programs run: one that these have not seen is where it was before.

    Args:
        switches: the programs.
        is_wanted: whether a thread is in the target.
        walk: whether to walk user stacks.
        only_listed: ignore threads that were not confirmed as wanted. The programs do not have the
            CPU that a thread left, so this is needed where CPUs were chosen.

    Attributes:
        traces: the user stacks that were walked here, by number.
        undescribed: threads whose stack could not be walked, or that moved before they were listed.
        are_shown: whether the kernel shows where threads were in user code (Linux 5.15).
        left_out: threads beyond `MOST_THREADS` in flight, at the start or at the end.
    """

    def __init__(
        self, switches: Switches, is_wanted: IsWanted, *, walk: bool, only_listed: bool = False
    ) -> None:
        self.traces: dict[int, Trace] = {}
        self._cut = 0
        self._unlisted: set[int] = set()
        self.are_shown = True
        self.left_out = 0
        self._only_listed = only_listed
        self._places: dict[int, Place] = {}
        away = (
            task
            for task in switches.list_tasks()
            if not task.is_seen and task.is_away and is_wanted(task)
        )
        asleep = [*islice(away, MOST_THREADS)]
        self.leave_out(sum(1 for _ in away))
        self.are_shown = not asleep or any(task.registers is not None for task in asleep)
        threads = [
            Sleeping(task.place.pid, task.place.tid, task.registers, task.pthread)
            for task in asleep
            if walk and task.registers is not None and not task.is_kernel_thread
        ]
        numbers = self._walk(switches, threads)
        for task in asleep:
            place = task.place
            if walk and not task.is_kernel_thread:
                place = place._replace(user=numbers.get(place.tid, _UNAVAILABLE))
            self._cut += _UNAVAILABLE in (place.user, place.kernel)
            self._places[place.tid] = place

    @property
    def undescribed(self) -> int:
        """The number of threads with time that has no stack."""
        return self._cut + len(self._unlisted)

    def leave_out(self, count: int) -> None:
        """Note that so many threads in flight are not looked at."""
        self.left_out = max(self.left_out, count)

    def _walk(self, switches: Switches, threads: Sequence[Sleeping]) -> dict[int, int]:
        """Walk the user stacks of threads; gives the numbers of the stacks by thread.

        A process may have 10,000 threads, and a copied stack takes up to 64 KiB: only
        `_AT_ONCE` are held. A stack that was read while its thread moved is none.
        """
        walking, python = switches.walking, switches.python
        known = {} if python is None else read_python(python, threads)
        numbers: dict[int, int] = {}
        by_trace: dict[Trace, int] = {}
        with reading_others():
            for first in range(0, len(threads), _AT_ONCE):
                some = threads[first : first + _AT_ONCE]
                stacks = read_stacks(some, copy=walking is not None)
                still = switches.unseen()
                for thread in some:
                    stack = stacks.pop(thread.tid, None)
                    if stack is None or thread.tid not in still:
                        continue
                    trace = unwind(walking, thread, stack, known.get(thread.tid))
                    number = by_trace.setdefault(trace, _OURS + len(by_trace))
                    numbers[thread.tid] = number
        self.traces = {number: trace for trace, number in by_trace.items()}
        return numbers

    def describe(self, place: Place) -> Place | None:
        """Return the place of a thread, with state and stacks if available; None: not wanted."""
        known = self._places.get(place.tid)
        if known is None:
            return None if self._only_listed else place
        return place._replace(state=known.state, user=known.user, kernel=known.kernel)

    def describe_before(self, place: Place) -> Place | None:
        """Return the same of a thread that came to a CPU since the run began; one that did before
        the list was made has no stack, and counts as `undescribed`.
        """
        described = self.describe(place)
        if described is not None and place.tid not in self._places:
            self._unlisted.add(place.tid)
        return described

    def describe_spans(
        self, spans: Iterable[tuple[Place, Span]], *, split: bool
    ) -> Iterator[tuple[Place, Span]]:
        """Return the spans; spans from before the run with the facts available about them.

        A thread that came to a CPU before the list was made is not in it. `split`: wake-ups are
        traced, so one that nobody woke in the run waited for nothing but a CPU.
        """
        for place, span in spans:
            if place.state != BEFORE:
                yield place, span
                continue
            known = self.describe_before(place)
            if known is None:
                continue
            if split and known.state == BEFORE and not span.runnable_ns:
                known = known._replace(state="R")
            if known.state == "R":  # it did not wait for anything but a CPU
                span = span._replace(blocked_ns=0, runnable_ns=span.duration_ns)  # noqa: PLW2901
            yield known, span


class _Run(NamedTuple):
    started_ns: int
    ended_ns: int
    split: bool

    def span(self, since_ns: int, until_ns: int, waking_ns: int, state: str) -> Span:
        """Split one span as account() of bpf_src/offcpu.bpf.c does."""
        elapsed_ns = max(0, until_ns - since_ns)
        blocked_ns = elapsed_ns
        if self.split and state != ON_CPU:
            if state == "R":
                blocked_ns = 0
            elif waking_ns:
                blocked_ns = min(max(0, waking_ns - since_ns), elapsed_ns)
        return Span(1, blocked_ns, elapsed_ns - blocked_ns)


def open_spans(
    listed: Iterable[Listed],
    sleepers: Sleepers,
    is_wanted: IsWanted,
    switches: Switches,
    *,
    split: bool,
    on_cpu: bool,
) -> Iterator[tuple[Place, Span]]:
    """Return the spans that were open at the end, or not yet judged, of `MOST_THREADS` threads.

    Args:
        listed: every task, at the end.
        sleepers: those at the start.
        is_wanted: decides about threads that the programs left undecided.
        switches: when the run was.
        split: whether wake-ups were traced.
        on_cpu: whether the time that threads run is wanted.
    """
    run = _Run(switches.started_ns, switches.ended_ns, split)
    wanted = (
        task
        for task in listed
        if task.verdict in (WANTED, ADOPTED) or (task.verdict == UNDECIDED and is_wanted(task))
    )
    for task in islice(wanted, MOST_THREADS):
        yield from _of_task(task, sleepers, run, on_cpu=on_cpu)
    sleepers.leave_out(sum(1 for _ in wanted))


def _of_task(
    task: Listed, sleepers: Sleepers, run: _Run, *, on_cpu: bool
) -> Iterator[tuple[Place, Span]]:
    place = task.place
    since_ns = task.since_ns if task.is_seen else run.started_ns
    pending_ns, pending_state, pending_waking_ns = task.pending
    if pending_ns:
        then = place._replace(state=pending_state, user=0, kernel=0)
        before = sleepers.describe_before(then) if pending_state == BEFORE else then
        if before is not None:
            began_ns = since_ns - pending_ns
            yield before, run.span(began_ns, since_ns, pending_waking_ns, before.state)
    if task.is_on_cpu:
        if on_cpu:
            running = place._replace(state=ON_CPU, user=0, kernel=0, waker=None, is_open=True)
            yield running, run.span(since_ns, run.ended_ns, 0, ON_CPU)
    elif task.is_away:
        away = place if task.is_seen else sleepers.describe(place)
        if away is not None:
            span = run.span(since_ns, run.ended_ns, task.waking_ns, away.state)
            yield away._replace(is_open=True), span
