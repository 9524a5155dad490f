"""The live part: what to trace, and a profile of what was found."""

from __future__ import annotations

from contextlib import closing
from typing import NamedTuple, Self

from purebpf.cli.stop import HasFileno
from purebpf.cli.thread_time import Request, ThreadTime, Times
from purebpf.cli.time_loss import about, cost, losses
from purebpf.closing import Closing
from purebpf.kernel.debug_files import Fetch
from purebpf.kernel.symbolizer import Symbolizer
from purebpf.report import Profile
from purebpf.report.hints import hints
from purebpf.report.stacks import Stacks
from purebpf.wall.options import Options, title
from purebpf.wall.threads import Thread, fill, threads

__all__ = ["Found", "Wall"]


class Found(NamedTuple):
    """The profile, in nanoseconds, and each thread's share of the wall clock."""

    profile: Profile
    threads: list[Thread]


class Wall(Closing):
    """Traces from when its context is entered until `stop()`.

    Args:
        options: whose time; how to print it does not matter here.
        command_pid: a child that waits to execute `options.command` (`purebpf.cli.child`).
        fetch: gets debug files that are not on this machine (`purebpf.kernel.debuginfod`).

    Raises, when it is entered; nothing stays open then:
        NoSuchTargetError, KernelError, NotSupportedError: as `ThreadTime`.
    """

    def __init__(self, options: Options, command_pid: int = 0, fetch: Fetch | None = None) -> None:
        self._options = options
        self._fetch = fetch
        self._run = ThreadTime(_request(options), command_pid)
        self._names: Symbolizer | None = None

    def __enter__(self) -> Self:
        self._run.__enter__()
        return self

    def close(self) -> None:
        """End it without a result, and give back what it holds; again is harmless."""
        self._run.close()

    def wait(self, *ends: HasFileno, at_most_s: float | None = None) -> bool:
        """Sleep until the duration is over or one of `ends` is readable; whether it is so."""
        return self._run.wait(*ends, at_most_s=at_most_s)

    def take(self) -> None:
        """Nothing: what there is stays where it is until it is asked for."""

    def last(self) -> Profile:
        """What passed since this was last called; what is not over counts up to now.

        Raises:
            KernelError: a map could not be read.
        """
        return self._profile(self._run.since_last())

    def so_far(self) -> Profile:
        """What passed since the beginning.

        Raises:
            KernelError: a map could not be read.
        """
        return self._profile(self._run.so_far())

    def stop(self) -> Found:
        """End the tracing, name everything, and close.

        Raises:
            KernelError: a map could not be read.
        """
        with closing(self._run):
            times = self._run.stop()
            return Found(self._profile(times), threads(times.spans))

    def _profile(self, times: Times) -> Profile:
        self._names = self._names or Symbolizer(self._run.spaces, fetch=self._fetch)
        stacks = Stacks(times.addresses, self._names)
        profile = Profile(title(self._options), unit="ns", about=about(times))
        profile.loss = losses(times, self._run.request)
        profile.cost = cost(times)
        event = self._run.event
        profile.about |= {
            "event": event.name if event else "",
            "frequency_hz": self._options.frequency,
            "samples": sum(times.samples.values()),
            "unsampled_ns": fill(profile, times.spans, times.samples, stacks, self._run.cgroup),
        }
        profile.hints = hints(profile, self._names.runtime)
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
        states="RSDITtPW",
        split=True,
        on_cpu=True,
        frequency=options.frequency,
        duration_s=options.duration_s,
        hash_storage_size=options.hash_storage_size,
        stack_storage_size=options.stack_storage_size,
    )
