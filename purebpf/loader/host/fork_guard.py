"""The process that made an attachment which outlives its descriptors, and so may undo it.

fork(2) copies descriptors, and closing the copies changes nothing for the parent. An undo through
the kernel (disabling an event, detaching from a cgroup, taking an element out of a map) affects
everybody: a child that closes inherited objects must not do it.
"""

from __future__ import annotations

import os

__all__ = ["OwnerProcess"]


class OwnerProcess:
    """The process that makes one."""

    __slots__ = ("_pid",)

    def __init__(self) -> None:
        self._pid = os.getpid()

    @property
    def is_here(self) -> bool:
        """True if this is still that process, and not a child that it forked."""
        return os.getpid() == self._pid
