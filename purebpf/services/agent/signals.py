"""Signals that a service gets, as a readable descriptor."""

from __future__ import annotations

import os
import signal
from types import FrameType
from typing import Self

from purebpf.closable import SoleOwner

__all__ = ["Signals"]

_HANDLED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1)


class Signals(SoleOwner):
    """A context in which SIGINT, SIGTERM, SIGHUP and SIGUSR1 are read. For the main thread."""

    def __init__(self) -> None:
        self._read, self._write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)

    def fileno(self) -> int:
        """Readable when a signal has arrived, until `take`."""
        return self._read

    def __enter__(self) -> Self:
        self._wakeup = signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        self._previous = {number: signal.signal(number, _ignore) for number in _HANDLED}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._wakeup)
        os.close(self._read)
        os.close(self._write)

    def take(self) -> set[int]:
        """Return the signals that have arrived."""
        try:
            return {*os.read(self._read, 4096)}
        except BlockingIOError:
            return set()


def _ignore(_number: int, _frame: FrameType | None) -> None:
    """The interpreter has written it to the descriptor already."""
