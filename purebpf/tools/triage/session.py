"""The live part: four tools at once, for as long as was asked."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Self

from purebpf.closable import Closing
from purebpf.measure.latency import Latency
from purebpf.measure.latency import Request as LatencyRequest
from purebpf.measure.stop import HasFileno
from purebpf.symbols.budget import Budget
from purebpf.tools import offcpu, profile, summary
from purebpf.tools.triage.findings import Findings, find

__all__ = ["Triage"]

_ROUND_S = 0.25
"""How often the records of processes are taken in that the second tool follows."""


class Triage(Closing):
    """Measures the whole machine from when its context is entered until `stop()`.

    Raises, when it is entered; nothing stays open then:
        KernelError, NotSupportedError: as `Profiler`, `OffCpu`, `Latency` and `Summary`.
    """

    def __init__(self, duration_s: float, command_pid: int = 0) -> None:  # noqa: ARG002 - no command
        self._profiler = profile.Profiler(profile.Options(duration_s=duration_s))
        self._offcpu = offcpu.OffCpu(offcpu.Options(duration_s=duration_s))
        self._queue = Latency(LatencyRequest("run_queue"))
        self._summary = summary.Summary(summary.Options(errno_summary=True, duration_s=duration_s))
        self._owned = ExitStack()

    @property
    def budgets(self) -> tuple[Budget, ...]:
        """What pays for the names."""
        return self._profiler.budget, self._offcpu.budget

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            for tool in (self._summary, self._queue, self._offcpu, self._profiler):
                stack.enter_context(tool)
            self._owned = stack.pop_all()
        return self

    def wait(self, *ends: HasFileno) -> bool:
        """Sleep until it is over; always True."""
        while not self._profiler.wait(*ends, at_most_s=_ROUND_S):
            self._offcpu.wait(*ends, at_most_s=0.001)
        return True

    def stop(self) -> Findings:
        """End it all, and find what is worth a line.

        Raises:
            KernelError: a map could not be read.
        """
        with self._owned:
            queue, calls = self._queue.stop(), self._summary.stop()
            self._offcpu.end()  # names take time, which is not part of the run
            sampled = self._profiler.stop()
            return find(sampled, self._offcpu.stop(), queue, calls)

    def close(self) -> None:
        """End it without a result, and give back what it holds; again is harmless."""
        self._owned.close()
