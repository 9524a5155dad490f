"""A profile of how threads spend their time, at the end and during the run."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Self

from purebpf.closable import Closing
from purebpf.measure.sched_trace import Request, ThreadTime, Times
from purebpf.measure.stacks.assemble_profile import Steps, assemble_profile, python_counters
from purebpf.measure.time_loss import about, cost, losses
from purebpf.observe.instruments.stack_maps import MAX_DEPTH
from purebpf.results import Profile
from purebpf.symbols.budget import Budget

if TYPE_CHECKING:
    from purebpf.loader.host.debug_files import Fetch
    from purebpf.measure.stop import HasFileno
    from purebpf.observe.symbols.symbolizer import Symbolizer
    from purebpf.results.build.stored_stacks import Stacks

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
        self._with_addresses = True  # as in `Symbolizer`
        self._with_hints = True  # as in `Steps`
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
        run, stats = self._run, times.stats
        profile = Profile(self._title, unit="ns", about=about(times) | dict(times.about_stacks))
        profile.cost = cost(times)
        steps = Steps(
            fill=lambda profile, stacks: self._fill(profile, times, stacks),
            losses=lambda truncated: losses(
                times._replace(stats={**stats, "user_truncated": truncated}), run.request
            ),
            max_depth=min(MAX_DEPTH, times.max_depth),
            python_stats=lambda: python_counters(stats),
            with_hints=self._with_hints,
        )
        return assemble_profile(
            *(profile, steps, times.traces),
            watch=run.watch,
            python=run.python,
            symbolizer=self._symbolizer,
        )

    @cached_property
    def _symbolizer(self) -> Symbolizer:
        symbolizer = self._run.watch.make_symbolizer(self._fetch, self.budget)
        symbolizer.with_addresses = self._with_addresses
        if not self._with_addresses:
            symbolizer.keep_file_ids()
        return symbolizer

    def _fill(self, profile: Profile, times: Times, stacks: Stacks) -> None:
        """Add the rows."""
        raise NotImplementedError
