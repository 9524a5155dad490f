"""The live part for locks of user space: counts waits in futex(2), and names what they were for."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Never, Self

from purebpf.errors import NotSupportedError
from purebpf.kernel.instruments.futex_tracer import FutexSum, FutexTracer, futex_request
from purebpf.kernel.instruments.stack_maps import max_depth
from purebpf.kernel.instruments.task_filter import TaskFilter
from purebpf.lock.data_symbols import DataSymbols
from purebpf.lock.regions import Regions
from purebpf.lock.request import USER_TYPES, Options
from purebpf.lock.user_event import UserRow
from purebpf.lock.user_sums import UserSum
from purebpf.lock.user_types import Wait, describe
from purebpf.measure.event_session import Ending
from purebpf.measure.user_stack_session import UserStackSession
from purebpf.results import Cause, Loss
from purebpf.results.build.stored_stacks import Stacks
from purebpf.results.model.spelling import count_text
from purebpf.symbols.frame import Frame, Unknown
from purebpf.syscall import proc

__all__ = ["UserLocks"]

_MACHINE = "x86_64"
_STACKS = 16384
_LOSSES = {
    "waits_full": "waits were not followed: more than 32768 threads waited at once",
    "rows_full": "waits were not added up: no row was left. Raise --rows",
    "locks_full": "waits have no waker: more than 16384 locks were waited for",
    "stacks_full": "stacks were dropped: the table of stacks was full",
    "copies_lost": "stacks were lost: user space did not finish them fast enough",
    "places_taken": "stacks were lost: too many programs were preempted on one CPU",
    "outside_namespace": "waits are of tasks without an ID in this PID namespace",
    "children_missed": "new processes were not followed: too many lived at once",
    "recursion_misses": "recursion misses: the kernel does not run a program inside itself",
    "sideband_lost": "records of processes and mappings were lost: names may be missing",
}


def _place(by: str, wait: Wait, of: FutexSum) -> tuple[object, ...]:
    """What waits are put together by."""
    places: dict[str, tuple[object, ...]] = {
        "caller": (wait.caller,),
        "lock": (of.pid, of.address),
        "process": (of.pid,),
        "thread": (of.pid, of.tid),
        "owner": (of.pid, _owner(wait, of)),
        "cgroup": (of.cgroup,),
    }
    return (wait.type, *places[by])


def _owner(wait: Wait, of: FutexSum) -> int:
    """The owner, where what the words say is true."""
    return of.owner if wait.type == "mutex" else 0


class UserLocks(UserStackSession[FutexTracer]):
    """Measures waits from when its context is entered until `stop()`.

    Args:
        options: the target, and which waits; `userspace` does not matter here.
        command_pid: as of `UserStackSession`.

    Attributes:
        rows: once it is stopped, all waits added up, those that took most time first.
        others: by type, waits and nanoseconds of those that `options.types` leave out.

    Raises, when it is entered: as `UserStackSession`, and
        NotSupportedError: this is not x86-64.
    """

    def __init__(self, options: Options, command_pid: int = 0) -> None:
        super().__init__(options, command_pid)
        self._options = options
        self.rows: tuple[UserRow, ...] = ()
        self.others: dict[str, tuple[int, int]] = {}

    def __enter__(self) -> Self:
        if (machine := os.uname().machine) != _MACHINE:
            raise NotSupportedError(
                "purebpf lock --userspace", f"it is for x86-64, and this CPU is {machine}"
            )
        return super().__enter__()

    def make_tracer(self, whose: TaskFilter) -> FutexTracer:
        """The programs of bpf_src/futex.bpf.c."""
        options = self._options
        request = futex_request(
            {
                "python": True,
                "by_thread": options.by == "thread",
                "by_owner": options.by == "owner",
                "with_cgroups": options.by == "cgroup",
                "with_wakers": options.stacks,
            },
            {"rows": options.rows, "stacks": _STACKS},
            tree=self.by_tree,
        )
        return FutexTracer(request, whose._replace(own_pid=os.getpid()), self.earlier)

    def drain(self) -> tuple[Never, ...]:
        """Nothing: waits are added up."""
        return ()

    def stop(self) -> Ending[Never]:
        """End it, add up, and close.

        Raises:
            KernelError: the kernel refused to say what was counted or lost.
        """
        with self._owned:
            tracer = self._tracer
            tracer.stop()
            self._feed.catch_up()
            sums = list(tracer.sums())
            numbers = {of.stack for of in sums} | {of.waker_stack for of in sums}
            resolved = tracer.resolve(numbers)
            stacks = self.stacks(tracer.traces())
            named = [
                of._replace(stack=resolved[of.stack], waker_stack=resolved[of.waker_stack])
                for of in sums
            ]
            self.rows = tuple(self._add_up(named, stacks))
            return Ending((), self._loss(tracer.stats()))

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
        regions = Regions(proc.maps, DataSymbols(self.budget).name)
        made = [self._row(waits[place], total, stacks, regions) for place, total in rows.items()]
        return sorted(made, key=lambda row: row.total_ns, reverse=True)

    def _is_shown(self, kind: str) -> bool:
        types = self._options.types
        return kind in types if types else USER_TYPES[kind]

    def _row(self, wait: Wait, total: UserSum, stacks: Stacks, regions: Regions) -> UserRow:
        by, most, shows = self._options.by, total.most, self._options.stacks
        pid = most.pid if by in ("lock", "process", "thread", "owner") else 0
        tid = most.tid if by == "thread" else 0
        name = most.comm
        if by == "caller":
            name = wait.caller or "[unknown]"
        elif by == "lock":
            name = regions.name(most.pid, most.address)
        elif by == "cgroup":
            name = self._followed.cgroups.of(most.pid)
        elif by == "owner":
            tid = _owner(wait, most)
            name = (proc.comm(f"{pid}/task/{tid}") or self._followed.names.of(pid)) if tid else ""
        return UserRow(
            name=name,
            pid=pid,
            tid=tid,
            type=wait.type,
            address=most.address if by == "lock" else 0,
            waits=total.waits,
            open=total.open,
            total_ns=total.total_ns,
            timeouts=total.timeouts,
            woken=total.woken,
            wake_ns=total.wake_ns,
            most_waiting=total.most_waiting,
            handed_on=total.handed_on,
            buckets=tuple(total.buckets),
            stack=_names(stacks, most.stack, most) if shows else (),
            waker=_names(stacks, total.waker_stack, most) if shows else (),
        )

    def _loss(self, stats: Mapping[str, int]) -> Loss:
        counts = {
            **stats,
            "rows_full": stats["rows_full"] + stats["rows_busy"],
            "stacks_full": stats["stacks_full"] + stats["stacks_busy"] + stats["stacks_crowded"],
            "copies_lost": sum(
                stats[name] for name in ("refused", "output_full", "output_none", "output_failed")
            ),
            "sideband_lost": self._followed.lost,
        }
        causes = [
            Cause(name, counts[name], count_text(counts[name], text))
            for name, text in _LOSSES.items()
        ]
        return Loss(seen=stats["waits"], causes=tuple(causes))


def _names(stacks: Stacks, number: int, of: FutexSum) -> tuple[str, ...]:
    stack = stacks.user(number, of.pid, of.comm) or ()
    return tuple(_spell(entry) for entry in stack[: max_depth()])


def _spell(entry: Frame | Unknown) -> str:
    if isinstance(entry, Frame):
        return entry.name
    return f"{entry.address:#x} in {entry.module}" if entry.module else f"{entry.address:#x}"
