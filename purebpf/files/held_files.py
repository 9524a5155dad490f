"""Descriptors that stay open for the length of a task that asks the same files again and again.

Opening a file that other processes name takes 30 to 50 us (`open_regular`), as much as reading it.
Outside of such a task nothing is held: an open file keeps its file system mounted, and the disk
space of a deleted file in use.
"""

from __future__ import annotations

import os
from collections.abc import Hashable

from purebpf.closable import SoleOwner

__all__ = ["HeldFiles"]

_MOST = 64


class HeldFiles(SoleOwner):
    """Descriptors by key, inside of `with` blocks only; blocks may be nested."""

    def __init__(self) -> None:
        self._fds: dict[Hashable, int] = {}
        self._depth = 0

    def __enter__(self) -> None:
        self._depth += 1

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        if not self._depth:
            while self._fds:
                os.close(self._fds.popitem()[1])

    def get(self, key: Hashable) -> int | None:
        """The descriptor that is held under a key; None: open it."""
        return self._fds.get(key)

    def done(self, key: Hashable, fd: int) -> None:
        """Hold a descriptor; outside of a block, or where that is full, close it."""
        if self._depth and key not in self._fds and len(self._fds) < _MOST:
            self._fds[key] = fd
        elif self._fds.get(key) != fd:
            os.close(fd)
