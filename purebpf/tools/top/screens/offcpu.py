"""The waits of threads, by their stacks."""

from __future__ import annotations

import math
import time
from typing import Self

from purebpf.cli.sheet import Column
from purebpf.measure.requests import narrow
from purebpf.measure.stop import HasFileno
from purebpf.tools.offcpu import request
from purebpf.tools.offcpu.session import OffCpu
from purebpf.tools.profile.request import ProfileOptions
from purebpf.tools.top import rows
from purebpf.tools.top.screens.base import Reading, Screen
from purebpf.tools.top.screens.cpu import read_profile

__all__ = ["Waiting", "make"]

_DEFAULTS = (
    "user_threads_only",
    "kernel_threads_only",
    "user_stacks_only",
    "kernel_stacks_only",
    "states",
    "preempt",
    "threshold_ms",
    "min_us",
    "max_us",
    "waker",
    "inflight",
    "one_by_one",
)
"""Options of the command that `top` does not have."""


class Waiting(Screen):
    """Time of threads that did not run, by own function and reason; idle waits come last."""

    columns = (Column("self", 7), Column("total", 7), Column("threads", 7))
    deeper = rows.DEEPER | dict.fromkeys(rows.OWNERS, "place")
    heat_unit = "threads"

    def __init__(self, options: ProfileOptions, command_pid: int = 0) -> None:
        super().__init__()
        self._session = OffCpu(
            narrow(request.OffCpuOptions, options, defaults=_DEFAULTS), command_pid
        )
        self.budget = self._session.budget
        self._read_s = self._elapsed_s = 0.0

    def __enter__(self) -> Self:
        self._session.__enter__()
        try:
            self._session.last()  # what the first reading is later than
        except BaseException:
            self._session.close()
            raise
        self._read_s = time.monotonic()
        return self

    def wait(self, *ends: HasFileno, at_most_s: float) -> bool:
        """As `OffCpu.wait`."""
        return self._session.wait(*ends, at_most_s=at_most_s)

    def read(self) -> Reading:
        """Return the waits since the last call of this."""
        now_s = time.monotonic()
        elapsed_s, self._read_s = now_s - self._read_s, now_s
        return read_profile(
            self._session.last(at_most_s=math.inf), 1 / (1e9 * elapsed_s), self.heat_unit
        )

    def stop(self) -> Reading:
        """End it; return the waits of the whole run."""
        return read_profile(self._session.stop(), 0.0, self.heat_unit)

    def close(self) -> None:
        """End it without a result; again is harmless."""
        self._session.close()


def make(options: ProfileOptions, _by: str, _interval_s: float, command_pid: int) -> Waiting:
    """The screen."""
    return Waiting(options, command_pid)
