"""Off-CPU and run queue time of one window, traced in a thread beside the samples.

Each window is a run of its own: it begins with empty maps, so nothing grows from one to the next,
and a wait that lasts through several windows counts in each with the part that passed in it.
"""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

from purebpf.agent.config import Kind
from purebpf.closable import Closing
from purebpf.errors import PurebpfError
from purebpf.measure.sched_trace import Request, Times
from purebpf.measure.thread_profiler import ThreadProfiler
from purebpf.results.build.offcpu_rows import fill, merge_spans

if TYPE_CHECKING:
    from purebpf.kernel.symbolize.symbolizer import Symbolizer
    from purebpf.results import Profile
    from purebpf.results.build.stored_stacks import Stacks

__all__ = ["WaitProfiler", "WaitWindow"]


class WaitProfiler(ThreadProfiler):
    """Traces where threads wait: blocked, or for a CPU.

    Args:
        kind: section [wait] of the configuration.

    Raises, when it is entered; nothing stays open then: as `ThreadProfiler`.
    """

    def __init__(self, kind: Kind) -> None:
        request = Request(
            states="SDTtPWGR",
            kernel_threads=False,
            min_ns=1000 * kind.min_us,
            split=True,
            call_graph=kind.call_graph,
            python=kind.python,
        )
        super().__init__("waits of all threads", request)

    def stop(self) -> Profile:
        """End the tracing, and name everything; `close` gives back what it holds.

        Raises:
            KernelError: a map could not be read.
        """
        return self._profile(self._run.stop())

    def cgroup_text(self, pid: int) -> str:
        """What /proc/PID/cgroup of a process said; "" if it is unknown."""
        return self._run.cgroup_text(pid)

    def _hints(self, profile: Profile, names: Symbolizer) -> list[str]:  # noqa: ARG002
        """None: no one reads those of a window, and to look for them takes 2 % of all time."""
        return []

    def _fill(self, profile: Profile, times: Times, stacks: Stacks) -> None:
        spans = merge_spans([*times.spans.items(), *times.singles])
        fill(profile, spans, stacks, self._run.cgroup, is_split=True)


class WaitWindow(Closing):
    """Traces from now on, in a thread, until `stop`."""

    def __init__(self, kind: Kind) -> None:
        self._kind = kind
        self.profiler = WaitProfiler(kind)
        self._end = os.eventfd(0, os.EFD_CLOEXEC)
        self._error: PurebpfError | None = None
        self._thread = threading.Thread(target=self._run, name="waits", daemon=True)
        self._entered = False
        self._thread.start()

    def fileno(self) -> int:
        """Readable when the window is over."""
        return self._end

    def _run(self) -> None:
        try:
            with self.profiler as profiler:
                self._entered = True
                profiler.wait(self)
                self._profile = profiler.stop()
        except PurebpfError as error:
            self._error = error

    def stop(self) -> Profile:
        """End it.

        Raises:
            PurebpfError: what the thread met.
        """
        self._finish()
        if self._error is not None:
            raise self._error
        return self._profile

    def close(self) -> None:
        """End it without a result; again is harmless."""
        self._finish()
        if self._end >= 0:
            os.close(self._end)
            self._end = -1

    def _finish(self) -> None:
        if self._thread.is_alive():
            os.eventfd_write(self._end, 1)
            self._thread.join()
