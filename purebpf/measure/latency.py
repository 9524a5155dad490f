"""The lengths of waits in the run queue, turns on the CPU or times off it: one run of `Spans`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Self

from purebpf.closable import Closing
from purebpf.loader.host.cgroups import paths_by_id
from purebpf.measure import targets
from purebpf.measure.options import TargetOptions
from purebpf.measure.privileges import needing
from purebpf.measure.stop import HasFileno
from purebpf.measure.target_ends import follow_descendants
from purebpf.measure.wait import RunClock
from purebpf.observe.instruments.latency_histograms import Spans
from purebpf.results import Loss, count_cause
from purebpf.results.shape.distribution import Distribution
from purebpf.tuples import NamedTuple

__all__ = ["Interval", "Latency", "Request", "losses"]

_NOTES = frozenset({"open_at_start", "in_flight"})
"""Causes that belong to any run: the histograms are complete all the same."""


class Request(TargetOptions):
    """The measure, and its targets. Empty tuples and None mean: no restriction.

    `measure` is one of `purebpf.observe.instruments.latency_histograms.MEASURES`, `by` one of its
    GROUPINGS, with room for as many `groups`. `interval_s` None: one interval, which ends with the
    run; else at most so many `times`.
    """

    measure: str
    by: str = ""
    unit_ns: int = 1000
    groups: int = 1024
    include_idle: bool = False
    interval_s: float | None = None
    times: int | None = None


class Interval(NamedTuple):
    """The counts of an interval; `loss` is the whole run's so far."""

    distributions: Sequence[Distribution]
    elapsed_s: float
    loss: Loss


class Latency(Closing):
    """Measures from when its context is entered until `stop()`; `interval()` reads in between.

    Args:
        request: the measure and its targets.
        command_pid: a child that waits to execute a command (`purebpf.measure.child`).

    Raises, when it is entered; nothing stays open then:
        NoSuchTargetError: a process, thread or cgroup that does not exist.
        KernelError, NotSupportedError: as `Spans`.
    """

    def __init__(self, request: Request, command_pid: int = 0) -> None:
        self._request = request
        self._command_pid = command_pid
        self._before: Mapping[int, tuple[int, list[int]]] = {}
        self._waits = 0
        self._clock = RunClock(None, request.interval_s)
        self._owned = ExitStack()

    def __enter__(self) -> Self:
        request = self._request
        with needing("CAP_BPF", "CAP_PERFMON"), ExitStack() as stack:
            with targets.make_task_filter(
                request, command_pid=self._command_pid, tree=request.tree
            ) as whose:
                self._spans = Spans(
                    request.measure,
                    by=request.by,
                    unit_ns=request.unit_ns,
                    groups=request.groups,
                    whose=whose,
                    include_idle=request.include_idle,
                )
                stack.enter_context(self._spans)
            self._owned = stack.pop_all()
        self._spans.start()
        if request.tree and whose.pids:
            follow_descendants(whose.pids, self._spans.follow)
        self._clock.start()
        return self

    def wait(self, *ends: HasFileno) -> bool:
        """Sleep until the interval is over, or one of `ends` is readable.

        Returns:
            Whether the run is over; False when only the interval is.
        """
        self._waits += 1
        self._clock.next_tick()
        return self._clock.wait(*ends) or self._waits == self._request.times

    def interval(self) -> Interval:
        """Return the counts since the start or the last call.

        Raises:
            KernelError: a map could not be read.
        """
        spans, request = self._spans, self._request
        now = spans.read()
        elapsed_s, _ = self._clock.lap()
        cgroups = paths_by_id() if request.by == "cgroup" else {}
        distributions = spans.distributions(now, self._before, cgroups)
        self._before = now
        return Interval(distributions, elapsed_s, losses(spans.stats(), groups=request.groups))

    def stop(self) -> Interval:
        """End, read the counts since the last interval, and close.

        Raises:
            KernelError: a map could not be read.
        """
        with self._owned:
            self._spans.stop()
            return self.interval()

    def close(self) -> None:
        """End it without a result, and release its resources; again is harmless."""
        self._owned.close()


def losses(stats: Mapping[str, int], *, groups: int) -> Loss:
    """Return every cause, zero or not; `stats` is the result of `Spans.stats()`."""
    what = {
        "open_at_start": "started before the run",
        "in_flight": "were in flight when it ended",
        "rows_full": f"were dropped: the map of {groups} histograms was full. Raise --groups",
        "names_full": "names were dropped, as the map of groups was full. Raise --groups",
        "switches_missed": "context switches were not traced: the times that they end are missing",
        "storage_failed": "times the kernel had no memory for the state of a task",
        "clock_backwards": "had a clock that ran backwards; they count as 0 ns",
        "outside_namespace": "times a task of a group had no ID in this PID namespace",
        "recursion_misses": "recursion misses: the kernel does not run a program inside itself",
    }
    return Loss(
        causes=tuple(
            count_cause(name, stats[name], text, name in _NOTES) for name, text in what.items()
        )
    )
