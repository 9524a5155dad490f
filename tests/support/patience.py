"""Waiting for what comes in its own time, and no longer than needed."""

from __future__ import annotations

import time
from collections.abc import Callable

__all__ = ["until"]

_PATIENCE_S = 10


def until(condition: Callable[[], bool]) -> bool:
    """Whether it came true before patience was at its end."""
    deadline = time.monotonic() + _PATIENCE_S
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.002)
    return True
