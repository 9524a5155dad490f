"""The live part: what to trace, and a profile of what was found."""

from __future__ import annotations

from contextlib import closing
from typing import NamedTuple, Self

from purebpf.cli.stop import HasFileno
from purebpf.cli.thread_time import Request, ThreadTime
from purebpf.cli.time_loss import about, cost, losses
from purebpf.closing import Closing
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

    Raises, when it is entered; nothing stays open then:
        NoSuchTargetError, KernelError, NotSupportedError: as `ThreadTime`.
    """

    def __init__(self, options: Options, command_pid: int = 0) -> None:
        self._options = options
        self._run = ThreadTime(_request(options), command_pid)

    def __enter__(self) -> Self:
        self._run.__enter__()
        return self

    def close(self) -> None:
        """End it without a result, and give back what it holds; again is harmless."""
        self._run.close()

    def wait(self, *ends: HasFileno) -> None:
        """Sleep until the duration is over or one of `ends` is readable."""
        self._run.wait(*ends)

    def stop(self) -> Found:
        """End the tracing, name everything, and close.

        Raises:
            KernelError: a map could not be read.
        """
        with closing(self._run):
            times = self._run.stop()
            symbolizer = Symbolizer(self._run.spaces)
            stacks = Stacks(times.addresses, symbolizer)
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
            profile.hints = hints(profile, symbolizer.runtime)
            return Found(profile, threads(times.spans))


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
