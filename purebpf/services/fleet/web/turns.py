"""The order of readers where one question is answered at a time.

A reader is a browser, or a token at an address. Readers take turns, one that has not waited before
first. Of the questions of one reader, the newest is next: a reader with many connections, each of
which asks again when it is answered, keeps neither other readers nor a new question of the same
reader waiting for long. Old questions are answered when nobody asks anew.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Hashable

from purebpf.errors import PurebpfError

__all__ = ["BusyError", "Turns"]

_MOST_WAITING = 1024


class BusyError(PurebpfError):
    """Too many wait already, or an answer takes too long; says which."""


class Turns:
    """Gives one turn at a time."""

    def __init__(self) -> None:
        self._waiting: dict[Hashable, deque[asyncio.Future[None]]] = {}
        self._is_taken = False

    async def take(self, reader: Hashable) -> None:
        """Wait for a turn; whoever returns from here must `give` it back.

        Raises:
            BusyError: more than a thousand wait, and this one waits longest.
        """
        if not self._is_taken:
            self._is_taken = True
            return
        turn = asyncio.get_running_loop().create_future()
        if reader not in self._waiting:
            self._waiting = {reader: deque(), **self._waiting}
        self._waiting[reader].append(turn)
        self._refuse_one()
        try:
            await turn
        except asyncio.CancelledError:  # the reader went away
            if turn.done() and not turn.cancelled():
                self.give()
            else:
                self._remove(reader, turn)
            raise

    def give(self) -> None:
        """Give the turn to the next one who waits."""
        while self._waiting:
            reader = next(iter(self._waiting))
            queue = self._waiting.pop(reader)
            turn = queue.pop()
            if queue:
                self._waiting[reader] = queue  # behind the other readers
            if not turn.done():
                turn.set_result(None)
                return
        self._is_taken = False

    def _remove(self, reader: Hashable, turn: asyncio.Future[None]) -> None:
        queue = self._waiting.get(reader)
        if queue is not None and turn in queue:
            queue.remove(turn)
            if not queue:
                del self._waiting[reader]

    def _refuse_one(self) -> None:
        """Refuse the oldest question of the reader with the most, if too many wait."""
        if sum(map(len, self._waiting.values())) <= _MOST_WAITING:
            return
        queue = max(self._waiting.values(), key=len)
        turn = queue.popleft()
        if not turn.done():
            turn.set_exception(
                BusyError(f"{_MOST_WAITING} questions wait already: try again in a while")
            )
