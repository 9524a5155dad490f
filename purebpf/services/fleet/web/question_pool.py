"""Answers questions in two lanes, in threads, and for as long as a reader waits.

Each lane answers one question at a time. A question begins in the quick lane. If it takes long, it
leaves that lane as soon as another question waits there: it goes on in the slow lane if that one is
free, or else waits there and begins again. The pool remembers such questions, and asks them in the
slow lane the next time. A question leaves the quick lane at once when one that asks for much less
waits there; the first time, it only waits in that lane again. So a page waits for a part of a
second, whatever others ask.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Hashable, Iterable
from threading import get_ident
from time import clock_gettime, monotonic, pthread_getcpuclockid
from typing import TYPE_CHECKING, TypeVar

from purebpf.errors import PurebpfError
from purebpf.services.fleet.duck import MemoryLimitError
from purebpf.services.fleet.web.turns import BusyError, Turns
from purebpf.services.fleet.web.worker import Worker

if TYPE_CHECKING:
    from purebpf.services.fleet.stores.store import Store

__all__ = ["QuestionPool"]

T = TypeVar("T")
_PATIENCE_S = 120.0
_TURN_CPU_S, _TURN_S = 0.4, 10.0
"""After this time of a CPU, or this time, a question leaves the quick lane for a free slow one."""
_FIRST_CPU_S, _SECOND_CPU_S = 0.1, 0.2
"""So long a question has a CPU before it lets one pass that asks for much less: when it is asked
for the first time, and when it begins again.
"""
_QUICK_CPU_S = 0.8
"""A question that takes as long leaves the quick lane for any other, and is remembered."""
_SLOW_WAIT_S = 20.0
_AGAIN_S = 0.05
_MOST_SLOW = 4096
"""Questions that are remembered as slow."""


class _Lane:
    """One question at a time; `memory` is the limit of an answer, `most` that of one which needs
    more.
    """

    def __init__(self, memory: str, most: str, turns: Turns) -> None:
        self.turns = turns
        self.memory, self.most = memory, most


class _Run:
    """A question that is being answered, and its lane; `may_wait`: it may begin again there."""

    def __init__(
        self,
        worker: Worker,
        lane: _Lane,
        question: Hashable,
        breadth: float,
        *,
        may_wait: bool,
    ) -> None:
        self.worker, self.lane, self.question = worker, lane, question
        self.breadth, self.may_wait = breadth, may_wait
        self.has_to_move = self.has_to_wait = False
        self._clock, self._cpu_s, self._began_s = 0, 0.0, 0.0

    def begin(self) -> None:
        """Note the time and the thread that computes the answer: it calls this."""
        self._began_s = monotonic()
        self._clock = pthread_getcpuclockid(get_ident())
        self._cpu_s = clock_gettime(self._clock)

    def takes_long(self, cpu_s: float = _QUICK_CPU_S) -> bool:
        """True if the answer took so long; CPUs that others keep busy do not count."""
        return bool(self._began_s) and (
            clock_gettime(self._clock) - self._cpu_s > cpu_s
            or monotonic() - self._began_s > _TURN_S
        )


class _MovedError(PurebpfError):
    """The question has to be asked again in the slow lane."""


class _WaitError(PurebpfError):
    """The question has to be asked again in the same lane, behind one that asks for much less."""


class QuestionPool:
    """The lanes of a store; the questions in them may take the memory limits of both."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._quick = _Lane("32MB", "32MB", Turns())
        self._slow = _Lane("80MB", "128MB", Turns(long_s=_SLOW_WAIT_S))
        self._slow_questions: dict[Hashable, None] = {}
        self._runs: dict[_Run, None] = {}
        self._is_ending = False

    def end(self) -> None:
        """End the questions that are being answered, and answer no more."""
        self._is_ending = True
        for run in self._runs:
            _give_up(run.worker)

    async def answer(
        self,
        work: Callable[[Worker], T],
        reader: Hashable = "",
        question: Hashable = None,
        breadth: float = 0.0,
    ) -> T:
        """Return the result of `work`, computed in a thread when it is the reader's turn.

        Args:
            work: computes the answer; a question that moves to the slow lane calls it again.
            reader: whose turn it is.
            question: the name by which the pool remembers that an answer takes long.
            breadth: for how much it asks, in any unit; it lets one pass that asks for much less.

        Raises:
            BusyError: too many wait already, or two minutes are over.
            PurebpfError: as `work`.
        """
        for may_wait in (True, False):
            if self._is_slow(question):
                break
            await self._quick.turns.take(reader, question, breadth)
            try:
                return await self._run_quick(work, question, breadth, may_wait=may_wait)
            except _WaitError:
                continue
            except _MovedError:
                self._remember(question)
                break
        await self._slow.turns.take(reader, question)
        return await self._run(work, self._slow, question)

    def _is_slow(self, question: Hashable) -> bool:
        return question is not None and question in self._slow_questions

    async def _run_quick(
        self, work: Callable[[Worker], T], question: Hashable, breadth: float, *, may_wait: bool
    ) -> T:
        """Answer in the quick lane, unless it turned out while the question waited that it is slow.

        Raises:
            _MovedError: ask again in the slow lane.
            _WaitError: ask again in the quick lane; only if it `may_wait`.
            BusyError, PurebpfError: as `answer`.
        """
        if self._is_slow(question):
            self._quick.turns.give()
            raise _MovedError
        return await self._run(work, self._quick, question, breadth, may_wait=may_wait)

    async def stream(
        self,
        parts: Callable[[Worker], Iterable[str]],
        reader: Hashable = "",
        question: Hashable = None,
        breadth: float = 0.0,
    ) -> AsyncIterator[str]:
        """Yield what `parts` yields in a thread, in one turn.

        The turn ends when all parts are computed, even if the reader takes none of them.

        Raises: as `answer`.
        """
        loop = asyncio.get_running_loop()
        queue: asyncio.Queue[str | None] = asyncio.Queue()
        sent = 0

        def work(worker: Worker) -> None:
            nonlocal sent
            for number, part in enumerate(parts(worker)):
                if number >= sent:  # those before it came from the quick lane
                    loop.call_soon_threadsafe(queue.put_nowait, part)
                    sent += 1

        task = asyncio.ensure_future(self.answer(work, reader, question, breadth))
        task.add_done_callback(lambda _: queue.put_nowait(None))
        try:
            while (part := await queue.get()) is not None:
                yield part
            await task
        finally:
            task.cancel()

    async def _run(
        self,
        work: Callable[[Worker], T],
        lane: _Lane,
        question: Hashable = None,
        breadth: float = 0.0,
        *,
        may_wait: bool = False,
    ) -> T:
        """Answer in a thread, and give the turn back when the thread is done.

        The reader may be gone by then. The next question still waits, as it needs the memory.
        """
        worker = Worker(self._store, lane.memory, lane.most)
        run = _Run(worker, lane, question, breadth, may_wait=may_wait)
        future = self._begin(run, work)
        loop = asyncio.get_running_loop()
        timers = [loop.call_later(_PATIENCE_S, _give_up, worker)]
        if lane is self._quick:
            timers.append(loop.call_later(_AGAIN_S, self._leave_quick_lane, run))
        try:
            answer = await asyncio.shield(future)
        except asyncio.CancelledError:  # the reader went away
            _give_up(worker)
            raise
        except PurebpfError as error:
            if run.has_to_wait:
                raise _WaitError from None
            if lane is self._quick and (run.has_to_move or isinstance(error, MemoryLimitError)):
                raise _MovedError from None
            if worker.gave_up:
                raise BusyError(
                    f"no answer in {_PATIENCE_S:g} s: ask for a shorter range, or for one service"
                ) from None
            raise
        finally:
            for timer in timers:
                timer.cancel()
        if run.takes_long():
            self._remember(question)
        else:
            self._slow_questions.pop(question, None)
        return answer

    def _begin(self, run: _Run, work: Callable[[Worker], T]) -> asyncio.Future[T]:
        """Start the thread of a question, whose lane is free again when the thread ends."""

        def compute() -> T:
            with run.worker as worker:
                run.begin()
                if self._is_ending:
                    raise BusyError("the server ends")
                return work(worker)

        def finish(ended: asyncio.Future[T]) -> None:
            del self._runs[run]
            run.lane.turns.give()
            if not ended.cancelled():
                ended.exception()  # nobody may be there to be told

        self._runs[run] = None
        future = asyncio.get_running_loop().run_in_executor(None, compute)
        future.add_done_callback(finish)
        return future

    def _leave_quick_lane(self, run: _Run) -> None:
        """Move a question that takes long, now or when another one waits."""
        if run.worker.is_over or run.worker.gave_up:
            return
        waiting = self._quick.turns
        is_in_the_way = waiting.narrower_waits(run.breadth) and run.takes_long(
            _FIRST_CPU_S if run.may_wait else _SECOND_CPU_S
        )
        if run.takes_long(_TURN_CPU_S) and self._slow.turns.take_free():
            run.lane = self._slow
            self._remember(run.question)
            self._quick.turns.give()
            return
        if is_in_the_way and run.may_wait:
            run.has_to_wait = True
        elif is_in_the_way or (waiting.are_waited_for and run.takes_long()):
            run.has_to_move = True
        else:
            asyncio.get_running_loop().call_later(_AGAIN_S, self._leave_quick_lane, run)
            return
        _give_up(run.worker)

    def _remember(self, question: Hashable) -> None:
        if question is not None:
            self._slow_questions[question] = None
            while len(self._slow_questions) > _MOST_SLOW:
                del self._slow_questions[next(iter(self._slow_questions))]


def _give_up(worker: Worker) -> None:
    """End the running question, until it is over: between two statements there is none to end."""
    if not worker.is_over:
        worker.give_up()
        asyncio.get_running_loop().call_later(_AGAIN_S, _give_up, worker)
