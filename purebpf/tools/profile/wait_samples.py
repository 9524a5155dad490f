"""`WaitSampler`: where threads wait, from looks at all of them at random moments.

A look costs as much as the threads that ran since the last one, however often they switched: no
program runs at switches. The moment is random in each stretch of time, so that a wait is seen with
a probability that is its length, and sums are right in the mean, whatever period threads have
(stratified sampling: W. G. Cochran, Sampling Techniques, 1977, chapter 5).

    look        list what is off its CPU; read the stacks of what has moved; list again
    window      each look counts as an equal part of the time

It lives with a profiler, and uses its tables, mappings and names.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Collection, Container, Iterable, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Protocol

from purebpf.closable import Closing
from purebpf.measure.stacks.sleeping import (
    ReadPython,
    ReadStack,
    Sleeping,
    read_python,
    read_stacks,
    unwind,
)
from purebpf.observe.instruments.sleepers import Sleeper, SleeperList, Whereabouts
from purebpf.observe.unwind.user_stacks import Trace
from purebpf.results import Loss, Profile, count_cause
from purebpf.results.build.offcpu_rows import Place, Span, row
from purebpf.syscall.process_memory import reading_others
from purebpf.tuples import NamedTuple

if TYPE_CHECKING:
    from purebpf.results.build.stored_stacks import Stacks
    from purebpf.tools.profile.sampling import Sampling

__all__ = ["WaitSampler"]

_NOT_READ = 1  # enum stack_id of bpf_src/include/stacks.h
_FIRST = 16
_LONGEST_S = 60.0
"""Between two looks of a profiler that runs for weeks."""
_MOST_THREADS, _MOST_READ = 32768, 256
"""Of a look: threads that count, and those of them of which the user stack is read, 64 KiB each."""
_BATCH = 32
"""Threads of which the stacks are read before their states are asked for again."""
_REPEATS, _SMALL_BATCH = 4, 8
"""How often a process is listed again whose threads moved while others were read, and how many of
its threads are read at a time then."""
_REPEATS_NS = 40_000_000
"""CPU time of a look after which nothing is listed again."""
_SHARE = 0.0015
"""Of a CPU, for what looks for weeks."""
_WEIGHT = 0.2
"""Of the last look in the mean cost."""


class MakeStacks(Protocol):
    """Names stacks by number, in a batch: see `WindowProfiler`."""

    def __call__(self, traces: Mapping[int, Trace]) -> Stacks: ...


class _Known(NamedTuple):
    """A thread as it was at the last look. `unread`: where it is, if its stack is still to read."""

    place: Place
    unread: Whereabouts | None = None


class WaitSampler(Closing):
    """Looks when `look` is called; `due_s` says when that is wanted.

    Args:
        sampling: of the profiler; must stay attached.
        frequency: looks a second, at most.
        namespace: our PID namespace, as `PidNamespace`.
        by_thread: tell threads apart, and the system calls that they are in.
        share: of a CPU that looks may take; those that cost more come less often.
        longest_s: between two looks, whatever they cost.

    Attributes:
        looks: of this window.
        due_s: when the next one is due, in seconds of time.monotonic().

    Raises:
        KernelError: the kernel refused the program.
    """

    def __init__(
        self,
        sampling: Sampling,
        frequency: float,
        namespace: tuple[int, int] = (0, 0),
        *,
        by_thread: bool = False,
        share: float = _SHARE,
        longest_s: float = _LONGEST_S,
    ) -> None:
        self._sampling = sampling
        self._every_s = 1 / frequency
        self._by_thread = by_thread
        self._share, self._longest_s = share, longest_s
        self._list = SleeperList(namespace)
        self._known: dict[tuple[int, int], _Known] = {}
        self._numbers: dict[Trace, int] = {}
        self._next = _FIRST
        self._mean_ns = 0.0
        self._missed: set[int] = set()
        self._are_shown = False
        self._begin(time.monotonic())

    def _begin(self, now_s: float) -> None:
        self._started_s = now_s
        self._times: Counter[Place] = Counter()
        self._weights: dict[Place, float] = {}
        self._read_of: Counter[int] = Counter()
        self.looks = self._seen = self._not_read = self._left_out = 0
        self._slot_s = now_s
        self._choose()

    def _choose(self) -> None:
        """A moment in the next stretch of time: at random, as threads have periods."""
        every_s = self._every_s
        if self._mean_ns:
            every_s = max(every_s, min(self._longest_s, self._mean_ns / 1e9 / self._share))
        self.due_s = self._slot_s + every_s * random.random()  # noqa: S311
        self._slot_s += every_s

    @property
    def processes(self) -> set[int]:
        """The processes that had threads at the last look."""
        return {sleeping.place.pid for sleeping in self._known.values()}

    def look(self) -> None:
        """Take in where threads are.

        Threads that wake often move while others are read. If threads are told apart, it looks
        again for them, at one process at a time, so that little time passes.

        Raises:
            KernelError, OSError: the list could not be read, or a table not be filled.
        """
        before_ns = time.thread_time_ns()
        with reading_others():
            sleepers = self._see(_BATCH)
            if self._by_thread:
                self._see_again(sleepers)
        places = [sleeping.place for sleeping in self._known.values()]
        self._count(sleepers.values(), places)
        self._not_read += sum(place.user == _NOT_READ for place in places)
        self._seen += len(places)
        self.looks += 1
        cost_ns = time.thread_time_ns() - before_ns
        if self._mean_ns:
            self._mean_ns += _WEIGHT * (cost_ns - self._mean_ns)
        elif self.looks > 1:  # the first one meets all threads
            self._mean_ns = float(cost_ns)
        while self._slot_s < time.monotonic():  # it came late
            self._slot_s += self._every_s
        self._choose()

    def _count(self, sleepers: Iterable[Sleeper], places: Iterable[Place]) -> None:
        """Count waiting threads, except the ones that only our look keeps from their CPU.

        Without it, one of the threads that are ready on our CPU would run.
        """
        ready = sum(sleeper.state == "R" and sleeper.is_here for sleeper in sleepers)
        for sleeper, place in zip(sleepers, places, strict=True):
            weight = 1.0
            if sleeper.state == "R" and sleeper.is_here:
                weight = (ready - 1) / ready
            self._weights[place] = self._weights.get(place, 0.0) + weight
            self._times[place] += 1

    # Where threads are

    def _see(self, batch: int) -> dict[tuple[int, int], Sleeper]:
        """List the threads, and find where those are that have moved since the last time."""
        listed = self._list.read()
        sleepers = list(islice(listed, _MOST_THREADS))
        self._left_out += sum(1 for _ in listed)
        self._missed.clear()
        self._known = self._find(sleepers, batch)
        return {_key(sleeper): sleeper for sleeper in sleepers}

    def _see_again(self, sleepers: dict[tuple[int, int], Sleeper]) -> None:
        """Find the threads that moved while others were read; `sleepers` are updated.

        Processes of which little was read come first.
        """
        until_ns = time.thread_time_ns() + _REPEATS_NS
        order = sorted(self._missed, key=lambda pid: (self._read_of[pid], random.random()))  # noqa: S311
        for pid in (pid for pid in order for _ in range(_REPEATS)):
            if time.thread_time_ns() > until_ns:
                return
            if pid not in self._missed:
                continue
            again = {_key(one): one for one in self._list.read(pid)}
            now = self._find(again.values(), _SMALL_BATCH, pid)
            sleepers |= {key: again[key] for key in again.keys() & sleepers.keys()}
            self._known |= {key: now[key] for key in now.keys() & sleepers.keys()}

    def _find(
        self, sleepers: Collection[Sleeper], batch: int, pid: int = 0
    ) -> dict[tuple[int, int], _Known]:
        """Return the place of each thread; these are all of the process `pid` unless it is 0."""
        sleeping, unread = self._known, {}
        for sleeper in sleepers:
            before = sleeping.get(_key(sleeper))
            where = sleeper.where or (before.unread if before else None)
            if where is not None and where.registers is not None:
                unread[sleeper.tid] = Sleeping(
                    sleeper.pid, sleeper.tid, where.registers, where.pthread
                )
        self._are_shown = self._are_shown or bool(unread)
        chosen = unread
        if len(unread) > _MOST_READ:
            chosen = dict(random.sample([*unread.items()], _MOST_READ))
        traces, waits = self._read(chosen, batch, pid)
        self._note_missed(sleepers, chosen.keys() - traces.keys())
        now = {}
        for sleeper in sleepers:
            tid, key = sleeper.tid, _key(sleeper)
            before = sleeping.get(key) or _Known(self._unread(sleeper))
            where = sleeper.where or before.unread
            place = before.place if sleeper.where is None else self._place(sleeper)
            if tid in traces:
                place = place._replace(user=self._number(traces[tid]))
            is_for_gil = tid in waits or (sleeper.where is None and place.state == "G")
            state = "G" if is_for_gil and sleeper.state == "S" else sleeper.state
            is_left = tid in unread and tid not in chosen
            now[key] = _Known(place._replace(state=state), where if is_left else None)
        return now

    def _note_missed(self, sleepers: Iterable[Sleeper], unread: Container[int]) -> None:
        """Note the processes to list again: of threads in system calls.

        Samples of the CPUs have the stacks of threads that are ready but in no call.
        """
        for sleeper in sleepers:
            self._missed.discard(sleeper.pid)
        for sleeper in sleepers:
            if sleeper.tid in unread and sleeper.where and sleeper.where.call >= 0:
                self._missed.add(sleeper.pid)

    def _place(self, sleeper: Sleeper) -> Place:
        """Return the place of a thread in the kernel; its user stack remains to be read."""
        where = sleeper.where
        assert where is not None
        kernel = self._number(Trace(where.kernel, 0, 0)) if where.kernel else 0
        place = Place(where.comm, sleeper.pid, 0, sleeper.state, _NOT_READ, kernel)
        if not self._by_thread:
            return place
        return place._replace(tid=sleeper.tid, call=where.call, argument=where.argument)

    def _unread(self, sleeper: Sleeper) -> Place:
        tid = sleeper.tid if self._by_thread else 0
        return Place("", sleeper.pid, tid, sleeper.state, _NOT_READ, _NOT_READ)

    def _read(
        self, moved: Mapping[int, Sleeping], batch: int, pid: int
    ) -> tuple[dict[int, Trace], set[int]]:
        """The user stacks of threads, by their numbers, and which of them wait for the GIL.

        A stack that was read while its thread ran is none. Threads that wake often have run again
        before hundreds of others were read: so few are read at a time, in any order, and first
        those processes of which little was read.
        """
        walking = self._sampling.walking
        pids = {thread.pid for thread in moved.values()}
        order = {pid: (self._read_of[pid], random.random()) for pid in pids}  # noqa: S311
        by_process = sorted(moved.items(), key=lambda item: order[item[1].pid])
        stacks: dict[int, ReadStack] = {}
        sleeping: dict[int, ReadPython] = {}
        for first in range(0, len(by_process), batch):
            read, python = self._read_batch(dict(by_process[first : first + batch]), pid)
            stacks |= read
            sleeping |= python
        self._read_of.update(moved[tid].pid for tid in stacks)
        traces = {
            tid: unwind(walking, moved[tid], stacks[tid], sleeping.get(tid)) for tid in stacks
        }
        return traces, {tid for tid, read in sleeping.items() if read.waits_for_gil}

    def _read_batch(
        self, moved: Mapping[int, Sleeping], pid: int
    ) -> tuple[dict[int, ReadStack], dict[int, ReadPython]]:
        """The stacks of threads that stayed where they were, and Python's words for any of them."""
        walking, python = self._sampling.walking, self._sampling.python
        stacks = read_stacks(moved.values(), copy=walking is not None)
        still = self._list.resting(pid) & stacks.keys()
        sleeping = {} if python is None else read_python(python, moved.values(), still)
        if any(read.words for read in sleeping.values()):
            still -= sleeping.keys() - self._list.resting(pid)
        return {tid: stacks[tid] for tid in still}, sleeping

    def _number(self, trace: Trace) -> int:
        number = self._numbers.get(trace)
        if number is None:
            number = self._numbers[trace] = self._next
            self._next += 1
        return number

    # Windows

    def window(self, make_stacks: MakeStacks) -> Profile:
        """Return the nanoseconds since the last window; the next begins.

        Raises: as `look`, which it does if none was due.
        """
        if not self.looks:
            self.look()
        now_s = time.monotonic()
        each_ns = 1e9 * (now_s - self._started_s) / self.looks
        traces = {number: trace for trace, number in self._numbers.items()}
        stacks = make_stacks(traces)
        about: dict[str, object] = {"looks": self.looks, "elapsed_s": now_s - self._started_s}
        profile = Profile("waits of all threads", unit="ns", about=about)
        followed = self._sampling.watch.followed
        for place, weight in self._weights.items():
            span = _span(place, self._times[place], round(weight * each_ns))
            profile.add_row(row(place, span, stacks, followed.cgroups.of, is_split=True))
        followed.name_processes(profile)
        profile.cost = {"run_time_ns": 0, "run_cnt": self.looks}
        why = "ran before its user stack was read, or too many had run"
        if not self._are_shown:
            why = "was where this kernel does not show its user stack (Linux 5.15 does)"
        not_read = count_cause("user_not_read", self._not_read, f"times a thread {why}")
        left_out = count_cause(
            "threads_left_out", self._left_out, f"threads were beyond {_MOST_THREADS} of a look"
        )
        profile.loss = Loss(seen=self._seen, causes=(not_read, left_out))
        self._forget()
        self._begin(now_s)
        return profile

    def _forget(self) -> None:
        """Forget stacks that no thread is at any more."""
        wanted = {number for sleeping in self._known.values() for number in sleeping.place[4:6]}
        self._numbers = {
            trace: number for trace, number in self._numbers.items() if number in wanted
        }

    def forget(self) -> None:
        """Forget all stacks: Python's code has other numbers from now on."""
        self._known.clear()
        self._numbers.clear()
        self._list.forget()

    def close(self) -> None:
        """End it; again is harmless."""
        self._list.close()


def _key(sleeper: Sleeper) -> tuple[int, int]:
    """The thread, which its start tells from others of its number."""
    return sleeper.tid, sleeper.started_ns


def _span(place: Place, times: int, duration_ns: int) -> Span:
    if place.state == "R":
        return Span(times, 0, duration_ns)
    return Span(times, duration_ns, 0)
