"""The live part: counts waits for locks, and makes events of the slow ones."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

from purebpf.errors import NotSupportedError
from purebpf.kernel.instruments import stack_maps
from purebpf.kernel.instruments.event_stream import Record, StreamRequest
from purebpf.kernel.types.kernel_btf import kernel_btf
from purebpf.lock.event import Row, Wait
from purebpf.lock.names import Callers, LockNames
from purebpf.lock.request import GROUPINGS, Options, type_bits, type_name
from purebpf.lock.sums import Sum, key_of
from purebpf.measure.cgroup_ids import CgroupIds
from purebpf.measure.event_session import Ending, EventSession, loss_of

__all__ = ["Locks"]

_LOSSES = {
    "waits_full": "waits were not followed: more than 16384 threads waited at once",
    "rows_full": "waits were not added up: no row was left. Raise --rows",
    "ends_missed": "waits have an end that was not seen; they are not counted",
    "stacks_full": "stacks were dropped: the table of stacks was full",
    "outside_namespace": "waits are of tasks without an ID in this PID namespace",
}
_OWN_NAMES = ("", "mmap_lock", "siglock")
"""enum lock_name of bpf_src/lock.bpf.c."""


class Locks(EventSession[Wait]):
    """Measures waits from when its context is entered until `stop()`.

    Args:
        options: the target, and which waits.
        command_pid: a child that waits to execute `options.command` (`purebpf.measure.child`).

    Attributes:
        rows: once it is stopped, all waits added up, those that took most time first.

    Raises, when it is entered: as `EventSession`. The kernel says when a task begins to wait for a
    lock since Linux 5.19 (commit 16edd9b511a1).
    """

    explained = _LOSSES

    def __init__(self, options: Options, command_pid: int = 0) -> None:
        super().__init__(options, command_pid)
        self._options = options
        self._cgroups = CgroupIds()
        self.rows: tuple[Row, ...] = ()

    def request(self) -> StreamRequest:
        """The programs of bpf_src/lock.bpf.c."""
        options = self._options
        if not kernel_btf().find("btf_trace_contention_begin"):
            raise NotSupportedError(
                "purebpf lock",
                "this kernel has no tracepoint contention_begin: Linux 5.19 and later do",
            )
        slower = options.slower_ms
        return StreamRequest(
            "lock",
            ("lock_event",),
            ("on_end", "on_begin"),  # the end of each wait that begins is seen
            {
                "grouping": GROUPINGS.index(options.by),
                "slower_ns": (1 << 64) - 1 if slower is None else round(slower * 1e6),
                "with_stacks": options.by == "caller" or options.stacks,
                "wanted_types": type_bits(options.types),
                "max_depth": stack_maps.max_depth(),
            },
            {"rows": options.rows},
        )

    def make_event(self, record: Record) -> Wait:
        """A slow wait."""
        fields = record.fields
        head = fields.head
        names = self._callers if fields.stack else None
        return Wait(
            self.wall_ns(head.time_ns),
            head.tgid,
            head.tid,
            head.uid,
            head.comm,
            type_name(fields.flags),
            fields.lock,
            _OWN_NAMES[fields.name] or self._locks.name(fields.lock),
            fields.took_ns,
            fields.owner_comm,
            fields.owner_tgid,
            fields.owner_tid,
            names.caller(fields.stack) if names else "",
            names.stack(fields.stack) if names and self._options.stacks else (),
        )

    def so_far(self) -> tuple[Row, ...]:
        """All waits since the start, as `rows`; those that have not ended count up to now.

        Raises:
            KernelError: the kernel refused to say what was counted.
        """
        return tuple(self._add_up(time.monotonic_ns()))

    def stop(self) -> Ending[Wait]:
        """End it, add up, and close.

        Raises:
            KernelError: the kernel refused to say what was counted or lost.
        """
        with self._owned:
            self.stream.stop()
            now_ns = time.monotonic_ns()
            events = tuple(self.drain())
            self.rows = tuple(self._add_up(now_ns))
            counts = stack_maps.sum_up(self.stream.object.maps["stack_stats"])
            full = counts["stacks_full"] + counts["stacks_busy"] + counts["stacks_crowded"]
            losses = self.stream.losses() | {"stacks_full": full}
            return Ending(events, loss_of(losses, self.explained))

    def _add_up(self, now_ns: int) -> list[Row]:
        sums: dict[tuple[object, ...], Sum] = {}
        for key, row in self.stream.object.maps["rows"].items():
            sums.setdefault(self._place(key), Sum()).add(row)
        by = self._options.by
        for wait in self._open_waits():
            place = self._place(key_of(wait, by))
            comm = wait.owner_comm if by == "owner" else wait.comm
            sums.setdefault(place, Sum()).add_open(wait, comm, now_ns - wait.since_ns)
        rows = [self._row(place, total) for place, total in sums.items()]
        return sorted(rows, key=lambda row: row.total_ns, reverse=True)

    def _open_waits(self) -> Iterator[Any]:
        maps = self.stream.object.maps
        yield from maps["sleeping"].values()
        for per_cpu in maps["spinning"].values():
            for spins in per_cpu:
                yield from spins.waits[: spins.depth]

    def _place(self, key: Any) -> tuple[object, ...]:
        """What rows are put together by: callers may be reached by many stacks."""
        if self._options.by == "caller":
            return (self._callers.caller(key.id), key.flags)
        return (key.id, key.flags, key.name)

    def _row(self, place: tuple[Any, ...], total: Sum) -> Row:
        by = self._options.by
        pid = tid = 0
        if by == "caller":
            name, flags = place
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
            else:
                name = self._locks.name(number, total.cache)
        stack = self._callers.stack(total.stack) if self._options.stacks else ()
        return Row(
            name,
            pid,
            tid,
            type_name(flags) if by in ("caller", "lock") else "",
            total.waits,
            total.open,
            total.total_ns,
            tuple(total.buckets),
            stack,
        )

    @cached_property
    def _callers(self) -> Callers:
        stacks = self.stream.object.maps["stacks"]

        def read(number: int) -> Sequence[int]:
            stack: Any = stacks.get(number)
            return stack.addresses[: stack.depth] if stack else ()

        return Callers(read)

    @cached_property
    def _locks(self) -> LockNames:
        btf = kernel_btf()
        (run_queues,) = self.stream.object.maps["run_queues"].values()
        structs: Any = [btf.type(number) for number in btf.find("rq")]
        return LockNames(run_queues, max((struct.size for struct in structs), default=0))
