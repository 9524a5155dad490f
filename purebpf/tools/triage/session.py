"""The live part: one measurement of the whole machine, as facts.

Samples say where CPU time goes, looks at sleeping threads where they wait, a program without stacks
why, how often and for whom. Beside them, page faults and growth by stack, and counters of /proc and
cgroups before and after. Names are looked up after the end.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from typing import Self

from purebpf.closable import Closing
from purebpf.errors import KernelError, NotSupportedError
from purebpf.findings.facts import Activity, Facts, Process, WaitSum
from purebpf.measure.blocked_threads import blocked_threads, descriptors
from purebpf.measure.file_locks import file_locks
from purebpf.measure.python_locks import python_lock_holders
from purebpf.measure.stop import HasFileno
from purebpf.measure.targets import NoSuchTargetError, PidNamespace
from purebpf.measure.thread_numbers import own_numbers
from purebpf.observe.instruments.wait_reasons import WaitReasons, call_name
from purebpf.results import Profile
from purebpf.results.model.profile import Row
from purebpf.symbols.budget import Budget
from purebpf.syscall import proc
from purebpf.tools import mem, profile
from purebpf.tools.triage.activities import cpu_times, memory_use, scale_of, waiting_times
from purebpf.tools.triage.counters import machine_counters, read_cgroups, since
from purebpf.tools.triage.file_systems import FileSystemWatch
from purebpf.tools.triage.goroutine_watch import GoroutineWatch
from purebpf.tools.triage.inlined_frames import with_inlined
from purebpf.tools.triage.java_heaps import JavaHeapWatch
from purebpf.tools.triage.java_monitors import java_monitors
from purebpf.tools.triage.process_counters import (
    ProcessCounters,
    living,
    mark_ended,
    uses_new_pages,
)
from purebpf.tools.triage.socket_watch import SocketWatch
from purebpf.tools.triage.task_watch import TaskWatch
from purebpf.tools.triage.unanswered import UnansweredWatch
from purebpf.tools.triage.unix_sockets import UnixWatch

__all__ = ["Triage"]

_FREQUENCY = 99
_LOOKS = 10
"""A second, at most."""
_SHARE, _LONGEST_S = 0.04, 0.7
"""Of a CPU, for looks; the longest time between two, as few looks tell nothing."""
_ROUND_S = 0.25
"""How often the records of processes are taken in."""
_ATTEMPTS = 3
"""To trace processes that may end at any moment."""
_MOMENT_S = 0.001
"""The shortest sleep."""
_TICK_S = 1.0
"""How often counters in /proc are read."""
_TICKS_OF_GOROUTINES = 2
"""How many ticks there are to a look at goroutines."""
_LEAST_SAMPLES = 5
"""Of a process whose functions matter."""
_LEAST_CPU_S = 0.03
"""Of a process that may have so many samples."""
_FIRST_PID = 1
_HIDDEN = (
    "other users' processes: /proc does not show them, as it is mounted with hidepid. "
    "Run it as root"
)
_BEFORE_MEMORY, _LATEST_MEMORY = 0.25, 0.7
"""The parts of the time between which the processes are chosen whose page faults are traced."""


class Triage(Closing):
    """Measures the whole machine from when its context is entered until `stop()`.

    Attributes:
        profiles: after `stop`, each with its name and unit, for their losses.

    Raises, when it is entered; nothing stays open then:
        KernelError, NotSupportedError: as `WindowProfiler`. `Facts.missing` has the other data that
            cannot be had here.
    """

    def __init__(self, duration_s: float, command_pid: int = 0) -> None:  # noqa: ARG002 - no command
        self._duration_s = duration_s
        options = profile.ProfileOptions(frequency=_FREQUENCY, by_thread=True, python_lines=True)
        self._profiler = profile.WindowProfiler(options)
        self._memory: mem.Memory | None = None
        self._has_chosen = False
        self._ticks = 0
        self._reasons: WaitReasons | None = None
        self._owned = ExitStack()
        self._own = frozenset((os.getpid(),))
        self._missing: list[str] = [_HIDDEN] if proc.hides(_FIRST_PID) else []
        self.profiles: list[tuple[str, Profile, str]] = []

    @property
    def budgets(self) -> tuple[Budget, ...]:
        """The budgets of naming."""
        memory = self._memory
        return (self._profiler.budget, *((memory.budget,) if memory else ()))

    @property
    def left_s(self) -> float:
        """The remaining time."""
        return max(0.0, self._started_s + self._duration_s - time.monotonic())

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            stack.enter_context(self._profiler)
            self._reasons = self._try_reasons(stack)
            self._profiler.sample_waits(_LOOKS, by_thread=True, share=_SHARE, longest_s=_LONGEST_S)
            self._cgroups, self._counters = read_cgroups(), machine_counters()
            self._processes, self._sockets = ProcessCounters(self._own), SocketWatch()
            self._unanswered, self._unix = UnansweredWatch(), UnixWatch()
            self._file_systems = FileSystemWatch()
            self._goroutines = GoroutineWatch(self._processes.exe, self._profiler.budget)
            self._java_heaps = JavaHeapWatch(self._runs_java)
            self._java_heaps.tick(self._processes.pids)
            self._tasks = stack.enter_context(TaskWatch(self._processes.exe))
            self._owned = stack.pop_all()
        self._started_s = self._ticked_s = self._asked_s = time.monotonic()
        if self._reasons is not None:
            self._reasons.start()
        return self

    def _trace_memory(self, part: float) -> None:
        """Trace the page faults of processes that have many: each costs 6 us."""
        pids = self._processes.using_new_pages(part)
        if pids:
            self._has_chosen = True
            self._memory = self._try_memory(pids)

    def _try_memory(self, pids: tuple[int, ...]) -> mem.Memory | None:
        for _ in range(_ATTEMPTS):
            pids = living(pids)
            options = mem.MemOptions(malloc=False, python_lines=True, pids=pids)
            try:
                return self._owned.enter_context(mem.Memory(options)) if pids else None
            except NoSuchTargetError:  # a process ended in this moment
                continue
            except (KernelError, NotSupportedError) as error:
                self._missing.append(f"page faults and growth by function: {error}")
                break
        return None

    def _try_reasons(self, stack: ExitStack) -> WaitReasons | None:
        try:
            return stack.enter_context(WaitReasons(PidNamespace.own()))
        except (KernelError, NotSupportedError) as error:
            self._missing.append(f"system calls, and the peers of waits: {error}")
            return None

    def wait(self, *ends: HasFileno) -> bool:
        """Sleep for a moment; True when it is over or one of `ends` is readable."""
        profiler = self._profiler
        moment_s = min(_ROUND_S, self.left_s, profiler.looks_at_s - time.monotonic())
        if profiler.wait(*ends, at_most_s=max(_MOMENT_S, moment_s)):
            return True
        self._ask_connections()
        profiler.look_if_due()  # seconds, on a machine without a free CPU
        self._ask_connections()
        if self._memory is not None:
            self._memory.wait(at_most_s=_MOMENT_S)
        now_s = time.monotonic()
        if now_s - self._ticked_s >= _TICK_S:
            self._tick(now_s - self._ticked_s)
            self._ticked_s = now_s
        return not self.left_s

    def _ask_connections(self) -> None:
        now_s = time.monotonic()
        if now_s - self._asked_s >= _ROUND_S:
            self._unanswered.tick()
            self._unix.tick()
            self._asked_s = now_s

    def _tick(self, elapsed_s: float) -> None:
        if self._reasons is not None:
            self._reasons.thin_out(elapsed_s)
        self._processes.tick()
        self._sockets.tick()
        self._file_systems.tick()
        self._java_heaps.tick(self._processes.pids)
        self._ticks += 1
        if self._ticks % _TICKS_OF_GOROUTINES == 1:
            self._look_at_coroutines()
        part = 1 - self.left_s / self._duration_s if self._duration_s else 1.0
        if not self._has_chosen and _BEFORE_MEMORY <= part < _LATEST_MEMORY:
            self._trace_memory(part)

    def _look_at_coroutines(self) -> None:
        self._goroutines.tick(self._processes.threads)
        self._tasks.tick(lambda: self._processes.pids)

    def stop(self) -> Facts:
        """End it all, and combine the observations.

        Raises:
            KernelError: a map could not be read.
        """
        with self._owned:
            elapsed_s = time.monotonic() - self._started_s
            self._look_at_coroutines()
            if self._reasons is not None:
                self._reasons.stop()
            pids = self._processes.pids
            blocked = tuple(blocked_threads(pids))
            counters = {
                name: value - self._counters.get(name, 0.0)
                for name, value in machine_counters().items()
            }
            processes, threads = self._processes.finish(elapsed_s)
            self._sockets.tick()
            self._file_systems.tick()
            self._unix.tick()
            facts = Facts(
                elapsed_s,
                os.cpu_count() or 1,
                processes=processes,
                threads=threads,
                blocked=blocked,
                file_locks=tuple(file_locks()),
                sockets=self._sockets.finish(),
                segments=self._sockets.segments(),
                goroutines=(*self._goroutines.finish(), *self._tasks.finish()),
                unanswered=self._unanswered.finish(),
                held=self._unanswered.held(),
                stalled=self._unanswered.stalled(),
                file_systems=self._file_systems.finish(),
                cgroups=since(read_cgroups(), self._cgroups),
                counters=counters,
                descriptors=descriptors(process.pid for process in processes),
                unix_peers=self._unix.peers,
                unix_names=self._unix.names,
                lock_holders=python_lock_holders(blocked, self._processes.exe),
                java_heaps=self._java_heaps.finish(),
                monitors=tuple(java_monitors(filter(self._runs_java, pids))),
            )
            facts = self._with_stacks(facts)
            return self._with_reasons(facts)._replace(
                processes=mark_ended(facts.processes),  # naming takes seconds
                missing=tuple(self._missing),
                own_cpu_s=time.process_time(),
            )

    def _runs_java(self, pid: int) -> bool:
        return self._processes.exe(pid).endswith("/java")

    def _with_stacks(self, facts: Facts) -> Facts:
        waits = self._profiler.waits()
        busy = {process.pid for process in facts.processes if process.cpu_s >= _LEAST_CPU_S}
        samples = self._profiler.window(is_last=True, least=_LEAST_SAMPLES, pids=busy)
        activities: list[Activity] = [
            *cpu_times(
                self._rows(samples),
                scale_of(samples, facts.elapsed_s) / _FREQUENCY,
                self._own,
            ),
            *waiting_times(
                self._rows(waits), scale_of(waits, facts.elapsed_s), call_name, self._own
            ),
        ]
        growing = {process.pid for process in facts.processes if _uses_new_pages(process)}
        memory = self._memory.stop(growing) if self._memory is not None else None
        self.profiles = [("samples", samples, "samples"), ("waits", waits, "looks")]
        if memory is not None:
            self.profiles.append(("faults", memory.faults, "faults"))
        use = memory and memory_use(self._rows(memory.faults), self._rows(memory.grown), self._own)
        return facts._replace(activities=tuple(activities), memory=use or ())

    def _rows(self, profile: Profile) -> Iterator[Row]:
        return with_inlined(profile.rows(), self._goroutines.programs)

    def _with_reasons(self, facts: Facts) -> Facts:
        reasons = self._reasons
        if reasons is None:
            return facts
        return facts._replace(
            waits=tuple(_with_owners(reasons.waits())),
            wakers=tuple(reasons.wakers()),
            calls=tuple(reasons.calls()),
            paths=tuple(reasons.paths()),
            connects=tuple(reasons.connects()),
            starts=tuple(reasons.starts()),
            ends=tuple(reasons.ends()),
            signals=tuple(reasons.signals()),
        )

    def close(self) -> None:
        """End it without a result, and release its resources; again is harmless."""
        self._owned.close()


def _with_owners(waits: Iterable[WaitSum]) -> Iterator[WaitSum]:
    """Yield the waits, with the owners of locks as we number them, not as a container does."""
    numbers: dict[int, dict[int, int]] = {}
    for one in waits:
        if one.owner and one.pid not in numbers:
            numbers[one.pid] = own_numbers(one.pid)
        seen = numbers.get(one.pid) if one.owner else None
        yield one._replace(owner=seen.get(one.owner, 0)) if seen else one


def _uses_new_pages(process: Process) -> bool:
    """Return True if the functions that use new memory matter."""
    grown = process.anon[-1] - process.anon[0] if process.anon else 0
    return uses_new_pages(process.minor_faults, grown)
