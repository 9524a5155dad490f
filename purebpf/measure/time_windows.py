"""`TimeWindows`: one window after the other of where threads spend their time.

Resources of the machine or of a process stay: the programs, the tables that they walk stacks by,
mappings, symbols. Data of a window goes with it: sums, stacks, and the state of each thread's time,
so that a window is like a separate run.
"""

from __future__ import annotations

from collections.abc import Container

from purebpf.measure.sched_trace import ThreadTime, Times

__all__ = ["TimeWindows"]

_MOST_WAITING = 12 << 20
"""Bytes of copied stacks that may wait."""


class TimeWindows(ThreadTime):
    """A `ThreadTime` that goes on.

    time.window()              what passed until now; nothing is traced
    time.forget(processes)     once the window has a profile
    time.resume()              the next window begins
    """

    def _start(self) -> None:
        if self._switches.walking is not None:
            self._switches.walking.most_waiting = _MOST_WAITING
        super()._start()

    def window(self) -> Times:
        """End the window. Open spans count up to now, and from the next start on.

        Raises:
            KernelError: a map could not be read.
        """
        switches = self._switches
        switches.forget_listed()
        try:
            return self.stop()
        finally:
            switches.forget_listed(forget=False)

    def forget(self, keep: Container[int]) -> None:
        """Forget the window, and processes that have ended, but those to `keep` for one more.

        Raises:
            KernelError: a map could not be emptied.
        """
        switches = self._switches
        self._forget_counts()
        if switches.walking is not None:
            switches.walking.rest()
        self.watch.followed.forget_exited(keep)
        python = switches.python
        if python is not None:
            python.interpreters.forget_but(self.watch.followed.spaces.processes)
            if python.names.is_crowded:
                switches.forget_python_names()

    def resume(self) -> None:
        """Begin the next window.

        Raises:
            KernelError: a map or the list of tasks could not be read.
        """
        self._start()
        self._find_sleepers()
