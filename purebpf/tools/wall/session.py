"""The live part: traces threads, and makes a profile of their time."""

from __future__ import annotations

from contextlib import closing

from purebpf.loader.host.debug_files import Fetch
from purebpf.measure.requests import narrow
from purebpf.measure.sched_trace import Request, Times
from purebpf.measure.thread_profiler import ThreadProfiler
from purebpf.results import Profile
from purebpf.results.build.stored_stacks import Stacks
from purebpf.tools.wall.request import WallOptions, title
from purebpf.tools.wall.threads import Thread, fill, threads
from purebpf.tuples import NamedTuple

__all__ = ["Wall", "WallResult"]


class WallResult(NamedTuple):
    """The profile, in nanoseconds, and each thread's share of the wall clock."""

    profile: Profile
    threads: list[Thread]


class Wall(ThreadProfiler):
    """Traces from when its context is entered until `stop()`.

    Args:
        options: the target; how to print it does not matter here.
        command_pid: a child that waits to execute `options.command` (`purebpf.measure.child`).
        fetch: gets debug files that are not on this machine
            (`purebpf.observe.symbols.debuginfod`).

    Raises, when it is entered; nothing stays open then:
        NoSuchTargetError, KernelError, NotSupportedError: as `ThreadTime`.
    """

    def __init__(
        self, options: WallOptions, command_pid: int = 0, fetch: Fetch | None = None
    ) -> None:
        super().__init__(title(options), _request(options), command_pid, fetch)
        self._frequency = options.frequency

    def stop(self) -> WallResult:
        """End the tracing, name everything, and close.

        Raises:
            KernelError: a map could not be read.
        """
        with closing(self._run):
            times = self.end()
            return WallResult(self._profile(times), threads(times.spans))

    def _fill(self, profile: Profile, times: Times, stacks: Stacks) -> None:
        event, cgroup_of = self._run.event, self._run.watch.followed.cgroups.of
        profile.about |= {
            "event": event.name if event else "",
            "frequency_hz": self._frequency,
            "samples": sum(times.samples.values()),
            "unsampled_ns": fill(profile, times.spans, times.samples, stacks, cgroup_of),
        }


def _request(options: WallOptions) -> Request:
    return narrow(
        Request,
        options,
        defaults=("threshold_ns", "min_ns", "max_ns", "wakers", "ring_size"),
        user_threads=not options.kernel_threads_only,
        kernel_threads=not options.user_threads_only,
        user_stacks=not options.kernel_stacks_only,
        kernel_stacks=not options.user_stacks_only,
        states="RSDITtPWG",
        split=True,
        on_cpu=True,
    )
