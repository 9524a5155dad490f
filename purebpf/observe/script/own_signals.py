"""`OwnSignals`: signals to this process that run blocks of a script (`self:signal:SIGUSR1`)."""

from __future__ import annotations

import os
import signal
from collections import deque
from collections.abc import Iterable
from contextlib import ExitStack
from types import FrameType

from purebpf.closable import Closing
from purebpf.errors import NotSupportedError

__all__ = ["OwnSignals"]


class OwnSignals(Closing):
    """Catches signals from its creation until it is closed.

    Args:
        names: such as "SIGUSR1".

    Raises:
        NotSupportedError: this is not the main thread of the process.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._arrived: deque[str] = deque()
        with ExitStack() as owned:
            self._wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
            owned.callback(os.close, self._wake)
            for name in sorted(set(names)):
                number = signal.Signals[name]
                try:
                    before = signal.signal(number, self._note)
                except ValueError:
                    why = "only the main thread of a process catches signals"
                    raise NotSupportedError(f"self:signal:{name}", why) from None
                owned.callback(signal.signal, number, before)
            self._owned = owned.pop_all()

    def _note(self, number: int, _frame: FrameType | None) -> None:
        self._arrived.append(signal.Signals(number).name)
        os.eventfd_write(self._wake, 1)

    def fileno(self) -> int:
        """Return a descriptor that is readable when a signal has arrived."""
        return self._wake

    def take(self) -> list[str]:
        """Return the names of the signals that have arrived, in their order."""
        try:
            os.eventfd_read(self._wake)
        except BlockingIOError:
            pass
        arrived = []
        while self._arrived:
            arrived.append(self._arrived.popleft())
        return arrived

    def close(self) -> None:
        """Restore the handlers."""
        self._owned.close()
