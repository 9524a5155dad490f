"""The live part: what to trace, and a profile of what was found."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Self

from purebpf.cli.stop import HasFileno
from purebpf.cli.thread_time import Request, ThreadTime, Times
from purebpf.cli.time_loss import about, cost, losses
from purebpf.closing import Closing
from purebpf.kernel.symbolizer import Symbolizer
from purebpf.offcpu.options import Options, title
from purebpf.report import Profile
from purebpf.report.hints import hints
from purebpf.report.spans import fill, merged, row
from purebpf.report.stacks import Stacks

if TYPE_CHECKING:
    from purebpf.wire.perf_data_writer import Target
    from purebpf.wire.perf_records import Record

__all__ = ["OffCpu"]

_ONE_BY_ONE = ("json", "chrome", "perf.data")
"""Formats that date each long wait."""


class OffCpu(Closing):
    """Traces from when its context is entered until `stop()`.

    Args:
        options: whose time and which; how to print it does not matter here, but for those
            formats that have the long sleeps one by one.
        command_pid: a child that waits to execute `options.command` (`purebpf.cli.child`).

    Raises, when it is entered; nothing stays open then:
        NoSuchTargetError, KernelError, NotSupportedError: as `ThreadTime`.
    """

    def __init__(self, options: Options, command_pid: int = 0) -> None:
        self._options = options
        self._records: list[Record] = []
        also = self._records.append if options.format == "perf.data" else None
        self._run = ThreadTime(_request(options), command_pid, also)

    def __enter__(self) -> Self:
        self._run.__enter__()
        if self._options.format == "perf.data":
            from purebpf.offcpu import perf_data

            self._records += perf_data.before(self._options.pids)
        return self

    def close(self) -> None:
        """End it without a result, and give back what it holds; again is harmless."""
        self._run.close()

    def wait(self, *ends: HasFileno) -> None:
        """Sleep until the duration is over or one of `ends` is readable."""
        self._run.wait(*ends)

    def write(self, file: Target, profile: Profile) -> None:
        """Write what `stop` returned as perf.data; for the format of this name.

        Raises:
            KernelError: it could not be written.
        """
        from purebpf.offcpu import perf_data

        perf_data.write(file, profile, self._records)

    def stop(self) -> Profile:
        """End the tracing, name everything, and close.

        Raises:
            KernelError: a map could not be read.
        """
        with closing(self._run):
            return self._profile(self._run.stop())

    def _profile(self, times: Times) -> Profile:
        options = self._options
        symbolizer = Symbolizer(self._run.spaces)
        stacks = Stacks(times.addresses, symbolizer)
        profile = Profile(title(options), unit="ns", about=about(times))
        profile.loss = losses(times, self._run.request)
        profile.cost = cost(times)
        spans, singles = times.spans, times.singles
        if options.inflight:
            spans, singles = {place: span for place, span in spans.items() if place.is_open}, []
        if options.format in _ONE_BY_ONE:
            for place, span in singles:
                profile.add_row(row(place, span, stacks, self._run.cgroup, is_split=options.waker))
        else:
            spans = merged([*spans.items(), *singles])
        fill(profile, spans, stacks, self._run.cgroup, is_split=options.waker)
        profile.hints = hints(profile, symbolizer.runtime)
        return profile


def _request(options: Options) -> Request:
    return Request(
        pids=options.pids,
        tids=options.tids,
        cpus=options.cpus,
        cgroup=options.cgroup,
        user_threads=not options.kernel_threads_only,
        kernel_threads=not options.user_threads_only,
        user_stacks=not options.kernel_stacks_only,
        kernel_stacks=not options.user_stacks_only,
        states=options.wanted_states,
        threshold_ns=round(options.threshold_ms * 1e6),
        min_ns=1000 * options.min_us,
        max_ns=None if options.max_us is None else 1000 * options.max_us + 999,
        split=options.waker,
        wakers=options.waker,
        duration_s=options.duration_s,
        hash_storage_size=options.hash_storage_size,
        stack_storage_size=options.stack_storage_size,
    )
