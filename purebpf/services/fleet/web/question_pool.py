"""Answers one question at a time, in a thread, and for as long as a reader waits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, TypeVar

from purebpf.closable import Closing
from purebpf.errors import PurebpfError
from purebpf.services.fleet import duck
from purebpf.services.fleet.answers import Question

if TYPE_CHECKING:
    import duckdb

    from purebpf.services.fleet.selection import Selection
    from purebpf.services.fleet.stores.store import Store

__all__ = ["BusyError", "QuestionPool", "Worker"]

T = TypeVar("T")
_PATIENCE_S = 120.0
_MEMORY, _MOST_MEMORY = "160MB", "700MB"
"""What an answer takes, and what one may take that needs more."""
_AGAIN_S = 0.1
_MOST_WAITING = 16


class BusyError(PurebpfError):
    """Too many wait already, or an answer takes too long; says which."""


class Worker(Closing):
    """Opens questions, which end with it. `give_up` may be called from another thread.

    Attributes:
        gave_up: whether that was called.
        is_over: whether it was closed.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._open: list[duckdb.DuckDBPyConnection] = []
        self._closing = ExitStack()
        self.gave_up = self.is_over = False

    def close(self) -> None:
        """Close the questions; again is harmless."""
        self.is_over = True
        self._open.clear()
        self._closing.close()

    def ask(self, selection: Selection, *, by_host: bool = False) -> Question:
        """A question of the store; `by_host` as in `Question`."""
        connection = self._closing.enter_context(duck.connect(self._store, _MEMORY, _MOST_MEMORY))
        self._open.append(connection)
        self.check()
        return Question(self._store, selection, connection, by_host=by_host)

    def check(self) -> None:
        """Raise BusyError if nobody waits for the answer any more: call it between long steps."""
        if self.gave_up:
            raise BusyError("the reader went away")

    def give_up(self) -> None:
        """End the statement that runs. One that begins later is not ended: call it again."""
        self.gave_up = True
        import duckdb

        for connection in list(self._open):
            with suppress(duckdb.Error):  # it was closed in this moment
                connection.interrupt()


class QuestionPool:
    """The queue of questions: each in turn may take the memory limit of one question."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._turn = asyncio.Lock()
        self._waiting = 0
        self._worker: Worker | None = None
        self._is_ending = False

    def end(self) -> None:
        """End the question that is being answered, and answer no more."""
        self._is_ending = True
        if self._worker is not None:
            _give_up(self._worker)

    async def answer(self, work: Callable[[Worker], T]) -> T:
        """Return the result of `work`, computed in a thread.

        Raises:
            BusyError: sixteen wait already, or two minutes are over.
            PurebpfError: as `work`.
        """
        if self._waiting >= _MOST_WAITING:
            raise BusyError(f"{_MOST_WAITING} questions wait already: try again in a while")
        self._waiting += 1
        try:
            await self._turn.acquire()
            return await self._run(work)
        finally:
            self._waiting -= 1

    async def _run(self, work: Callable[[Worker], T]) -> T:
        """Answer in a thread, and give the turn back when the thread is done.

        The reader may be gone by then. The next question still waits, as it needs the memory.
        """
        worker = Worker(self._store)

        def run() -> T:
            with worker:
                if self._is_ending:
                    raise BusyError("the server ends")
                return work(worker)

        def finish(ended: asyncio.Future[T]) -> None:
            self._worker = None
            self._turn.release()
            if not ended.cancelled():
                ended.exception()  # nobody may be there to be told

        loop = asyncio.get_running_loop()
        self._worker = worker
        future = loop.run_in_executor(None, run)
        future.add_done_callback(finish)
        timer = loop.call_later(_PATIENCE_S, _give_up, worker)
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:  # the reader went away
            _give_up(worker)
            raise
        except PurebpfError:
            if worker.gave_up:
                raise BusyError(
                    f"no answer in {_PATIENCE_S:g} s: ask for a shorter range, or for one service"
                ) from None
            raise
        finally:
            timer.cancel()


def _give_up(worker: Worker) -> None:
    """End the running question, until it is over: between two statements there is none to end."""
    if not worker.is_over:
        worker.give_up()
        asyncio.get_running_loop().call_later(_AGAIN_S, _give_up, worker)
