"""Waiting for what comes in its own time, and no longer than needed."""

from __future__ import annotations

import time
from collections.abc import Callable

from tests.support.host.faults import slow_host

__all__ = ["until"]

_PATIENCE_S = 10
_PAUSE_S = 0.02 if slow_host() else 0.002  # on an emulated machine, asking takes others' time


def until(condition: Callable[[], bool]) -> bool:
    """Whether it came true before patience was at its end."""
    deadline = time.monotonic() + _PATIENCE_S
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(_PAUSE_S)
    return True
