"""Deliveries that arrive one by one become durable together: an answer waits for its batch.

A file for each delivery would be a million files an hour, and an answer before the file is written
would be a promise that a crash breaks. So deliveries wait for `pause_s`, are stored in one batch,
and then each of their senders gets its answer.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple

from purebpf.services.fleet.decode import RefusedError
from purebpf.services.fleet.landing import land, new_batch_id
from purebpf.services.fleet.rows import Batch, Delivery, Ids
from purebpf.services.fleet.stores.store import Store

__all__ = ["FullError", "Intake", "Tally"]

_REMEMBERED_S = 7200.0
_MOST_ROWS = 400_000
"""Rows that may wait, some 300 bytes each; more than a batch has are stored without a pause."""
_MOST_OF_BATCH, _HEAVY = 100_000, 20_000
"""Rows of a batch, and of a delivery that is stored alone: others do not wait for it twice."""
_MOST_REMEMBERED = 500_000
"""Deliveries: a thousand hosts send 360,000 of three kinds in the time."""
_MOST_IDS = 1_000_000
"""Series, stacks and frames, some 100 bytes each: beyond that they are stored again."""
_DATES = 3


_Waiting = tuple[Delivery, asyncio.Future[None]]


class FullError(Exception):
    """More waits to be stored than there is memory for."""


class Tally(NamedTuple):
    """The work of a hub so far."""

    deliveries: int = 0
    repeated: int = 0
    rows: int = 0
    batches: int = 0
    failed_batches: int = 0
    nbytes: int = 0


class Intake:
    """Stores added data.

    Args:
        store: where.
        pause_s: how long the first delivery of a batch waits for others.
        say: gets a line when a batch cannot be stored.

    Attributes:
        tally: so far.
    """

    def __init__(self, store: Store, *, pause_s: float, say: Callable[[str], object]) -> None:
        self._store, self._pause_s, self._say = store, pause_s, say
        self._known: dict[str, Ids] = {}
        self._recent: OrderedDict[int, float] = OrderedDict()
        self._waiting: list[_Waiting] = []
        self._under_way: dict[int, asyncio.Future[None]] = {}
        self._rows = 0
        self._full = asyncio.Event()
        self._was_heavy = False
        self._writer: asyncio.Task[None] | None = None
        self.tally = Tally()

    async def add(self, deliveries: Sequence[Delivery]) -> None:
        """Come back when all of them are stored.

        Raises:
            FullError: too much waits already; this delivery is dropped.
            OSError: they cannot be stored now.
            RefusedError: one of them can never be stored.
        """
        self._forget()
        ends = []
        if self._rows > _MOST_ROWS:
            raise FullError(f"{self._rows} rows wait to be stored")
        for delivery in deliveries:
            number = delivery.window.delivery
            if number in self._recent:
                self.tally = self.tally._replace(repeated=self.tally.repeated + 1)
                continue
            end = self._under_way.get(number)
            if end is None:
                end = asyncio.get_running_loop().create_future()
                self._under_way[number] = end
                self._waiting.append((delivery, end))
                self._rows += delivery.weight
            ends.append(end)
        if self._rows > _MOST_OF_BATCH:
            self._full.set()
        if self._waiting and self._writer is None:
            self._writer = asyncio.create_task(self._write_soon())
        for result in await asyncio.gather(*ends, return_exceptions=True):
            if isinstance(result, BaseException):
                raise result

    @property
    def remembered(self) -> int:
        """The number of deliveries, and of ids of stored data, in memory."""
        return len(self._recent) + sum(map(len, self._known.values()))

    async def finish(self) -> None:
        """Store the waiting data, without a pause."""
        while self._waiting or self._writer is not None:
            if self._writer is None:
                await self._write()
            else:
                await self._writer

    async def _write_soon(self) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._full.wait(), self._pause_s)
        self._full.clear()
        try:
            while self._waiting:
                await self._write()
        finally:
            self._writer = None

    async def _write(self) -> None:
        """Store a batch of all that waits, and tell those who sent it."""
        light = [one for one in self._waiting if one[0].weight < _HEAVY]
        heavy = [one for one in self._waiting if one[0].weight >= _HEAVY]
        if heavy and (not light or not self._was_heavy):
            chosen, heavy = heavy[:1], heavy[1:]
            self._was_heavy = True
        else:
            self._was_heavy = False
            rows, count = 0, 0
            while count < len(light) and rows < _MOST_OF_BATCH:
                rows += light[count][0].weight
                count += 1
            chosen, light = light[:count], light[count:]
        self._waiting = light + heavy
        await self._store_together(chosen)

    async def _store_together(self, waiting: Sequence[_Waiting]) -> None:
        """Store these as one batch; those that cannot be stored keep no others from it."""
        batch = Batch(self._known)
        problem: OSError | RefusedError | None = None
        nbytes = 0
        try:
            for delivery, _ in waiting:
                batch.add(delivery)
            nbytes = await asyncio.to_thread(land, self._store, batch, new_batch_id())
            batch.stored()
        except OSError as error:
            problem = error
            self._say(f"a batch of {len(waiting)} windows is not stored: {error}")
        except Exception as error:  # noqa: BLE001 - whatever a sender has found
            middle = len(waiting) // 2
            if middle:
                await self._store_together(waiting[:middle])
                await self._store_together(waiting[middle:])
                return
            problem = RefusedError(f"it cannot be stored: {error}")
            self._say(f"a window of {waiting[0][0].window.host} cannot be stored: {error}")
        self._rows -= sum(delivery.weight for delivery, _ in waiting)
        now = time.monotonic()
        for delivery, end in waiting:
            number = delivery.window.delivery
            del self._under_way[number]
            if problem is None:
                self._recent[number] = now
            if not end.done():
                end.set_exception(problem) if problem else end.set_result(None)
                end.exception()  # its sender may have gone
        done = self.tally
        self.tally = done._replace(
            deliveries=done.deliveries + (0 if problem else len(waiting)),
            rows=done.rows + (0 if problem else batch.rows),
            batches=done.batches + 1,
            failed_batches=done.failed_batches + bool(problem),
            nbytes=done.nbytes + nbytes,
        )

    def _forget(self) -> None:
        """Forget data that was stored long ago, and past dates."""
        before = time.monotonic() - _REMEMBERED_S
        while self._recent and (
            len(self._recent) > _MOST_REMEMBERED or next(iter(self._recent.values())) < before
        ):
            self._recent.popitem(last=False)
        if sum(map(len, self._known.values())) > _MOST_IDS:
            self._known.clear()
        for date in sorted(self._known)[:-_DATES]:
            del self._known[date]
