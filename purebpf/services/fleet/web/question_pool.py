"""Answers one question at a time, in a thread, and for as long as a reader waits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Hashable, Iterable
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, TypeVar

from purebpf.closable import Closing
from purebpf.errors import PurebpfError
from purebpf.services.fleet import duck
from purebpf.services.fleet.answers import Question
from purebpf.services.fleet.web.turns import BusyError, Turns

if TYPE_CHECKING:
    import duckdb

    from purebpf.services.fleet.selection import Selection
    from purebpf.services.fleet.stores.store import Store

__all__ = ["QuestionPool", "Worker"]

T = TypeVar("T")
_PATIENCE_S = 120.0
_MEMORY, _MOST_MEMORY = "160MB", "700MB"
"""What an answer takes, and what one may take that needs more."""
_AGAIN_S = 0.1


class Worker(Closing):
    """Opens questions, which end with it. `give_up` may be called from another thread.

    Attributes:
        gave_up: whether that was called.
        is_over: whether it was closed.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._open: list[duckdb.DuckDBPyConnection] = []
        self._asked: dict[tuple[Selection, bool], Question] = {}
        self._closing = ExitStack()
        self.gave_up = self.is_over = False

    def close(self) -> None:
        """Close the questions; again is harmless."""
        self.is_over = True
        self._open.clear()
        self._asked.clear()
        self._closing.close()

    def ask(self, selection: Selection, *, by_host: bool = False) -> Question:
        """Return a question of the store, the same one for the same selection; `by_host` as in
        `Question`.
        """
        if (selection, by_host) in self._asked:
            self.check()
            return self._asked[selection, by_host]
        connection = self._closing.enter_context(duck.connect(self._store, _MEMORY, _MOST_MEMORY))
        self._open.append(connection)
        self.check()
        question = Question(self._store, selection, connection, by_host=by_host)
        self._asked[selection, by_host] = question
        return question

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
        self._turns = Turns()
        self._worker: Worker | None = None
        self._is_ending = False

    def end(self) -> None:
        """End the question that is being answered, and answer no more."""
        self._is_ending = True
        if self._worker is not None:
            _give_up(self._worker)

    async def answer(self, work: Callable[[Worker], T], reader: Hashable = "") -> T:
        """Return the result of `work`, computed in a thread when it is the reader's turn.

        Raises:
            BusyError: too many wait already, or two minutes are over.
            PurebpfError: as `work`.
        """
        await self._turns.take(reader)
        return await self._run(work)

    async def stream(
        self, parts: Callable[[Worker], Iterable[str]], reader: Hashable = ""
    ) -> AsyncIterator[str]:
        """Yield what `parts` yields in a thread, in one turn.

        The turn ends when all parts are computed, even if the reader takes none of them.

        Raises: as `answer`.
        """
        loop = asyncio.get_running_loop()
        queue: asyncio.Queue[str | None] = asyncio.Queue()

        def work(worker: Worker) -> None:
            for part in parts(worker):
                loop.call_soon_threadsafe(queue.put_nowait, part)

        task = asyncio.ensure_future(self.answer(work, reader))
        task.add_done_callback(lambda _: queue.put_nowait(None))
        try:
            while (part := await queue.get()) is not None:
                yield part
            await task
        finally:
            task.cancel()

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
            self._turns.give()
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
