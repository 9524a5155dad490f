"""A time limit for connections, which the peer cannot extend.

A socket's timeout begins again with every byte, so a server that sends a header a byte a second
holds a client for hours. Here a thread shuts the connections down when the time is over.
"""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from typing import Any, Self

__all__ = ["Deadline"]


class Deadline:
    """Shuts connections down when the time is over.

    Args:
        seconds: from when its context is entered.

    Attributes:
        is_over: it has shut them down.
    """

    def __init__(self, seconds: float) -> None:
        self.is_over = False
        self._sockets: list[socket.socket] = []
        self._lock = threading.Lock()
        self._timer = threading.Timer(seconds, self._end)
        self._timer.daemon = True

    def __enter__(self) -> Self:
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        self._timer.join()
        for sock in self._sockets:
            sock.close()

    def connect(self, *arguments: Any, **options: Any) -> socket.socket:
        """socket.create_connection, to be shut down in time."""
        connection = socket.create_connection(*arguments, **options)
        with self._lock:
            self._sockets.append(connection.dup())  # TLS takes the other one over
            if self.is_over:
                self._shut_down()
        return connection

    def _end(self) -> None:
        with self._lock:
            self.is_over = True
            self._shut_down()

    def _shut_down(self) -> None:
        for sock in self._sockets:
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
