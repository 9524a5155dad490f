"""The live part for locks of user space: counts waits in futex(2), and names their locks."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Self

from purebpf.errors import KernelError, NotSupportedError
from purebpf.findings.places import WORK, TimePlace, classify, sum_places
from purebpf.measure.event_session import Ending
from purebpf.measure.stacks.session import UserStackSession
from purebpf.measure.stop import HasFileno
from purebpf.measure.targets import NoSuchTargetError
from purebpf.measure.thread_numbers import own_numbers
from purebpf.observe.instruments.futex_tracer import FutexSum, FutexTracer, SlowWait, futex_request
from purebpf.observe.instruments.stack_maps import max_depth
from purebpf.observe.instruments.task_filter import TaskFilter
from purebpf.results import Loss, count_cause
from purebpf.results.build.stored_stacks import Stacks
from purebpf.results.model.intervals import Interval, subtract
from purebpf.symbols.frame import Frame, Unknown
from purebpf.symbols.proc_maps import Mapping as MappedPart
from purebpf.syscall import host_clock, proc
from purebpf.tools.lock.data_symbols import DataSymbols
from purebpf.tools.lock.longest import with_longest
from purebpf.tools.lock.old_waits import OldWait, OldWaits
from purebpf.tools.lock.regions import Regions
from purebpf.tools.lock.released import released_in
from purebpf.tools.lock.request import USER_TYPES, LockOptions, slower_ns
from purebpf.tools.lock.selection import order
from purebpf.tools.lock.user_event import UserRow, UserWait
from purebpf.tools.lock.user_sums import UserSum
from purebpf.tools.lock.user_types import Wait, describe

__all__ = ["UserLocks"]

_MACHINE = "x86_64"
_STACKS = 16384
_SLOW_S = 0.25
"""Between two looks for slow waits: their stacks are finished and named together."""
_LOSSES = {
    "waits_full": "waits were not followed: more than 32768 threads waited at once",
    "rows_full": "waits were not added up: no row was left. Raise --map-entries",
    "locks_full": "waits have no waker: more than 16384 locks were waited for",
    "events_full": "slow waits were not shown: the ring was full. Raise the time of --slower",
    "stacks_full": "stacks were dropped: the table of stacks was full",
    "copies_lost": "stacks were lost: user space did not finish them fast enough",
    "places_taken": "stacks were lost: too many programs were preempted on one CPU",
    "outside_namespace": "waits are of tasks without an ID in this PID namespace",
    "children_missed": "new processes were not followed: too many lived at once",
    "recursion_misses": "recursion misses: the kernel does not run a program inside itself",
    "sideband_lost": "records of processes and mappings were lost: names may be missing",
}


_LOCKS, _SEVERAL = frozenset({"lock", "gil", "jvm-monitor"}), 2
"""Kinds of places that are waits for locks; threads that wait for them at once: a convoy."""
_COUNTS = ("waits", "total_ns", "timeouts", "woken", "wake_ns", "handed_on")


def _place(by: str, wait: Wait, of: FutexSum) -> tuple[object, ...]:
    """Return the key that merges waits."""
    places: dict[str, tuple[object, ...]] = {
        "caller": (wait.caller,),
        "stack": (of.stack,),
        "lock": (of.pid, of.address),
        "process": (of.pid,),
        "thread": (of.pid, of.tid),
        "owner": (of.pid, _owner(wait, of)),
        "cgroup": (of.cgroup,),
    }
    return (wait.type, *places[by])


def _owner(wait: Wait, of: FutexSum) -> int:
    """Return the owner for the types with an owner in the lock word."""
    return of.owner if wait.type == "mutex" else 0


class UserLocks(UserStackSession[FutexTracer]):
    """Measures waits from when its context is entered until `stop()`.

    Args:
        options: the target, and which waits; `userspace` does not matter here.
        command_pid: as of `UserStackSession`.

    Attributes:
        rows: once it is stopped, all waits added up, those that took most time first.
        others: by type, waits and nanoseconds of those that `options.types` leave out.
        old_waits: once it is stopped, threads of `options.pids` that waited all the time.
        at_work: once it is stopped, the places at work of those processes in which threads wait for
            locks then: who has a lock is in one of them.

    Raises, when it is entered: as `UserStackSession`, and
        NotSupportedError: this is not x86-64.
    """

    def __init__(self, options: LockOptions, command_pid: int = 0) -> None:
        super().__init__(options, command_pid)
        self._options = options
        self._before: tuple[UserRow, ...] = ()
        self._interval_at = 0.0
        self._variables = DataSymbols(self.budget, self._files_of)
        self.rows: tuple[UserRow, ...] = ()
        self.others: dict[str, tuple[int, int]] = {}
        self.old_waits: tuple[OldWait, ...] = ()
        self.at_work: tuple[TimePlace, ...] = ()
        self._old = OldWaits(())
        self._numbers: dict[int, dict[int, int]] = {}

    def __enter__(self) -> Self:
        if (machine := os.uname().machine) != _MACHINE:
            raise NotSupportedError(
                "purebpf lock --userspace", f"it is for x86-64, and this CPU is {machine}"
            )
        super().__enter__()
        self._old = OldWaits(self._options.pids, _functions_now)
        self._epoch_ns = time.time_ns() - host_clock.monotonic_ns()
        self._interval_at = time.monotonic()
        return self

    def make_tracer(self, whose: TaskFilter) -> FutexTracer:
        """The programs of bpf_src/futex.bpf.c."""
        options = self._options
        request = futex_request(
            {
                "python": True,
                "by_thread": options.by == "thread",
                "by_owner": options.by == "owner",
                "with_cgroups": options.by == "cgroup",
                "with_wakers": True,
                "python_lines": True,
                "slower_ns": slower_ns(options.slower_ms),
            },
            {"rows": options.rows, "stacks": _STACKS},
            tree=self.by_tree,
        )
        return FutexTracer(request, whose._replace(own_pid=os.getpid()), self.earlier)

    def wait(self, *ends: HasFileno, at_most_s: float | None = None) -> bool:
        """Sleep until it is over: True. False: `drain()` is due, or `at_most_s` seconds passed."""
        limits = [at_most_s, self._left_s()]
        if self._options.slower_ms is not None:
            limits.append(_SLOW_S)
        shortest = min((limit for limit in limits if limit is not None), default=None)
        return super().wait(*ends, at_most_s=shortest)

    def _left_s(self) -> float | None:
        """Return the time until the interval ends."""
        every_s = self._options.interval_s
        return None if every_s is None else max(0.0, self._interval_at + every_s - time.monotonic())

    def drain(self) -> Iterator[UserWait | Interval[UserRow]]:
        """The slow waits since the last call of this, and the interval, if it is over."""
        yield from self._slow_waits()
        if self._left_s() == 0:
            yield self._interval(self.so_far())

    def _interval(self, rows: tuple[UserRow, ...]) -> Interval[UserRow]:
        now_s = time.monotonic()
        elapsed_s, self._interval_at = now_s - self._interval_at, now_s
        key = _stack_key if self._options.by == "stack" else _key
        changed = with_longest(subtract(rows, self._before, key, _COUNTS), self._before, key)
        self._before = rows
        changed.sort(key=order(self._options.sort))
        return Interval(time.time_ns(), elapsed_s, tuple(changed))

    def so_far(self) -> tuple[UserRow, ...]:
        """All waits since the start, as `rows`; those that have not ended count up to now.

        Raises:
            KernelError: the kernel refused to return the counts.
        """
        self._tracer.look()
        return self._read()

    def stop(self) -> Ending[UserWait | Interval[UserRow]]:
        """End it, add up, and close.

        Raises:
            KernelError: the kernel refused to return the counts or losses.
        """
        with self._owned:
            self.old_waits = tuple(self._old.now())
            self.at_work = tuple(chain.from_iterable(map(_at_work, self._options.pids)))
            self._tracer.stop()
            events: list[UserWait | Interval[UserRow]] = [*self._slow_waits()]
            self.rows = self._read()
            if self._options.interval_s is not None:
                events.append(self._interval(self.rows))
            return Ending(tuple(events), self._loss(self._tracer.stats()))

    def _slow_waits(self) -> Iterator[UserWait]:
        waits = list(self._tracer.slow_waits())
        if not waits:
            return
        stacks, resolved = self._resolve(
            {wait.stack for wait in waits} | {wait.waker_stack for wait in waits}
        )
        regions = self._regions()
        for wait in waits:
            place = describe(stacks.user(resolved[wait.stack], wait.pid, wait.comm) or ())
            if self._is_shown(place.type):
                yield self._wait(
                    wait._replace(
                        stack=resolved[wait.stack], waker_stack=resolved[wait.waker_stack]
                    ),
                    *(place, stacks, regions),
                )

    def _wait(self, wait: SlowWait, place: Wait, stacks: Stacks, regions: Regions) -> UserWait:
        shows = self._options.stacks
        return UserWait(
            time_ns=wait.time_ns + self._epoch_ns,
            pid=wait.pid,
            tid=wait.tid,
            comm=wait.comm,
            type=place.type,
            lock=wait.address,
            name=regions.name(wait.pid, wait.address),
            took_ns=wait.took_ns,
            owner_tid=self._owner_of(wait, place),
            wake_ns=wait.wake_ns,
            caller=place.caller,
            stack=_names(stacks, wait.stack, wait) if shows else (),
            waker=_names(stacks, wait.waker_stack, wait) if shows and wait.waker_stack else (),
        )

    def _owner_of(self, wait: SlowWait, place: Wait) -> int:
        """Return the owner's thread ID as we see it, 0 where it is not known."""
        if place.type != "mutex" or not wait.owner:
            return 0
        return self._as_seen(wait.pid, wait.owner)

    def _as_seen(self, pid: int, tid: int) -> int:
        """Return the thread ID that we see for one that a process wrote to its memory.

        0 is a thread of a container that is gone.
        """
        numbers = self._numbers.get(pid)
        if numbers is None or (numbers and tid not in numbers):
            numbers = self._numbers[pid] = own_numbers(pid)
        return numbers.get(tid, 0) if numbers else tid

    def _resolve(self, numbers: set[int]) -> tuple[Stacks, dict[int, int]]:
        """Return the stacks, and the final numbers of the stacks that programs counted under
        these numbers.
        """
        self._watch.catch_up()
        resolved = self._tracer.resolve(numbers)
        return self.stacks(self._tracer.traces()), resolved

    def _files_of(self, pid: int) -> list[MappedPart]:
        """Return the mappings of a process, or the ones it had when it ended."""
        return self._watch.followed.spaces.files(pid)

    def _regions(self) -> Regions:
        self._variables.refresh()
        return Regions(proc.maps, self._variables.name, self._variables.of_ended)

    def _read(self) -> tuple[UserRow, ...]:
        sums = list(self._tracer.sums())
        stacks, resolved = self._resolve(
            {of.stack for of in sums} | {of.waker_stack for of in sums}
        )
        named = [
            of._replace(stack=resolved[of.stack], waker_stack=resolved[of.waker_stack])
            for of in sums
        ]
        self.others = {}
        return tuple(self._add_up(named, stacks))

    def _add_up(self, sums: Iterable[FutexSum], stacks: Stacks) -> list[UserRow]:
        rows: dict[tuple[object, ...], UserSum] = {}
        waits: dict[tuple[object, ...], Wait] = {}
        for of in sums:
            wait = describe(stacks.user(of.stack, of.pid, of.comm) or ())
            if not self._is_shown(wait.type):
                count, total_ns = self.others.get(wait.type, (0, 0))
                self.others[wait.type] = (count + of.waits + of.open, total_ns + of.total_ns)
                continue
            place = _place(self._options.by, wait, of)
            waits.setdefault(place, wait)
            rows.setdefault(place, UserSum(of)).add(of)
        regions = self._regions()
        rows_of_waits = [
            self._row(waits[place], total, stacks, regions) for place, total in rows.items()
        ]
        return sorted(rows_of_waits, key=order(self._options.sort))

    def _is_shown(self, kind: str) -> bool:
        types = self._options.types
        return kind in types if types else USER_TYPES[kind]

    def _row(self, wait: Wait, total: UserSum, stacks: Stacks, regions: Regions) -> UserRow:
        by, most = self._options.by, total.most
        shows = self._options.stacks or by == "stack"
        released = released_in(
            wait.type,
            most.pid,
            [
                (stacks.user(number, most.pid, most.comm) or (), waits)
                for number, waits in total.wakers.items()
            ],
        )
        pid = most.pid if by in ("lock", "process", "thread", "owner") else 0
        tid = most.tid if by == "thread" else 0
        name = most.comm
        if by in ("caller", "stack"):
            name = wait.caller or "[unknown]"
        elif by == "lock":
            name = regions.name(most.pid, most.address)
        elif by == "cgroup":
            name = self._watch.followed.cgroups.of(most.pid)
        elif by == "owner":
            tid = self._as_seen(pid, _owner(wait, most))
            name = ""
            if tid:
                name = proc.comm(f"{pid}/task/{tid}") or self._watch.followed.names.of(pid)
        return UserRow(
            name=name,
            pid=pid,
            tid=tid,
            type=wait.type,
            address=most.address if by == "lock" else 0,
            waits=total.waits,
            open=total.open,
            total_ns=total.total_ns,
            max_ns=total.max_ns,
            timeouts=total.timeouts,
            woken=total.woken,
            wake_ns=total.wake_ns,
            most_waiting=total.most_waiting,
            handed_on=total.handed_on,
            buckets=tuple(total.buckets),
            stack=_names(stacks, most.stack, most) if shows else (),
            waker=_names(stacks, total.waker_stack, most) if self._options.stacks else (),
            released_in=released,
        )

    def _loss(self, stats: Mapping[str, int]) -> Loss:
        counts = {
            **stats,
            "rows_full": stats["rows_full"] + stats["rows_busy"],
            "stacks_full": stats["stacks_full"] + stats["stacks_busy"] + stats["stacks_crowded"],
            "copies_lost": sum(
                stats[name] for name in ("refused", "output_full", "output_none", "output_failed")
            ),
            "sideband_lost": self._watch.followed.lost,
        }
        causes = [count_cause(name, counts[name], text) for name, text in _LOSSES.items()]
        return Loss(seen=stats["waits"], causes=tuple(causes))


