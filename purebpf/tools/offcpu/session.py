"""The live part: traces waits, and makes a profile of them."""

from __future__ import annotations

from contextlib import closing

from purebpf.loader.host.debug_files import Fetch
from purebpf.measure.requests import narrow
from purebpf.measure.sched_trace import Request, Times
from purebpf.measure.thread_profiler import ThreadProfiler
from purebpf.results import Profile
from purebpf.results.build.offcpu_rows import fill, merge_spans, row
from purebpf.results.build.stored_stacks import Stacks
from purebpf.tools.offcpu.request import OffCpuOptions, title

__all__ = ["OffCpu"]


class OffCpu(ThreadProfiler):
    """Traces from when its context is entered until `stop()`.

    Args:
        options: the target and which time.
        command_pid: a child that waits to execute `options.command` (`purebpf.measure.child`).
        fetch: gets debug files that are not on this machine
            (`purebpf.observe.symbols.debuginfod`).

    Raises, when it is entered; nothing stays open then:
        NoSuchTargetError, KernelError, NotSupportedError: as `ThreadTime`.
    """

    def __init__(
        self, options: OffCpuOptions, command_pid: int = 0, fetch: Fetch | None = None
    ) -> None:
        super().__init__(title(options), _request(options), command_pid, fetch)
        self._options = options

    def stop(self) -> Profile:
        """End the tracing, name everything, and close.

        Raises:
            KernelError: a map could not be read.
        """
        with closing(self._run):
            return self._profile(self.end())

    def _fill(self, profile: Profile, times: Times, stacks: Stacks) -> None:
        options, cgroup_of = self._options, self._run.watch.followed.cgroups.of
        spans, singles = times.spans, times.singles
        if options.inflight:
            spans, singles = {place: span for place, span in spans.items() if place.is_open}, []
        if options.one_by_one:
            for place, span in singles:
                profile.add_row(row(place, span, stacks, cgroup_of, is_split=options.waker))
        else:
            spans = merge_spans([*spans.items(), *singles])
        fill(profile, spans, stacks, cgroup_of, is_split=options.waker)


def _request(options: OffCpuOptions) -> Request:
    return narrow(
        Request,
        options,
        defaults=("on_cpu", "frequency", "ring_size"),
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
    )
