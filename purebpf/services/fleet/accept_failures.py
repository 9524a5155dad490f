"""Connections that failed for want of descriptors or memory: one line with a number.

asyncio writes a traceback for each accept(2) that fails so, a hundred in a turn of its loop, and
tries again a second later (`BaseSelectorEventLoop._accept_connection`).
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable
from typing import Any

from purebpf.errors import errno_name

__all__ = ["AcceptFailures"]

_WITHOUT_ROOM = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_FIRST_S, _LATER_S = 1.0, 60.0
"""Seconds that a line waits for more to count."""


class AcceptFailures:
    """An exception handler of an asyncio loop; all else goes to the loop's own."""

    def __init__(self, say: Callable[[str], object]) -> None:
        self._say = say
        self._count = 0
        self._errno = 0
        self._pause_s = _FIRST_S
        self._timer: asyncio.TimerHandle | None = None

    def __call__(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Count a failed accept(2)."""
        error = context.get("exception")
        if not isinstance(error, OSError) or error.errno not in _WITHOUT_ROOM:
            loop.default_exception_handler(context)
            return
        self._count += 1
        self._errno = error.errno
        if self._timer is None:
            self._timer = loop.call_later(self._pause_s, self.report)
            self._pause_s = _LATER_S

    def report(self) -> None:
        """Print the count since the last time, if there is any."""
        self._timer = None
        if not self._count:
            return
        times = "once" if self._count == 1 else f"{self._count} times"
        self._say(
            f"connections waited: accept(2) failed with {errno_name(self._errno)} {times}; more "
            "descriptors (ulimit -n) or fewer clients help"
        )
        self._count = 0