def _places_now(pid: int) -> dict[int, TimePlace]:
    """Return the present places of the threads of a process, by thread ID; {} if it ended."""
    from purebpf.tools.dump.activities import activity_of_thread  # of convoys and deadlocks only
    from purebpf.tools.dump.session import dump

    try:
        threads = dump(pid).threads
    except (KernelError, NotSupportedError, NoSuchTargetError):
        return {}
    activities = [activity_of_thread(pid, thread) for thread in threads]
    uses = classify(activities)  # all together: who is inside of a lock is no idle thread
    places = {}
    for activity, (_, use) in zip(activities, uses, strict=True):
        (place,) = sum_places([activity])
        places[activity.tid] = place._replace(use=use)
    return places


def _at_work(pid: int) -> list[TimePlace]:
    """Return the places at work, but not in a lock, if several threads wait for locks now."""
    places = _places_now(pid).values()
    waiting = sum(place.kind in _LOCKS and place.use == WORK for place in places)
    working = [place for place in places if place.use == WORK and place.kind not in _LOCKS]
    return working if waiting >= _SEVERAL else []


def _functions_now(pid: int) -> dict[int, str]:
    """Return the innermost own functions of the threads of a process, by thread ID."""
    return {tid: place.path[0] for tid, place in _places_now(pid).items() if place.path}


def _key(row: UserRow) -> tuple[object, ...]:
    return row.name, row.pid, row.tid, row.type, row.address


def _stack_key(row: UserRow) -> tuple[object, ...]:
    return row.stack, row.name, row.type


def _names(stacks: Stacks, number: int, of: FutexSum | SlowWait) -> tuple[str, ...]:
    stack = stacks.user(number, of.pid, of.comm) or ()
    return tuple(_spell(entry) for entry in stack[: max_depth()])


def _spell(entry: Frame | Unknown) -> str:
    if isinstance(entry, Frame):
        return entry.name
    return f"{entry.address:#x} in {entry.module}" if entry.module else f"{entry.address:#x}"
