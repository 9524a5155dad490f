"""A summary that goes on in another mode."""

from __future__ import annotations

import time
from typing import Self

from purebpf.closable import Closing
from purebpf.measure.stop import HasFileno
from purebpf.tools.summary.request import SummaryOptions
from purebpf.tools.summary.session import Summary
from purebpf.tools.summary.table import Table

__all__ = ["SwitchingSummary"]


class SwitchingSummary(Closing):
    """`Summary` with one mode after the other; each begins with a new interval."""

    def __init__(self, options: SummaryOptions, command_pid: int = 0) -> None:
        self._options, self._command_pid = options, command_pid
        self.current = Summary(options, command_pid)

    def __enter__(self) -> Self:
        self._over_s = time.monotonic() + (self._options.duration_s or 0.0)
        self.current.__enter__()
        return self

    def switch(self, mode: str) -> None:
        """Count from now on by `mode`; counts since the last table are dropped.

        Raises:
            KernelError, NotSupportedError: as when the first one was started.
        """
        options = self._options._replace(mode=mode)
        if options.duration_s is not None:
            options = options._replace(duration_s=max(self._over_s - time.monotonic(), 0.0))
        self.current.close()
        self.current = Summary(options, self._command_pid)
        self.current.__enter__()

    def wait(self, *ends: HasFileno) -> bool:
        """As `Summary.wait`."""
        return self.current.wait(*ends)

    def interval(self) -> Table:
        """As `Summary.interval`."""
        return self.current.interval()

    def stop(self) -> Table:
        """As `Summary.stop`."""
        return self.current.stop()

    def close(self) -> None:
        """As `Summary.close`."""
        self.current.close()
