"""Off-CPU and run queue time, window by window, traced in a thread beside the samples.

One tracer goes on through all windows: tables, mappings and symbols stay. A wait that lasts through
several windows counts in each with the part that passed in it.
"""

from __future__ import annotations

import os
import threading
from enum import Enum
from queue import SimpleQueue
from typing import TYPE_CHECKING, NamedTuple

from purebpf.closable import Closing
from purebpf.errors import PurebpfError
from purebpf.measure.sched_trace import Request, Times
from purebpf.measure.thread_profiler import ThreadProfiler
from purebpf.measure.time_windows import TimeWindows
from purebpf.results.build.offcpu_rows import merge_spans, row
from purebpf.services.agent.config import Kind
from purebpf.services.agent.rows import without_threads

if TYPE_CHECKING:
    from purebpf.results import Profile
    from purebpf.results.build.stored_stacks import Stacks

__all__ = ["WaitProfiler", "WaitWindow", "Waits"]


class WaitWindow(NamedTuple):
    """The waits of a window, and /proc/PID/cgroup of its processes."""

    profile: Profile
    cgroups: dict[int, str]

    def cgroup_text(self, pid: int) -> str:
        """Return the text of one of them; "" if it is unknown."""
        return self.cgroups.get(pid, "")


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
        self._run: TimeWindows = TimeWindows(request)
        self._with_addresses = False
        self._with_hints = False  # looking for them takes 2 % of all time, for nobody

    def window(self) -> WaitWindow:
        """End a window; nothing is traced until `resume`.

        Raises:
            KernelError: a map could not be read.
        """
        times = self._run.window()
        pids = {place.pid for place in times.spans}
        profile = self._profile(times)
        cgroups = {pid: self._run.watch.followed.cgroups.text(pid) for pid in pids}
        self._symbolizer.forget_but(pids)
        self._run.forget(pids)
        return WaitWindow(profile, cgroups)

    def resume(self) -> None:
        """Begin the next window. Raises as `window`."""
        self._run.resume()

    def _fill(self, profile: Profile, times: Times, stacks: Stacks) -> None:
        """Add the rows: threads of a process together, as no message has their numbers.

        The source of a row is dropped as soon as there is the row: a window may have 40,000.
        """
        spans = merge_spans(without_threads(times.spans))
        while spans:
            place, span = spans.popitem()
            profile.add_row(
                row(place, span, stacks, self._run.watch.followed.cgroups.of, is_split=True)
            )


class _Order(Enum):
    WINDOW = "end the window"
    RESUME = "begin the next"
    END = "end"


class Waits(Closing):
    """Traces from now on, in a separate thread.

    Args:
        kind: section [wait] of the configuration.
    """

    def __init__(self, kind: Kind) -> None:
        self._profiler = WaitProfiler(kind)
        self._orders: SimpleQueue[_Order] = SimpleQueue()
        self._windows: SimpleQueue[WaitWindow | None] = SimpleQueue()  # None: the thread has ended
        self._error: PurebpfError | None = None
        self._wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_SEMAPHORE)
        self._thread = threading.Thread(target=self._run, name="waits", daemon=True)
        self._thread.start()

    def fileno(self) -> int:
        """Readable when the thread has an order."""
        return self._wake

    def _run(self) -> None:
        try:
            with self._profiler as profiler:
                while (order := self._next_order()) is not _Order.END:
                    if order is _Order.WINDOW:
                        self._windows.put(profiler.window())
                    else:
                        profiler.resume()
        except PurebpfError as error:
            self._error = error
        finally:
            self._windows.put(None)

    def _next_order(self) -> _Order:
        """Follow processes until there is an order."""
        self._profiler.wait(self)
        os.eventfd_read(self._wake)
        return self._orders.get()

    def _tell(self, order: _Order) -> None:
        self._orders.put(order)
        os.eventfd_write(self._wake, 1)

    def window(self) -> WaitWindow:
        """End a window; nothing is traced until `resume`.

        Raises:
            PurebpfError: the error of the thread, which has ended.
        """
        self._tell(_Order.WINDOW)
        window = self._windows.get()
        if window is None:
            raise self._error or PurebpfError("what traces waits has ended")
        return window

    def resume(self) -> None:
        """Begin the next window; errors are reported at its end."""
        self._tell(_Order.RESUME)

    def close(self) -> None:
        """End it without a result; again is harmless."""
        if self._wake >= 0:
            self._tell(_Order.END)
            self._thread.join()
            os.close(self._wake)
            self._wake = -1
