"""A storm of signals: another process sends SIGPROF without end."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

_PAUSE_S = 0.0002


@contextmanager
def sigprof_storm() -> Iterator[Callable[[], int]]:
    """SIGPROF some thousand times a second for this process; yields how many were handled."""
    handled = 0

    def on_signal(_number: int, _frame: FrameType | None) -> None:
        nonlocal handled
        handled += 1

    before = signal.signal(signal.SIGPROF, on_signal)
    receiver = os.getpid()
    sender = os.fork()
    if not sender:
        _send(receiver)
    try:
        while not handled:
            time.sleep(_PAUSE_S)
        yield lambda: handled
    finally:
        os.kill(sender, signal.SIGKILL)
        os.waitpid(sender, 0)
        signal.signal(signal.SIGPROF, before)


def _send(receiver: int) -> None:
    """In the child: until the parent is gone; never returns."""
    try:
        while os.getppid() == receiver:
            os.kill(receiver, signal.SIGPROF)
            time.sleep(_PAUSE_S)
    finally:
        os._exit(0)
