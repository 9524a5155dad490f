"""The live part: opens counters, and reads them."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Self

from purebpf.closable import Closing
from purebpf.loader.host import cpus
from purebpf.loader.perf.inheritance import CHILDREN_COUNT, inherited_by_threads
from purebpf.measure.limits import raise_open_files
from purebpf.measure.perf_targets import EventPlace, places
from purebpf.measure.privileges import needing
from purebpf.measure.stop import HasFileno
from purebpf.measure.target_ends import TargetEnds
from purebpf.measure.wait import RunClock
from purebpf.results.model.spelling import count_text
from purebpf.syscall import proc
from purebpf.tools.stat.cgroups import cgroup_name, cgroup_places
from purebpf.tools.stat.counts import Part, Result, add_up, losses
from purebpf.tools.stat.opening import OpenCounter, Opened, open_counters
from purebpf.tools.stat.request import StatOptions

if TYPE_CHECKING:
    from purebpf.tools.stat.programs import ProgramCounts, Times
    from purebpf.tools.stat.shared import SharedCounter

__all__ = ["Counter"]


class Counter(Closing):
    """Counts from when its context is entered until `stop()`; `interval()` reads in between.

    A command's events begin with its execve(2).

    Args:
        options: the target, and which events.
        command_pid: a child that waits to execute a command (`purebpf.measure.child`).

    Raises, when it is entered; nothing stays open then:
        EventError: no event is called that.
        NoSuchTargetError: a process, thread, CPU or cgroup that does not exist.
        KernelError: the kernel refused an event, and why.
    """

    def __init__(self, options: StatOptions, command_pid: int = 0) -> None:
        self._options = options
        self._command_pid = 0 if options.is_of_all else command_pid
        self._has_begun = False
        self._clock = RunClock(options.duration_s, options.interval_s)
        self._owned = ExitStack()
        self._programs: ProgramCounts | None = None
        self._shared: SharedCounter | None = None
        self._counters: tuple[OpenCounter, ...] = ()

    def __enter__(self) -> Self:
        options = self._options
        self._inheritance = self._who_inherits()
        raise_open_files()
        needed = ("CAP_PERFMON", "CAP_BPF", "CAP_SYS_ADMIN") if options.shared else ("CAP_PERFMON",)
        with needing(*needed), ExitStack() as stack:
            if options.shared:
                self._join(stack)
            else:
                self._open(stack)
            self._before = [(0, 0, 0)] * len(self._rows)
            self._ends = stack.enter_context(TargetEnds(options.pids))
            if not options.command:
                self._begin()
            self._owned = stack.pop_all()
        return self

    def _open(self, stack: ExitStack) -> None:
        """Open counters for this session alone."""
        options = self._options
        self._opened = open_counters(
            options.groups,
            self._places(),
            stack,
            of_tasks=options.is_of_tasks,
            fields={**self._inheritance, "enable_on_exec": int(bool(self._command_pid))},
        )
        self._counters = self._opened.counters
        if options.bpf_programs:
            from purebpf.tools.stat.programs import ProgramCounts  # 60 modules of the loader

            self._programs = ProgramCounts(options.bpf_programs, self._counters, stack)
            self._rows = self._programs.rows()
        else:
            self._rows = [(one.number, self._key(one.place)) for one in self._counters]

    def _join(self, stack: ExitStack) -> None:
        """Take part in counters that sessions share; they count processes whole."""
        from purebpf.tools.stat.shared import SharedCounter  # most runs count alone

        options = self._options
        where = self._places()
        if options.pids and options.by != "thread":
            where = [EventPlace(pid, -1) for pid in options.pids]
        self._shared = SharedCounter(
            options.groups,
            where,
            [self._key(place) for place in where],
            threads=bool(options.tids) or options.by == "thread",
            bpffs=options.bpffs,
            stack=stack,
        )
        self._opened = Opened(self._shared.events, (), 0, self._shared.notes)
        self._counters = ()
        self._rows = self._shared.rows()

    def _who_inherits(self) -> dict[str, int]:
        """Threads of processes; of a command, and with `tree`, children, too; not of threads."""
        options = self._options
        if not options.inherit or not options.is_of_tasks or options.tids or options.shared:
            return {}
        if options.pids and not options.tree:
            return inherited_by_threads()
        return {"inherit": 1}

    def _begin(self) -> None:
        if not self._command_pid:
            for opened in self._counters:
                if opened.leads:
                    opened.counter.enable(group=True)
        if self._programs is not None:
            self._programs.start()
        if self._shared is not None:
            self._shared.start()
        self._has_begun = True
        self._clock.start()

    def _places(self) -> list[EventPlace]:
        options = self._options
        if options.for_each_cgroup:
            return cgroup_places(options.for_each_cgroup, options.cpus or cpus.online())
        if options.bpf_programs:
            return [EventPlace(-1, cpu) for cpu in options.cpus or cpus.online()]
        where = places(options, self._command_pid)
        if where[0].pid < 0 or options.cpus or options.by == "cpu":
            return where
        return [EventPlace(pid, -1) for pid in dict.fromkeys(place.pid for place in where)]

    def _key(self, place: EventPlace) -> str:
        cgroup = cgroup_name(place.cgroup) if place.cgroup and self._options.for_each_cgroup else ""
        if self._options.by == "cpu":
            return f"{cgroup}  CPU {place.cpu}".lstrip()
        if self._options.by == "thread":
            return f"{proc.comm(place.pid) or '?'}-{place.pid}"
        return cgroup

    def wait(self, *ends: HasFileno) -> bool:
        """Sleep until it is over: True. False: an interval is, and `interval()` is due."""
        if not self._has_begun:  # the command has just been executed
            self._begin()
        self._clock.next_tick()
        return self._clock.wait(*ends, targets=self._ends)

    @property
    def started_s(self) -> float:
        """When it began to count, by time.monotonic()."""
        return self._clock.started_s

    def interval(self) -> Result:
        """Return the counts since the start, or since the last call of this.

        Raises:
            KernelError: a counter cannot be read.
        """
        elapsed_s, time_s = self._clock.lap()
        parts, now = [], self._read()
        for row, times, before in zip(self._rows, now, self._before, strict=True):
            since = (times[0] - before[0], times[1] - before[1], times[2] - before[2])
            parts.append(Part(*row, *since))
        self._before = now
        source = self._programs or self._shared
        runs = () if self._programs is None else (self._programs.runs,)
        events = (*runs, *self._opened.events)
        counts = tuple(add_up(events, dict.fromkeys(key for _, key in self._rows), parts))
        lost = losses(counts, source.causes() if source else ())
        return Result(counts, elapsed_s, time_s, lost, self._notes())

    def stop(self) -> Result:
        """End, read the counts since the start or the last `interval()`, and close.

        Raises:
            KernelError: a counter cannot be read.
        """
        with self._owned:
            if self._programs is not None:
                self._programs.stop()
            for opened in self._counters:
                if opened.leads:
                    opened.counter.disable(group=True)
            return self.interval()

    def _read(self) -> list[Times]:
        source = self._programs or self._shared
        if source is not None:
            return source.read()
        readings = [opened.counter.read() for opened in self._counters]
        return [(one.value, one.time_enabled_ns, one.time_running_ns) for one in readings]

    def _notes(self) -> tuple[str, ...]:
        notes = self._opened.notes
        if self._inheritance == {"inherit": 1} and self._options.pids and not self._options.tree:
            notes = (*notes, CHILDREN_COUNT)
        if gone := self._opened.gone:
            notes = (*notes, count_text(gone, "threads ended before they had a counter"))
        return notes

    def close(self) -> None:
        """End it without a result, and release its resources; again is harmless."""
        self._owned.close()
