"""Which process made an attachment that outlives its descriptors, and so may undo it.

fork(2) copies descriptors, and closing the copies changes nothing for the parent. What is undone
by asking the kernel (disabling an event, detaching from a cgroup, taking an element out of a map)
is undone for everybody: a child that closes what it inherited must not ask.
"""

from __future__ import annotations

import os

__all__ = ["Maker"]


class Maker:
    """The process that makes one."""

    __slots__ = ("_pid",)

    def __init__(self) -> None:
        self._pid = os.getpid()

    @property
    def is_here(self) -> bool:
        """Whether this is still that process, and not a child that it forked."""
        return os.getpid() == self._pid
