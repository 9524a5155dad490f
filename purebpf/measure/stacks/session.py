"""A run that counts events by user stack: the common parts of `mem` and `lock --userspace`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import ExitStack
from functools import cached_property
from typing import TYPE_CHECKING, Generic, Protocol, Self, TypeVar

from purebpf.closable import Closing
from purebpf.measure import targets
from purebpf.measure.privileges import needing
from purebpf.measure.process_watch import ProcessWatch, name_stacks
from purebpf.measure.provenance import origin
from purebpf.measure.stacks.started import drain_stacks, start_stacks
from purebpf.measure.stop import HasFileno
from purebpf.measure.target_ends import TargetEnds, first_pids, follow_descendants
from purebpf.observe.instruments.call_graph import describe_walking
from purebpf.observe.instruments.stack_tracer import StackTracer
from purebpf.symbols.budget import Budget
from purebpf.syscall import host_clock

if TYPE_CHECKING:
    from purebpf.loader.host.debug_files import Fetch
    from purebpf.observe.instruments.task_filter import TaskFilter
    from purebpf.observe.symbols.symbolizer import Symbolizer
    from purebpf.observe.unwind.user_stacks import Trace
    from purebpf.results.build.stored_stacks import Stacks
    from purebpf.symbols.address_spaces import Earlier

__all__ = ["UserStackSession", "UserStackTarget"]


class UserStackTarget(targets.Target, Protocol):
    """The target of a trace, its duration, and the command line."""

    @property
    def tree(self) -> bool:
        """True if children of `pids` count."""

    @property
    def duration_s(self) -> float | None:
        """None: until a signal, or until the command or all of `pids` end."""

    @property
    def command(self) -> tuple[str, ...]:
        """The words behind `--`."""


Tracer = TypeVar("Tracer", bound=StackTracer)


class UserStackSession(Closing, ABC, Generic[Tracer]):
    """Traces from when its context is entered until it is closed.

    Args:
        target: whom.
        command_pid: a child that waits to execute `target.command` (`purebpf.measure.child`). It is
            traced from its execve on, with everything it forks.
        fetch: gets debug files that are not on this machine
            (`purebpf.observe.symbols.debuginfod`).

    Attributes:
        budget: the budget of naming; after `budget.stop()` the remaining frames stay unnamed.

    Raises, when it is entered; nothing stays open then:
        NoSuchTargetError: a process, thread or cgroup that does not exist.
        KernelError: the kernel refused a call; the text names it, with advice.
        NotSupportedError: the kernel lacks a required feature.
    """

    _tracer: Tracer

    def __init__(
        self, target: UserStackTarget, command_pid: int = 0, fetch: Fetch | None = None
    ) -> None:
        self._target = target
        self._command_pid = command_pid
        self._fetch = fetch
        self._owned = ExitStack()
        self.budget = Budget()

    @abstractmethod
    def make_tracer(self, whose: TaskFilter) -> Tracer:
        """Load and attach the programs."""

    def __enter__(self) -> Self:
        with needing("CAP_BPF", "CAP_PERFMON"), ExitStack() as stack:
            self._attach(stack)
            self._owned = stack.pop_all()
        return self

    def _attach(self, stack: ExitStack) -> None:
        target = self._target
        with targets.make_task_filter(target, command_pid=self._command_pid) as whose:
            self._tracer = tracer = self.make_tracer(whose)
            stack.enter_context(tracer)
        if target.tree and target.pids:
            follow_descendants(target.pids, tracer.follow)
        self._ends = stack.enter_context(TargetEnds(target.pids))
        pids = first_pids(target.pids, tree=target.tree)
        self._watch = stack.enter_context(ProcessWatch(tracer, pids, self._command_pid))
        command = (self._command_pid,) if self._command_pid else ()
        start_stacks(tracer, self._watch, pids or command)

    @property
    def by_tree(self) -> bool:
        """True if processes are followed as they start."""
        return bool(self._command_pid or (self._target.tree and self._target.pids))

    def earlier(self, pid: int, time_ns: int) -> Earlier | None:
        """Return the mappings of a process at a time."""
        return self._watch.earlier(pid, time_ns)

    def wait(self, *ends: HasFileno, at_most_s: float | None = None) -> bool:
        """Sleep until it is over: the duration has passed, or one of `ends` is readable.

        Returns:
            Whether it is over; False after `at_most_s` seconds when it is not.
        """
        duration_s, tracer = self._target.duration_s, self._tracer
        over = None if duration_s is None else host_clock.own_s(tracer.started_ns) + duration_s
        return self._watch.wait(
            ends, self._drain, over=over, at_most_s=at_most_s, targets=self._ends
        )

    def _drain(self) -> None:
        drain_stacks(self._tracer, self._watch)

    def stacks(self, traces: Mapping[int, Trace]) -> Stacks:
        """Stacks by number, named when needed."""
        return name_stacks(traces, self.symbolizer)

    @cached_property
    def symbolizer(self) -> Symbolizer:
        """Names addresses of the processes that were seen."""
        return self._watch.make_symbolizer(self._fetch, self.budget)

    def about(self, stats: Mapping[str, int]) -> dict[str, object]:
        """Return the way of walking stacks, the machine, the duration, and the targets that
        ended.
        """
        tracer = self._tracer
        about = describe_walking(tracer.call_graph, tracer.walking, stats)
        about |= origin((tracer.ended_ns - tracer.started_ns) / 1e9)
        if self._command_pid:
            about["command"] = list(self._target.command)
        if self._ends.ended:
            about["ended"] = list(self._ends.ended)
        return about

    def close(self) -> None:
        """End it without a result, and release its resources; again is harmless."""
        self._owned.close()
