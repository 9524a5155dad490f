"""The order of readers where one question is answered at a time.

A reader is a token at an address. Of the readers that wait, the one is next that was served longest
ago, or never. The questions of a reader are answered in their order, unless there are so many that
the first has waited for two seconds (or `long_s`). Then all but the newest two, and the newest two
that no other connection asks, stand aside until nobody asks anew. So a reader with hundreds of
connections, each of which asks again when it is answered, keeps neither other readers nor a new
question of the same reader waiting for long: most of its questions stand aside, and as many are new
as were answered.

Of a reader's questions, one about a short range and few samples goes before one about much more:
see `MUCH`.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Hashable
from time import monotonic
from typing import NamedTuple

from purebpf.errors import PurebpfError

__all__ = ["MUCH", "BusyError", "Turns"]

_MOST_WAITING = 1024
_KEPT = 2
"""Questions that stay in the queue when its first one has waited long."""
MUCH = 4
"""A question goes before another one of the reader that asks for so many times as much."""


class BusyError(PurebpfError):
    """Too many wait already, or an answer takes too long; says which."""


class _Waiting(NamedTuple):
    """A question that waits: its turn, since when, its name, and for how much it asks."""

    turn: asyncio.Future[None]
    since: float
    question: Hashable
    breadth: float


class _Queue:
    """The questions of a reader; those that stand aside, and those that do not."""

    def __init__(self) -> None:
        self.aside: list[_Waiting] = []
        self.new: list[_Waiting] = []

    def __len__(self) -> int:
        return len(self.aside) + len(self.new)

    def choose(self, long_ago: float) -> _Waiting:
        """Return the next question, which stays in the queue.

        If the first one waits since before `long_ago`, most of them stand aside.
        """
        if self.new and self.new[0].since < long_ago:
            number = Counter(waiting.question for waiting in self.new)
            alone = [waiting for waiting in self.new[:-_KEPT] if number[waiting.question] == 1]
            kept = alone[-_KEPT:] + self.new[-_KEPT:]
            self.aside += [waiting for waiting in self.new if waiting not in kept]
            self.new = kept
        if not self.new:
            return self.aside[-1]
        least = min(waiting.breadth for waiting in self.new)
        return next(waiting for waiting in self.new if waiting.breadth <= least * MUCH)

    def oldest(self) -> _Waiting:
        return (self.aside or self.new)[0]

    def remove(self, waiting: _Waiting) -> None:
        """Remove a question, if it is there."""
        for questions in (self.aside, self.new):
            if waiting in questions:
                questions.remove(waiting)


class Turns:
    """Gives one turn at a time.

    Args:
        clock: returns the time in seconds.
        long_s: how long the questions of a reader are answered in their order.
    """

    def __init__(self, clock: Callable[[], float] = monotonic, long_s: float = 2.0) -> None:
        self._waiting: dict[Hashable, _Queue] = {}
        self._served: dict[Hashable, int] = {}
        self._given = 0
        self._is_taken = False
        self._clock, self._long_s = clock, long_s

    @property
    def are_waited_for(self) -> bool:
        """True if somebody waits for a turn."""
        return bool(self._waiting)

    def narrower_waits(self, breadth: float) -> bool:
        """Return True if somebody waits who asks for much less than `breadth`."""
        return any(
            waiting.breadth * MUCH < breadth
            for queue in self._waiting.values()
            for waiting in queue.new
        )

    def take_free(self) -> bool:
        """Take the turn if nobody has it; return whether it was taken."""
        was_free, self._is_taken = not self._is_taken, True
        return was_free

    async def take(self, reader: Hashable, question: Hashable = None, breadth: float = 0.0) -> None:
        """Wait for a turn; whoever returns from here must `give` it back.

        Args:
            reader: who asks.
            question: the name of the question; those who ask the same have the same.
            breadth: for how much it asks, in any unit.

        Raises:
            BusyError: more than a thousand wait, and this one waits longest.
        """
        if self.take_free():
            self._note(reader)
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiting = _Waiting(turn, self._clock(), question, breadth)
        self._waiting.setdefault(reader, _Queue()).new.append(waiting)
        self._refuse_one()
        try:
            await waiting.turn
        except asyncio.CancelledError:  # the reader went away
            if waiting.turn.done() and not waiting.turn.cancelled():
                self.give()
            else:
                self._remove(reader, waiting)
            raise

    def give(self) -> None:
        """Give the turn to the next one who waits."""
        while self._waiting:
            reader = min(self._waiting, key=lambda waiting: self._served.get(waiting, 0))
            waiting = self._waiting[reader].choose(self._clock() - self._long_s)
            self._remove(reader, waiting)
            if not waiting.turn.done():
                self._note(reader)
                waiting.turn.set_result(None)
                return
        self._is_taken = False

    def _note(self, reader: Hashable) -> None:
        """Note that a reader was served; of more than a thousand, forget the first."""
        self._given += 1
        self._served.pop(reader, None)
        self._served[reader] = self._given
        if len(self._served) > _MOST_WAITING:
            del self._served[next(iter(self._served))]

    def _remove(self, reader: Hashable, waiting: _Waiting) -> None:
        if reader in self._waiting:
            self._waiting[reader].remove(waiting)
            if not self._waiting[reader]:
                del self._waiting[reader]

    def _refuse_one(self) -> None:
        """Refuse the oldest question of the reader with the most, if too many wait."""
        if sum(map(len, self._waiting.values())) <= _MOST_WAITING:
            return
        reader, queue = max(self._waiting.items(), key=lambda item: len(item[1]))
        waiting = queue.oldest()
        self._remove(reader, waiting)
        if not waiting.turn.done():
            waiting.turn.set_exception(
                BusyError(f"{_MOST_WAITING} questions wait already: try again in a while")
            )
