"""The common parts of the ring buffer and the perf buffer: one `drain()` in thin shells.

Records leave the ring in batches and wait in the reader, so that a loop that breaks out loses
nothing and sees nothing twice: the next loop, of whatever kind, goes on with the record behind.
"""

from __future__ import annotations

import select
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterator
from itertools import chain
from typing import Any, Generic

from purebpf.closable import Closing
from purebpf.loader.rings.pending import PendingRecords
from purebpf.loader.rings.record_types import RecordMap, RecordType, Short, decoder
from purebpf.loader.rings.waiters import LONGEST_S, Waiters, WakeEvent
from purebpf.typevars import V
from purebpf.wire.uniform_records import UniformRecords

__all__ = ["Reader"]


class Reader(Closing, ABC, Generic[V]):
    """Reads records as they come; `Reader[Event]` tells type checkers their type.

    One consumer at a time: several loops over one reader share its records between them.

    Attributes:
        record_type: the given type of its records; None: the object's.
    """

    def __init__(self, source: RecordMap, type_: RecordType, short: Short) -> None:
        self._source = source
        self.record_type = type_
        self._short = short
        self._decoder = decoder(source, type_, short)
        self._taken = PendingRecords(iter(()), self._decoder)
        self._waiters = Waiters()
        self._closed = False
        source.wakes(self)

    @property
    @abstractmethod
    def lost(self) -> int | None:
        """Records that found no room; None: not counted."""

    def _check(self) -> None:
        if self._closed:
            raise self._is_closed()

    def _is_closed(self) -> ValueError:
        return ValueError(f"the reader of {self._source.name!r} is closed")

    def __repr__(self) -> str:
        state = ", closed" if self._closed else ""
        return f"<{type(self).__name__} of {self._source.name!r}{state}>"

    @abstractmethod
    def _batches(self) -> Iterator[UniformRecords | Iterator[bytes]]:
        """Yield the present content of the ring, in bounded pieces; each piece leaves the ring."""

    def _came_meanwhile(self) -> bool:
        """Return True if records are there that polling, once begun, may never report."""
        return False

    @abstractmethod
    def fileno(self) -> int:
        """A descriptor that polls as readable when there are records.

        Raises:
            ValueError: the reader, or its map, is closed.
        """

    def close(self) -> None:
        """Let go of the ring and of every descriptor; again is harmless.

        Any thread may do so: threads and tasks that wait for records wake up with ValueError.
        """
        self._closed = True
        self.wake()

    def wake(self) -> None:
        """Wake every waiting thread, so that it sees whether reader and map are open."""
        self._waiters.wake()

    def decode_as(
        self,
        type: RecordType,  # noqa: A002 - as in `Map.read(type=...)`
        short: Short | None = None,
    ) -> None:
        """Take the records that are still to be seen for another type; `short` None: as before.

        Raises:
            SchemaError: the type is not known, or is not in the object's BTF.
            ValueError: `short` is neither "error" nor "zero".
        """
        short = self._short if short is None else short
        self._decoder = decoder(self._source, type, short)
        self.record_type, self._short = type, short
        self._taken.decode_as(self._decoder)

    def drain(self) -> Iterator[V]:
        """The records that are there when this starts, without waiting.

        It ends even when the kernel writes faster than the caller reads.

        Raises:
            FormatError: a record does not fit its type.
            ValueError: the reader is closed.
        """
        return chain.from_iterable(self._pieces())

    def _pieces(self) -> Iterator[Iterator[Any]]:
        """Yield the consumed records that were not yielded yet, then the ring's, batch by batch.

        They are chained: no Python step runs for a record. Another loop may have read more since,
        or have changed the type; those records come first.
        """
        batches = self._batches()
        values: Iterator[Any] | None = None
        while True:
            if self._taken.values is values:
                if (batch := self._next(batches)) is None:
                    return
                self._taken = PendingRecords(batch, self._decoder)
            values = self._taken.values
            yield values

    def _next(
        self, batches: Iterator[UniformRecords | Iterator[bytes]]
    ) -> UniformRecords | Iterator[bytes] | None:
        try:
            return next(batches, None)
        except ValueError:
            if self._closed:  # by another thread, maybe while this one was reading the memory
                raise self._is_closed() from None
            raise

    def read(self, timeout: float | None = None) -> Iterator[V]:
        """The records that come within `timeout` seconds; without one, for ever.

        The time counts from the first record and includes the caller's work on the records; records
        that are in the ring when it is over are still yielded. 0 does not wait.

        Raises:
            FormatError, ValueError: as `drain`; also when the reader is closed during it.
            OSError: EMFILE, there is no free descriptor to wait with.
        """
        return chain.from_iterable(self._waits(timeout))

    def _waits(self, timeout: float | None) -> Iterator[Iterator[Any]]:
        deadline = None if timeout is None else time.monotonic() + timeout
        over = False
        with self._waiters.wake_event() as wake_event:
            while not over:
                left = None if deadline is None else max(0.0, deadline - time.monotonic())
                over = left == 0
                yield self.drain()
                if not over:
                    self._wait(wake_event, left)

    def _wait(self, wake_event: WakeEvent, timeout: float | None) -> None:
        poll = select.poll()
        for waited_for in (wake_event, self):
            poll.register(waited_for.fileno(), select.POLLIN)
        poll.poll(None if timeout is None else min(timeout, LONGEST_S) * 1000)

    async def __aiter__(self) -> AsyncIterator[V]:
        """The records as they come, for ever, on the event loop of asyncio or trio that runs.

        Tasks may share the records of one reader; records that one leaves go to the waiting ones.

        Raises:
            FormatError, OSError, ValueError: as `read`.
        """
        try:
            while True:
                for record in self.drain():
                    yield record
                await self._waiters.readable(self.fileno, self._came_meanwhile)
        finally:
            self._waiters.pass_on()
