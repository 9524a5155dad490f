"""The live part: measures the kernel's work, and names it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from fnmatch import fnmatchcase
from functools import cache
from typing import Any, Self

from purebpf import objects
from purebpf.closable import Closing
from purebpf.errors import NotSupportedError
from purebpf.loader.host import cpus
from purebpf.loader.load.load import load
from purebpf.loader.rings.ring_buffer import RingBuffer
from purebpf.loader.types.kernel_btf import kernel_btf
from purebpf.measure.privileges import needing
from purebpf.measure.stop import HasFileno
from purebpf.measure.targets import check_cpus
from purebpf.measure.wait import RunClock
from purebpf.observe.instruments import stack_maps
from purebpf.observe.instruments.cpu_shares import CpuShares
from purebpf.observe.instruments.quiesce import settle
from purebpf.observe.instruments.task_filter import cpu_words
from purebpf.observe.symbols.symbolizer import Symbolizer
from purebpf.results import Cause, Loss, count_cause
from purebpf.symbols.frame import is_of_tracepoint, spell_kernel_frame
from purebpf.syscall import proc
from purebpf.tools.kwork.request import KINDS, PROGRAMS, KworkOptions
from purebpf.tools.kwork.rows import (
    SOFTIRQS,
    Host,
    KworkRow,
    Result,
    Run,
    merge,
    subtract,
    subtract_hosts,
)

__all__ = ["Kwork", "supported_kinds"]

_LATE = {"tasklet": ("tasklet_entry", "6.5"), "ipi": ("csd_function_entry", "6.5")}
"""Kinds that not every kernel says the beginning of: by which tracepoint, and since when."""

_RING = (4096, 1 << 22)
"""Bytes, without and with each run: some 45,000 runs."""
_NO_DELAY = (1 << 64) - 1

_LOSSES = {
    "runs_full": "runs are counted, but not shown: the ring was full",
    "rows_full": "runs were not counted: no row was left. Raise --map-entries",
    "working_full": "runs were not counted: more than 16384 workers ran at once",
    "nested": "runs were dropped, as more than 4 were nested in one another",
    "ends_missed": "runs have an end that was not seen; they are not counted",
    "before": "runs were under way when the measurement began",
    "hosts_full": "runs of softirqs were in processes beyond 4096: these are not named",
    "clock_backwards": "times had a clock that ran backwards; they count as 0 ns",
    "stacks_full": "stacks were dropped: the table of stacks was full",
    "in_flight": "runs were under way at the end; they are not counted",
    "recursion_misses": "recursion misses: the kernel does not run a program inside itself",
}
_NOTES = frozenset({"before", "in_flight"})


class Kwork(Closing):
    """Measures from when its context is entered until `stop()`; `interval()` reads in between.

    Args:
        options: the work to measure.
        command_pid: of a child that runs at the same time; every task counts all the same.

    Raises, when it is entered; nothing stays open then:
        NoSuchTargetError: a CPU that is not online.
        KernelError, NotSupportedError: the kernel refused. Needs BTF (CONFIG_DEBUG_INFO_BTF).
    """

    def __init__(self, options: KworkOptions, command_pid: int = 0) -> None:
        del command_pid
        self._options = options
        self._clock = RunClock(options.duration_s, options.interval_s)
        self._symbolizer = Symbolizer()
        self._function = cache(self._name_function)
        self._queuers = cache(self._name_stack)
        self._before: list[KworkRow] = []
        self._hosts_before: tuple[Host, ...] = ()
        self.last_runs: tuple[Run, ...] = ()
        """The runs that `stop()` found, which `runs()` had not given yet."""
        self._owned = ExitStack()

    def __enter__(self) -> Self:
        options = self._options
        if proc.status() is None:  # names of functions are in /proc/kallsyms
            why = "/proc is not mounted; mount it with: mount -t proc proc /proc"
            raise NotSupportedError("names of functions", why)
        check_cpus(options.cpus)
        self._kinds, self._notes = supported_kinds(options.kinds)
        programs = [name for kind in self._kinds for name in PROGRAMS[kind]]
        spec = (
            objects.spec("kwork")
            .only(*programs)
            .set(
                with_runs=options.each_run,
                with_stacks=options.stacks,
                max_depth=stack_maps.max_depth(),
            )
            .resize(rows=options.rows * len(cpus.possible()), ended_runs=_RING[options.each_run])
        )
        if options.cpus:
            spec = spec.set(has_cpus=True, cpus=cpu_words(options.cpus))
        with needing("CAP_BPF", "CAP_PERFMON"), ExitStack() as stack:
            self._object = stack.enter_context(load(spec))
            self._shares: CpuShares | None = None
            if options.shares:
                self._shares = stack.enter_context(CpuShares(options.cpus))
            self._ring: Any = None
            if options.each_run:
                self._ring = stack.enter_context(
                    RingBuffer(self._object.maps["ended_runs"], "ended_run")
                )
            self._links = stack.enter_context(ExitStack())
            for name in programs:
                self._links.enter_context(self._object.programs[name].attach())
            self._owned = stack.pop_all()
        self._clock.start()
        return self

    def wait(self, *ends: HasFileno) -> bool:
        """Sleep until it is over: True. False: an interval is, and `interval()` is due."""
        self._clock.next_tick()
        return self._clock.wait(*ends)

    def runs(self) -> Iterator[Run]:
        """The runs that ended since the last call, in this order; needs `KworkOptions.each_run`."""
        for record in self._ring.drain():
            name = self._name(record, record)
            if self._is_wanted(name):
                yield Run(
                    record.began_ns,
                    record.ended_ns,
                    record.cpu,
                    KINDS[record.kind],
                    name,
                    None if record.delay_ns == _NO_DELAY else record.delay_ns,
                )

    def _is_wanted(self, name: str) -> bool:
        names = self._options.names
        return not names or any(fnmatchcase(name, pattern) for pattern in names)

    def interval(self) -> Result:
        """Return the work since the start, or since the last call of this.

        Raises:
            KernelError: a map could not be read.
        """
        shares = None if self._shares is None else self._shares.take()
        counted = list(self._object.maps["rows"].items())
        elapsed_s, time_s = self._clock.lap()  # names are found behind it: the first ones take long
        now = merge(self._rows(counted))
        rows = sorted(subtract(now, self._before), key=lambda row: -row.total_ns)
        self._before = now
        measured = len(self._options.cpus or cpus.online())
        loss = self._loss()
        hosts = tuple(self._hosts())
        changes, self._hosts_before = subtract_hosts(hosts, self._hosts_before), hosts
        return Result(tuple(rows), elapsed_s, time_s, measured, loss, self._notes, shares, changes)

    def stop(self) -> Result:
        """End, read the work since the start or the last `interval()`, and close.

        Raises:
            KernelError: a map could not be read.
        """
        with self._owned:
            if self._shares is not None:
                self._shares.detach()
            self._links.close()
            settle()
            if self._ring:
                self.last_runs = tuple(self.runs())
            return self.interval()

    def _rows(self, counted: Iterable[tuple[Any, Any]]) -> Iterator[KworkRow]:
        options = self._options
        for key, row in counted:
            name = self._name(key, row)
            if not self._is_wanted(name):
                continue
            yield KworkRow(
                KINDS[key.kind],
                key.id,
                name,
                key.cpu if options.by_cpu else -1,
                row.count,
                row.total_ns,
                row.max_ns,
                row.max_end_ns,
                row.delayed,
                row.delay_ns,
                row.max_delay_ns,
                row.max_delay_end_ns,
                tuple(row.buckets),
                tuple(row.delay_buckets),
                self._queuers(key.stack),
            )

    def _hosts(self) -> Iterator[Host]:
        for key, host in self._object.maps["hosts"].items():
            name = _name_softirq(key.softirq)
            if self._is_wanted(name):
                yield Host(name, key.pid, host.comm, host.total_ns)

    def _name(self, key: Any, row: Any) -> str:
        kind = KINDS[key.kind]
        if kind == "irq":
            return f"{row.name}:{key.id}"
        if kind == "softirq":
            return _name_softirq(key.id)
        return self._function(key.id)

    def _name_function(self, address: int) -> str:
        return spell_kernel_frame(self._symbolizer.kernel([address])[0])

    def _name_stack(self, number: int) -> tuple[str, ...]:
        stack: Any = self._object.maps["stacks"].get(number) if number else None
        if stack is None:
            return ()
        places = self._symbolizer.kernel_stack(stack.addresses[: stack.depth])
        return tuple(spell_kernel_frame(place) for place in places if not is_of_tracepoint(place))

    def _loss(self) -> Loss:
        counts = self._object.globals["losses"]._asdict()
        stacks = stack_maps.sum_up(self._object.maps["stack_stats"])
        counts |= {
            "stacks_full": stacks["stacks_full"] + stacks["stacks_busy"] + stacks["stacks_crowded"],
            "in_flight": len(self._object.maps["working"]),
            "recursion_misses": sum(
                program.info.recursion_misses for program in self._object.programs.values()
            ),
        }
        causes = tuple(_causes(counts))
        if self._shares is not None:
            why = "ns of tasks without room among 10,240 tasks: only their CPUs count them"
            causes += (count_cause("tasks_full", self._shares.count_full(), why),)
        return Loss(causes=causes)

    def close(self) -> None:
        """End it without a result, and release its resources; again is harmless."""
        self._owned.close()


def _name_softirq(number: int) -> str:
    return SOFTIRQS[number] if number < len(SOFTIRQS) else f"softirq {number}"


def _causes(counts: Mapping[str, int]) -> Iterator[Cause]:
    for name, text in _LOSSES.items():
        yield count_cause(name, counts[name], text, name in _NOTES)


def supported_kinds(wanted: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the kinds to measure, and notes about kinds that this kernel cannot show."""
    btf = kernel_btf()
    notes, kinds = [], []
    for kind in wanted or KINDS:
        tracepoint, since = _LATE.get(kind, ("", ""))
        if not tracepoint or btf.find(f"btf_trace_{tracepoint}"):
            kinds.append(kind)
            continue
        why = f"this kernel has no tracepoint {tracepoint}: Linux {since} and later do"
        if wanted:
            raise NotSupportedError(f"measuring {kind}", why)
        notes.append(f"without {kind}: {why}")
    return tuple(kinds), tuple(notes)
