"""fork(2) for children that do not go on with the signal handlers of this program."""

from __future__ import annotations

import os
import signal

__all__ = ["fork"]


def fork() -> int:
    """Fork, and return the child's PID; 0 in the child, where signals have their default action.

    Signals that this program ignores stay ignored. One that arrives in between waits: Python would
    run its handler in the child, and write to a descriptor that the child may have closed.

    Raises:
        OSError: there can be no more processes.
    """
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        child = os.fork()
        if not child:
            signal.set_wakeup_fd(-1)
            for number in signal.valid_signals():
                if callable(signal.getsignal(number)):
                    signal.signal(number, signal.SIG_DFL)
        return child
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
