"""A profile of how threads spend their time, at the end and during the run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from purebpf.closable import Closing
from purebpf.measure.sched_trace import Request, ThreadTime, Times
from purebpf.measure.time_loss import about, cost, losses
from purebpf.observe.instruments.stack_maps import MAX_DEPTH
from purebpf.observe.symbols.symbolizer import Symbolizer
from purebpf.results import Profile
from purebpf.results.build.stored_stacks import Stacks, count_truncated
from purebpf.results.shape.hints import hints
from purebpf.results.shape.naming_loss import with_naming
from purebpf.symbols.budget import Budget

if TYPE_CHECKING:
    from purebpf.loader.host.debug_files import Fetch
    from purebpf.measure.stop import HasFileno

__all__ = ["ThreadProfiler"]


class ThreadProfiler(Closing):
    """Traces from when its context is entered until it is stopped or closed.

    Args:
        title: heads the output.
        request: the target and which time.
        command_pid: a child that waits to execute a command (`purebpf.measure.child`).
        fetch: gets debug files that are not on this machine
        (`purebpf.observe.symbols.debuginfod`).

    Attributes:
        budget: the budget of naming; after `budget.stop()` the remaining frames stay unnamed.

    Raises, when it is entered; nothing stays open then:
        NoSuchTargetError, KernelError, NotSupportedError: as `ThreadTime`.
    """

    def __init__(
        self, title: str, request: Request, command_pid: int = 0, fetch: Fetch | None = None
    ) -> None:
        self._title = title
        self._fetch = fetch
        self.budget = Budget()
        self._run = ThreadTime(request, command_pid)
        self._names: Symbolizer | None = None
        self._with_addresses = True  # as in `Symbolizer`
        self._times: Times | None = None

    def __enter__(self) -> Self:
        self._run.__enter__()
        return self

    def close(self) -> None:
        """End it without a result, and release its resources; again is harmless."""
        self._run.close()

    def wait(self, *ends: HasFileno, at_most_s: float | None = None) -> bool:
        """Sleep until the duration is over or one of `ends` is readable; whether it is so."""
        return self._run.wait(*ends, at_most_s=at_most_s)

    def end(self) -> Times:
        """End the tracing, and return its times without names. Again: the same.

        Raises:
            KernelError: a map could not be read.
        """
        if self._times is None:
            self._times = self._run.stop()
        return self._times

    def take(self) -> None:
        """Do nothing: counts stay where they are until they are needed."""

    def last(self, **at_most_s: float) -> Profile:
        """Return the time since the last call; open spans count up to now.

        As `ThreadTime.since_last`.

        Raises:
            KernelError: a map could not be read.
        """
        return self._profile(self._run.since_last(**at_most_s))

    def so_far(self) -> Profile:
        """Return the time since the beginning.

        Raises:
            KernelError: a map could not be read.
        """
        return self._profile(self._run.so_far())

    def _profile(self, times: Times) -> Profile:
        """Return the times in nanoseconds."""
        self._names = self._names or Symbolizer(
            self._run.spaces, fetch=self._fetch, budget=self.budget
        )
        profile = Profile(self._title, unit="ns", about=about(times) | dict(times.about_stacks))
        self._names.python = self._run.python
        self._names.with_addresses = self._with_addresses
        profile.cost = cost(times)
        addresses = {number: trace.addresses for number, trace in times.traces.items()}
        ends = {number: (trace.reason, trace.guessed) for number, trace in times.traces.items()}
        with self._names.batch():
            self._fill(profile, times, Stacks(addresses, self._names, ends))
        profile.name_processes(self._run.process_name)
        truncated = count_truncated(profile.rows(), min(MAX_DEPTH, times.max_depth))
        times = times._replace(stats={**times.stats, "user_truncated": truncated})
        profile.loss = losses(times, self._run.request)
        profile.loss = with_naming(profile.loss, self.budget)
        if self._run.python is not None:
            profile.about |= self._run.python.counts()
            profile.about |= {
                name: value for name, value in times.stats.items() if name.startswith("python_")
            }
        profile.hints = self._hints(profile, self._names)
        if self._run.python is not None:
            profile.loss = self._run.python.with_python(profile.loss, times.stats)
        return profile

    def _hints(self, profile: Profile, names: Symbolizer) -> list[str]:
        """Return advice about names and frames that the profile lacks."""
        lines = hints(profile, names.runtime)
        if self._run.python is not None:
            pids = {row.labels.pid for row in profile.rows()}
            lines += self._run.python.hints(pids)
        return lines

    def _fill(self, profile: Profile, times: Times, stacks: Stacks) -> None:
        """Add the rows."""
        raise NotImplementedError
