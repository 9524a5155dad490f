"""A run that counts events by user stack: the common parts of `mem` and `lock --userspace`."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from contextlib import ExitStack
from functools import cached_property
from typing import TYPE_CHECKING, Generic, Protocol, Self, TypeVar

from purebpf.closable import Closing
from purebpf.measure import targets, wait
from purebpf.measure.privileges import needing
from purebpf.measure.provenance import origin
from purebpf.measure.stacks.record_feed import RecordFeed
from purebpf.measure.stop import HasFileno
from purebpf.measure.target_ends import TargetEnds, first_pids, follow_descendants
from purebpf.observe.instruments.call_graph import describe_walking
from purebpf.observe.instruments.stack_tracer import StackTracer
from purebpf.observe.processes.process_tracker import Followed
from purebpf.results.build.stored_stacks import Stacks
from purebpf.symbols.budget import Budget
from purebpf.syscall import host_clock

if TYPE_CHECKING:
    from purebpf.loader.host.debug_files import Fetch
    from purebpf.observe.instruments.task_filter import TaskFilter
    from purebpf.observe.symbols.symbolizer import Symbolizer
    from purebpf.observe.unwind.user_stacks import Trace
    from purebpf.symbols.address_spaces import Earlier

__all__ = ["StackFeed", "UserStackSession", "UserStackTarget"]


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


class StackFeed(RecordFeed):
    """Starts a tracer of stacks, and drains it."""

    def __init__(self, tracer: StackTracer, followed: Followed) -> None:
        super().__init__(tracer, followed)
        self._tracer = tracer

    def start(self, pids: Collection[int]) -> None:
        """Start the tracer, and read the mappings of these processes, or of all."""
        self._tracer.start()
        self.drain()
        self._followed.snapshot(pids, self.collect)
        self.drain()

    def drain(self) -> None:
        """Read the records of processes, and finish the pending stacks."""
        self.catch_up()
        self._tracer.drain()


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
        if target.pids and tracer.python is not None:
            tracer.python.interpreters.publish_running(target.pids)
        self._followed = stack.enter_context(Followed(self._command_pid))
        self._feed = StackFeed(tracer, self._followed)
        command = (self._command_pid,) if self._command_pid else ()
        pids = first_pids(target.pids, tree=target.tree)
        self._feed.start(pids or command)

    @property
    def by_tree(self) -> bool:
        """True if processes are followed as they start."""
        return bool(self._command_pid or (self._target.tree and self._target.pids))

    def earlier(self, pid: int, time_ns: int) -> Earlier | None:
        """Return the mappings of a process at a time."""
        return self._followed.spaces.earlier(pid, time_ns)

    def take(self) -> None:
        """Do nothing: counts stay where they are until they are needed."""

    def wait(self, *ends: HasFileno, at_most_s: float | None = None) -> bool:
        """Sleep until it is over: the duration has passed, or one of `ends` is readable.

        Returns:
            Whether it is over; False after `at_most_s` seconds when it is not.
        """
        duration_s, tracer = self._target.duration_s, self._tracer
        python = tracer.python
        over = None if duration_s is None else host_clock.own_s(tracer.started_ns) + duration_s
        pause = None if at_most_s is None else time.monotonic() + at_most_s
        if python is not None and not (self._target.pids or self._command_pid):
            python.interpreters.publish_running(pause=self._feed.collect)
        while True:
            is_over = wait.until(
                over,
                (*ends, self._ends) if self._ends else ends,
                pause=pause,
                sources=self._feed.fds,
                drain=self._feed.drain,
                # a process that has just started becomes an interpreter without saying so
                every_s=python.interpreters.look_again_s if python else None,
            )
            if not is_over:
                return False
            if not (self._ends.drop_ended() and self._ends):
                return True

    def stacks(self, traces: Mapping[int, Trace]) -> Stacks:
        """Stacks by number, named when needed."""
        addresses = {number: trace.addresses for number, trace in traces.items()}
        ends = {number: (trace.reason, trace.guessed) for number, trace in traces.items()}
        return Stacks(addresses, self.symbolizer, ends)

    @cached_property
    def symbolizer(self) -> Symbolizer:
        """Names addresses of the processes that were seen."""
        from purebpf.observe.symbols.symbolizer import Symbolizer

        symbolizer = Symbolizer(self._followed.spaces, fetch=self._fetch, budget=self.budget)
        symbolizer.python = self._tracer.python
        return symbolizer

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
