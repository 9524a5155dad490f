"""The records of processes, passed on to the walker of their stacks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from purebpf.observe.processes.process_tracker import Followed
    from purebpf.observe.runtimes.cpython.python_tables import PythonTables
    from purebpf.observe.unwind.user_stacks import UserStacks

__all__ = ["RecordFeed"]


class Walks(Protocol):
    """The kind of walk: with tables or not, Python's frames or not."""

    @property
    def walking(self) -> UserStacks | None:
        """None: the kernel walks."""

    @property
    def python(self) -> PythonTables | None:
        """None: without Python's frames."""


class RecordFeed:
    """Tells a tracer about processes, for it to finish their stacks.

    Args:
        tracer: attached, and not started.
        followed: the processes from now on.
    """

    def __init__(self, tracer: Walks, followed: Followed) -> None:
        self._walks = tracer
        self._followed = followed
        if tracer.walking is not None:
            tracer.walking.catch_up, tracer.walking.ask = self.catch_up, followed.ask

    @property
    def fds(self) -> set[int]:
        """Readable when there is something to take in."""
        walking, python = self._walks.walking, self._walks.python
        rings = (*(walking.fds if walking else ()), *(python.fds if python else ()))
        return {*self._followed.fds, *rings}

    def catch_up(self) -> None:
        """Read the records of processes up to now."""
        walking, python = self._walks.walking, self._walks.python
        if walking is None:
            self._followed.drain()
        else:
            known = () if python is None else python.interpreters.published
            self._followed.drain(self._feed, walking.followed, known)

    def collect(self) -> None:
        """Empty the rings of copies, in the middle of long work."""
        if self._walks.walking is not None:
            self._walks.walking.collect()

    def _feed(self, record: object) -> None:
        if self._walks.walking is not None:
            self._walks.walking.feed(record)
        if self._walks.python is not None:
            self._walks.python.interpreters.feed(record)
