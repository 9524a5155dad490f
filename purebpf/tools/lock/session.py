"""The live part: counts waits for locks, and makes events of the slow ones."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, partial
from typing import Any, Self

from purebpf.errors import KernelError, NotSupportedError
from purebpf.loader.types.kernel_btf import kernel_btf
from purebpf.measure.event_session import Ending, EventSession, loss_of
from purebpf.observe.instruments import stack_maps
from purebpf.observe.instruments.event_stream import Record, StreamRequest
from purebpf.observe.instruments.kernel_data import KernelData, has_decoder
from purebpf.observe.processes.cgroup_ids import CgroupIds
from purebpf.results.model.intervals import Interval, subtract
from purebpf.syscall import host_clock
from purebpf.tools.lock.call_sites import CallSites
from purebpf.tools.lock.event import LockRow, Wait
from purebpf.tools.lock.longest import with_longest
from purebpf.tools.lock.members import member_of
from purebpf.tools.lock.names import Callers, LockNames
from purebpf.tools.lock.request import GROUPINGS, LockOptions, slower_ns, type_bits, type_name
from purebpf.tools.lock.selection import is_lock_wanted, is_stack_wanted, order
from purebpf.tools.lock.sums import Sum, key_of, slab_of

__all__ = ["Locks"]

_LOSSES = {
    "waits_full": "waits were not followed: more than 16384 threads waited at once",
    "rows_full": "waits were not added up: no row was left. Raise --map-entries",
    "ends_missed": "waits have an end that was not seen; they are not counted",
    "stacks_full": "stacks were dropped: the table of stacks was full",
    "outside_namespace": "waits are of tasks without an ID in this PID namespace",
}
_OWN_NAMES = ("", "mmap_lock", "siglock")
"""enum lock_name of bpf_src/lock.bpf.c."""
_BY_STACK = ("caller", "stack")


class Locks(EventSession[Wait | Interval[LockRow]]):
    """Measures waits from when its context is entered until `stop()`.

    Args:
        options: the target, and which waits.
        command_pid: a child that waits to execute `options.command` (`purebpf.measure.child`).

    Attributes:
        rows: once it is stopped, all waits added up, those that took most time first.
        cpu_s: once it is stopped, its seconds times the number of CPUs.

    Raises, when it is entered: as `EventSession`. The kernel says when a task begins to wait for a
    lock since Linux 5.19 (commit 16edd9b511a1).
    """

    explained = _LOSSES

    def __init__(self, options: LockOptions, command_pid: int = 0) -> None:
        super().__init__(options, command_pid)
        self._options = options
        self._by_type = options.by == "lock" and has_decoder()
        self._cgroups = CgroupIds()
        self._before: tuple[LockRow, ...] = ()
        self._interval_at = 0.0
        self.rows: tuple[LockRow, ...] = ()
        self.cpu_s = 0.0

    def request(self) -> StreamRequest:
        """The programs of bpf_src/lock.bpf.c."""
        options = self._options
        if not kernel_btf().find("btf_trace_contention_begin"):
            raise NotSupportedError(
                "purebpf lock",
                "this kernel has no tracepoint contention_begin: Linux 5.19 and later do",
            )
        return StreamRequest(
            "lock",
            ("lock_event",),
            ("on_end", "on_begin"),  # the end of each wait that begins is seen
            {
                "grouping": 0 if options.by in _BY_STACK else GROUPINGS.index(options.by),
                "slower_ns": slower_ns(options.slower_ms),
                "with_stacks": options.by in _BY_STACK or options.stacks or self._by_type,
                "with_owner_stacks": options.stacks,
                "page_size": os.sysconf("SC_PAGE_SIZE"),
                "wanted_types": type_bits(options.types),
                "max_depth": stack_maps.max_depth(),
            },
            {"rows": options.rows},
        )

    def make_event(self, record: Record) -> Wait | None:
        """A slow wait; None if the options do not want it."""
        fields = record.fields
        head = fields.head
        names = self._callers if fields.stack else None
        kind = type_name(fields.flags)
        if own := _OWN_NAMES[fields.name]:
            name, known_from = own, "task"
        else:
            by_type = partial(self._member, fields.stack, kind)
            name, known_from = self._locks.name(fields.lock, kind, slab_of(fields.slab), by_type)
        wanted = self._options.locks
        if wanted and not is_lock_wanted(name, fields.lock, wanted):
            return None
        if not self._is_stack_wanted(fields.stack):
            return None
        return Wait(
            self.wall_ns(head.time_ns),
            head.tgid,
            head.tid,
            head.uid,
            head.comm,
            kind,
            fields.lock,
            name,
            fields.took_ns,
            fields.owner_comm,
            fields.owner_tgid,
            fields.owner_tid,
            names.caller(fields.stack) if names else "",
            names.stack(fields.stack) if names and self._options.stacks else (),
            self._owner_stack(fields.owner_stack),
            known_from,
        )

    def __enter__(self) -> Self:
        super().__enter__()
        self._interval_at = self._started_s
        return self

    def pause_s(self) -> float:
        """Until the interval is over."""
        every_s = self._options.interval_s
        if every_s is None:
            return super().pause_s()
        return self._interval_at + every_s - self._drained_at

    def drain(self) -> Iterator[Wait | Interval[LockRow]]:
        """The slow waits since the last call of this, and the interval, if it is over."""
        yield from super().drain()
        every_s = self._options.interval_s
        if every_s is not None and time.monotonic() >= self._interval_at + every_s:
            yield self._interval(self.so_far())

    def _interval(self, rows: tuple[LockRow, ...]) -> Interval[LockRow]:
        now_s = time.monotonic()
        elapsed_s, self._interval_at = now_s - self._interval_at, now_s
        key = _stack_key if self._options.by == "stack" else _key
        changed = subtract(rows, self._before, key, ("waits", "total_ns"))
        changed = with_longest(changed, self._before, key)
        self._before = rows
        changed.sort(key=order(self._options.sort))
        return Interval(time.time_ns(), elapsed_s, tuple(changed))

    def so_far(self) -> tuple[LockRow, ...]:
        """All waits since the start, as `rows`; those that have not ended count up to now.

        Raises:
            KernelError: the kernel refused to return the counts.
        """
        return tuple(self._add_up(host_clock.monotonic_ns()))

    def stop(self) -> Ending[Wait | Interval[LockRow]]:
        """End it, add up, and close.

        Raises:
            KernelError: the kernel refused to return the counts or losses.
        """
        with self._owned:
            self.stream.stop()
            now_ns = host_clock.monotonic_ns()
            self.cpu_s = (time.monotonic() - self._started_s) * (os.cpu_count() or 1)
            events = [*super().drain()]
            self.rows = tuple(self._add_up(now_ns))
            if self._options.interval_s is not None:
                events.append(self._interval(self.rows))
            counts = stack_maps.sum_up(self.stream.object.maps["stack_stats"])
            full = counts["stacks_full"] + counts["stacks_busy"] + counts["stacks_crowded"]
            losses = self.stream.losses() | {"stacks_full": full}
            return Ending(tuple(events), loss_of(losses, self.explained))

    def _add_up(self, now_ns: int) -> list[LockRow]:
        sums: dict[tuple[object, ...], Sum] = {}
        for key, row in self.stream.object.maps["rows"].items():
            if not self._is_stack_wanted(key.id):
                continue
            sums.setdefault(self._place(key), Sum()).add(row)
        by = self._options.by
        for wait in self._open_waits():
            key = key_of(wait, by)
            if not self._is_stack_wanted(key.id):
                continue
            place = self._place(key)
            comm = wait.owner_comm if by == "owner" else wait.comm
            sums.setdefault(place, Sum()).add_open(wait, comm, now_ns - wait.since_ns)
        rows = [self._row(place, total) for place, total in sums.items()]
        if wanted := self._options.locks:
            places: Iterable[Any] = sums  # an address, flags, and the number of its own name
            rows = [
                row
                for row, (number, _, own) in zip(rows, places, strict=True)
                if is_lock_wanted(row.name, 0 if own else number, wanted)
            ]
        return sorted(rows, key=order(self._options.sort))

    def _is_stack_wanted(self, number: int) -> bool:
        """Return True for a stack with one of the wanted functions."""
        wanted = self._options.functions
        return not wanted or is_stack_wanted(self._callers.stack(number), wanted)

    def _open_waits(self) -> Iterator[Any]:
        maps = self.stream.object.maps
        yield from maps["sleeping"].values()
        for per_cpu in maps["spinning"].values():
            for spins in per_cpu:
                yield from spins.waits[: spins.locks.depth]

    def _place(self, key: Any) -> tuple[object, ...]:
        """Return the key that merges rows: many stacks may lead to one caller."""
        if self._options.by == "caller":
            return (self._callers.caller(key.id), key.flags)
        if self._options.by == "stack":
            return (key.id, key.flags)
        return (key.id, key.flags, key.name)

    def _row(self, place: tuple[Any, ...], total: Sum) -> LockRow:
        by = self._options.by
        pid = tid = 0
        known_from = ""
        if by in _BY_STACK:
            name, flags = place
            if by == "stack":
                name = self._callers.caller(name)
        else:
            number, flags, own = place
            name = total.comm
            if by == "process":
                pid = number
            elif by in ("thread", "owner"):
                pid, tid = number >> 32, number & 0xFFFFFFFF
            elif by == "cgroup":
                name = self._cgroups.label(number)
            elif own:
                name, pid = f"{_OWN_NAMES[own]} of {total.comm} ({number})", number
                known_from = "task"
            else:
                by_type = partial(self._member, total.stack, type_name(flags))
                name, known_from = self._locks.name(number, type_name(flags), total.slab, by_type)
        with_stacks = self._options.stacks or by == "stack"
        stack = self._callers.stack(total.stack) if with_stacks else ()
        return LockRow(
            name,
            pid,
            tid,
            type_name(flags) if by in ("caller", "stack", "lock") else "",
            total.waits,
            total.open,
            total.total_ns,
            total.max_ns,
            tuple(total.buckets),
            stack,
            self._owner_stack(total.owner_stack),
            known_from,
        )

    def _owner_stack(self, number: int) -> tuple[str, ...]:
        return self._callers.stack(number) if number else ()

    @cached_property
    def _callers(self) -> Callers:
        stacks = self.stream.object.maps["stacks"]

        def read(number: int) -> Sequence[int]:
            stack: Any = stacks.get(number)
            return stack.addresses[: stack.depth] if stack else ()

        return Callers(read)

    def _member(self, stack: int, kind: str) -> str:
        """Return the struct member that a lock is by the types of its caller; or ""."""
        sites = self._sites if self._by_type and stack else None
        return sites.name(self._callers.site(stack), kind) if sites is not None else ""

    @cached_property
    def _sites(self) -> CallSites | None:
        try:
            data = KernelData()
        except (KernelError, NotSupportedError):
            return None
        self._owned.callback(data.close)
        return CallSites(kernel_btf(), data.argument, self._callers.takes_locks)

    @cached_property
    def _locks(self) -> LockNames:
        btf = kernel_btf()
        (run_queues,) = self.stream.object.maps["run_queues"].values()
        structs: Any = [btf.type(number) for number in btf.find("rq")]
        size = max((struct.size for struct in structs), default=0)
        return LockNames(run_queues, size, partial(member_of, btf))


def _key(row: LockRow) -> tuple[object, ...]:
    return row.name, row.pid, row.tid, row.type


def _stack_key(row: LockRow) -> tuple[object, ...]:
    return row.stack, row.type
