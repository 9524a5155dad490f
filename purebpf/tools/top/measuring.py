"""A run that goes on with another screen."""

from __future__ import annotations

import time
from typing import Self

from purebpf.closable import Closing
from purebpf.errors import PurebpfError
from purebpf.measure.stop import HasFileno
from purebpf.tools.profile.request import ProfileOptions
from purebpf.tools.top.due import Due
from purebpf.tools.top.screens import load
from purebpf.tools.top.screens.base import Reading, Screen

__all__ = ["Measuring"]


class Measuring(Closing):
    """Measures for one screen after the other; only the present one's programs are loaded.

    Args:
        options: of whom, for how long.
        name: of SCREENS.
        by: the kind of its rows.
        interval_s: between two readings.
        command_pid: a child that waits to execute the command.

    Attributes:
        current: the screen that measures.

    Raises, when it is entered: as the screen.
    """

    def __init__(
        self, options: ProfileOptions, name: str, by: str, interval_s: float, command_pid: int = 0
    ) -> None:
        self._options, self._interval_s = options, interval_s
        self._command_pid = command_pid
        self._shown = name, by
        self.due = Due(interval_s)
        self.current: Screen = load(name, options, by, interval_s, command_pid)

    def __enter__(self) -> Self:
        self._over_s = time.monotonic() + (self._options.duration_s or 0.0)
        self.current.__enter__()
        self.due.pass_by()
        return self

    def switch(self, name: str, by: str) -> str:
        """Measure for another screen; returns why that cannot be, and "" when it can.

        The present one goes on where the other one cannot be.
        """
        options = self._options
        if options.duration_s is not None:
            options = options._replace(duration_s=max(self._over_s - time.monotonic(), 0.0))
        screen = load(name, options, by, self._interval_s, self._command_pid)
        try:
            screen.__enter__()
        except PurebpfError as error:
            return str(error)
        self.current.close()
        self.current = screen
        self.due.pass_by()
        return ""

    def wait(self, *ends: HasFileno) -> bool:
        """Sleep until the run is over: True. False: a table is due."""
        return self.current.wait(*ends, at_most_s=self.due.left_s())

    def read(self) -> Reading:
        """Return the reading since the last call of this, or since the screen began."""
        return self.current.read()

    def stop(self) -> Reading:
        """End it; return the whole reading of the present screen."""
        return self.current.stop()

    def close(self) -> None:
        """End it without a result; again is harmless."""
        self.current.close()
