"""Connections that wait: a client that says nothing, or a byte at a time, keeps no other out.

uvicorn waits for the first request of a connection, and for the rest of its head, for ever, and
takes any number of connections. Here a head has ten seconds, and beyond a number of connections
that wait for their client the oldest of them ends: who connects and sends goes on. A connection
waits for its client without a request, in the middle of a body, and when nobody reads its answer.
The form that asks for a token may be sent by all, and counts as a part of the head.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from purebpf.loader.host.process_limits import open_files

__all__ = ["PatientProtocol"]

_HEAD_S = 10.0
_FORM = "/enter"
_PIECE = 1 << 15
"""Bytes that are read at a time: chunks of a byte each keep the loop for 0.1 s then."""
_MOST_IDLE = 4096
"""Each host has a connection that it keeps; of the descriptors they may take half."""
_MOST_UNREAD = 16
"""Answers that nobody reads are kept in memory, megabytes each."""


class PatientProtocol(H11Protocol):
    """A connection, as uvicorn makes them."""

    _idle: dict[PatientProtocol, None] = {}  # noqa: RUF012 - those of the process
    _unread: dict[PatientProtocol, None] = {}  # noqa: RUF012 - those of the process
    _asked: object = None  # the request whose body has begun
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for its first request."""
        super().connection_made(transport)
        if hasattr(transport, "max_size"):  # of asyncio's own; not with TLS
            transport.max_size = _PIECE
        self._rest()
        self._timer = self.loop.call_later(_HEAD_S, self.end)
        soft, _ = open_files()
        _end_oldest(self._idle, min(_MOST_IDLE, soft // 2))

    def data_received(self, data: bytes) -> None:
        """Take a part of a request; a head that begins has its time from here on."""
        super().data_received(data)
        cycle = self.cycle
        if cycle is not None and not cycle.response_complete and cycle.scope["path"] != _FORM:
            self._stop_timer()
            if not cycle.more_body:
                self._idle.pop(self, None)
            elif self._asked is not cycle:
                self._asked = cycle
                self._rest()
        elif self._timer is None:
            self._timer = self.loop.call_later(_HEAD_S, self.end)

    def on_response_complete(self) -> None:
        """Wait for the next request; uvicorn's keep-alive ends it when none comes."""
        self._rest()
        super().on_response_complete()

    def pause_writing(self) -> None:
        """Wait for the client to read its answer."""
        super().pause_writing()
        self._rest()
        self._unread[self] = None
        _end_oldest(self._unread, _MOST_UNREAD)

    def resume_writing(self) -> None:
        """Go on with the answer."""
        super().resume_writing()
        self._unread.pop(self, None)
        self._idle.pop(self, None)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget it."""
        self._asked = None
        self._unread.pop(self, None)
        self._idle.pop(self, None)
        self._stop_timer()
        super().connection_lost(exc)

    def _rest(self) -> None:
        self._idle.pop(self, None)
        self._idle[self] = None

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def end(self) -> None:
        """Close it at once."""
        self._timer = None
        self.transport.abort()


def _end_oldest(connections: dict[PatientProtocol, None], most: int) -> None:
    """Close the connections beyond a number, those that have waited longest first."""
    while len(connections) > most:
        oldest = next(iter(connections))
        del connections[oldest]
        oldest.end()
