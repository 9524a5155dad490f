"""HTTP requests on a port that strangers can connect to: few, small and in time.

One thread accepts connections and reads requests. A complete request that may have an answer gets a
separate thread; until then a connection costs a descriptor and its bytes. When there are too many,
the oldest of the peer with the most connections ends, so that a flood of connections that send
nothing does not shut out a browser, which sends its request at once.
"""

from __future__ import annotations

import io
import os
import re
import selectors
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any

from purebpf.closable import Closing

if TYPE_CHECKING:
    from ssl import SSLContext

__all__ = ["HttpServer", "Request"]

PENDING = 64
"""Connections that have not sent their whole request, from all peers."""

PENDING_OF_PEER = 32
"""Those from one address. All users of this machine have the same."""

REQUEST_BYTES = 16 << 10
REQUEST_S = 5.0
"""From the connection to the end of the request."""

ANSWERS = 16
"""Answers under way."""

ANSWER_S = 120.0
STALLED_S = 10.0
"""A client that takes nothing for so long is gone."""

_LAST_ANSWERS_S = 5.0
"""How long `close` waits for answers under way."""

_AT_ONCE = 16
"""Connections accepted before those that are there are read again."""

_PAUSE_S = 0.01
"""Slows those down who connect faster than they can be served."""

_CHUNK = 1 << 16
_END = re.compile(rb"\n\r?\n")


class HttpServer(Closing):
    """Listens at (host, port) from its creation until its close.

    Args:
        where: an address of this machine and a port; port 0: any that is free.
        admits: whether the request for this path (with its query) gets an answer; others get
            status 403 and nothing else.
        answer: answers in a separate thread. It gets the bytes of the request's head, and the
            connection, which it does not close.
        tls: a context of `ssl` for servers: TLS, with handshakes in time like requests.

    Attributes:
        address: (host, port) where it listens.

    Raises:
        OSError: bind(2) or listen(2) failed.
    """

    def __init__(
        self,
        where: tuple[str, int],
        admits: Callable[[str], bool],
        answer: Callable[[bytes, socket.socket], object],
        tls: SSLContext | None = None,
    ) -> None:
        self._admits = admits
        self._answer = answer
        self._tls = tls
        self._unready: tuple[type[OSError], ...] = (BlockingIOError,)
        if tls is not None:
            from ssl import SSLWantReadError, SSLWantWriteError

            self._unready += SSLWantReadError, SSLWantWriteError
        self._pending: dict[socket.socket, _Pending] = {}  # the oldest first
        self._answers: dict[threading.Thread, socket.socket] = {}
        self._lock = threading.Lock()
        is_v6 = ":" in where[0]
        self._listener = socket.create_server(
            where,
            family=socket.AF_INET6 if is_v6 else socket.AF_INET,
            backlog=PENDING,
            dualstack_ipv6=is_v6 and socket.has_dualstack_ipv6(),
        )
        self._listener.setblocking(False)
        self.address: tuple[str, int] = self._listener.getsockname()[:2]
        self._wake_read, self._wake_write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._selector.register(self._wake_read, selectors.EVENT_READ)
        self._closed = False
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def close(self) -> None:
        """End connections without a request; answers under way get five seconds more."""
        if self._closed:
            return
        self._closed = True
        os.write(self._wake_write, b"\0")
        self._thread.join()
        end = time.monotonic() + _LAST_ANSWERS_S
        with self._lock:
            answers = dict(self._answers)
        for thread in answers:
            thread.join(max(0, end - time.monotonic()))
        with self._lock:
            for connection in self._answers.values():
                with suppress(OSError):  # the client went away
                    connection.shutdown(socket.SHUT_RDWR)
        for thread in answers:
            thread.join()
        os.close(self._wake_read)
        os.close(self._wake_write)

    def _run(self) -> None:
        try:
            while not self._closed:
                for key, _ in self._selector.select(self._patience_s()):
                    if key.fileobj is self._listener:
                        self._accept()
                    elif key.data is not None and key.data.connection in self._pending:
                        self._read(key.data)
                self._drop_late()
        finally:
            for pending in list(self._pending.values()):
                self._drop(pending)
            self._selector.close()
            self._listener.close()

    def _patience_s(self) -> float | None:
        """Seconds until the oldest connection is late; None: there is none."""
        oldest = next(iter(self._pending.values()), None)
        return None if oldest is None else max(0, oldest.deadline - time.monotonic())

    def _drop_late(self) -> None:
        now = time.monotonic()
        for pending in list(self._pending.values()):
            if pending.deadline > now:
                return
            self._drop(pending)

    def _accept(self) -> None:
        made_room = False
        for _ in range(_AT_ONCE):
            try:
                connection, address = self._listener.accept()
            except BlockingIOError:
                break
            except OSError:  # the client has gone, or no descriptor is left
                made_room = True
                break
            made_room |= self._make_room(address[0])
            connection.setblocking(False)
            try:  # the first read shakes hands
                connection = self._wrap(connection)
            except OSError:  # the client has gone
                connection.close()
                continue
            self._pending[connection] = pending = _Pending(connection, address[0])
            self._selector.register(connection, selectors.EVENT_READ, pending)
        if made_room:
            time.sleep(_PAUSE_S)

    def _wrap(self, connection: socket.socket) -> socket.socket:
        if self._tls is None:
            return connection
        return self._tls.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)

    def _make_room(self, peer: str) -> bool:
        """Drop a connection if one more of `peer` would be too many; whether it was so."""
        counts = Counter(pending.peer for pending in self._pending.values())
        if counts[peer] < PENDING_OF_PEER:
            if len(self._pending) < PENDING:
                return False
            peer = counts.most_common(1)[0][0]
        self._drop(next(pending for pending in self._pending.values() if pending.peer == peer))
        return True

    def _drop(self, pending: _Pending) -> None:
        self._forget(pending)
        pending.connection.close()

    def _forget(self, pending: _Pending) -> None:
        self._selector.unregister(pending.connection)
        del self._pending[pending.connection]

    def _read(self, pending: _Pending) -> None:
        """Read the next bytes of a request, and answer it when it is complete."""
        head = pending.head
        try:
            data = pending.connection.recv(REQUEST_BYTES + 1 - len(head))
        except self._unready:
            return
        except OSError:
            data = b""
        if not data:
            self._drop(pending)
            return
        searched = max(0, len(head) - 3)
        head += data
        if not _END.search(head, searched):
            if len(head) > REQUEST_BYTES:
                self._refuse(
                    pending,
                    HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
                    "The request is too long.\n",
                )
        elif not self._admits(_path(head)):
            problem = "The token is missing or wrong: use the address that the command printed.\n"
            self._refuse(pending, HTTPStatus.FORBIDDEN, problem)
        elif len(self._answers) >= ANSWERS:
            problem = "Too many requests are in flight.\n"
            self._refuse(pending, HTTPStatus.SERVICE_UNAVAILABLE, problem)
        else:
            self._begin(pending)

    def _refuse(self, pending: _Pending, status: HTTPStatus, problem: str) -> None:
        """Send a short answer, which a new connection has room for, and end it."""
        self._forget(pending)
        with pending.connection, suppress(OSError):
            Request(bytes(pending.head), pending.connection).send(
                status, "text/plain", problem.encode()
            )
            pending.connection.shutdown(socket.SHUT_WR)

    def _begin(self, pending: _Pending) -> None:
        self._forget(pending)
        pending.connection.settimeout(STALLED_S)
        thread = threading.Thread(target=self._work, args=(bytes(pending.head), pending.connection))
        with self._lock:
            self._answers[thread] = pending.connection
        thread.start()

    def _work(self, head: bytes, connection: socket.socket) -> None:
        try:
            with connection, suppress(OSError):  # a client may go away
                self._answer(head, connection)
                connection.shutdown(socket.SHUT_WR)
        finally:
            with self._lock:
                del self._answers[threading.current_thread()]


class _Pending:
    """A connection that has not sent its whole request."""

    __slots__ = ("connection", "deadline", "head", "peer")

    def __init__(self, connection: socket.socket, peer: str) -> None:
        self.connection = connection
        self.peer = peer
        self.head = bytearray()
        self.deadline = time.monotonic() + REQUEST_S


def _path(head: bytearray) -> str:
    """Return the path of the request; empty if its first line has none."""
    words = str(head.partition(b"\n")[0], "iso-8859-1").split()
    return words[1] if len(words) > 1 else ""


class Request(BaseHTTPRequestHandler):
    """The answer to one request, whose bytes are all there already.

    Subclasses have `get`, which `answer` calls.
    """

    server_version = "purebpf"
    sys_version = ""

    def __init__(self, head: bytes, connection: socket.socket) -> None:
        # not the base's, which reads from the connection
        self.rfile = io.BytesIO(head)
        self.wfile = _Writer(connection)
        self.raw_requestline = self.rfile.readline()
        self.requestline = ""
        self.request_version = "HTTP/1.0"
        self.command = ""
        self.close_connection = True

    def answer(self) -> None:
        """Send the answer.

        Raises:
            OSError: the client has gone or takes nothing.
        """
        if not self.parse_request():  # it has sent why
            return
        if self.command == "GET":
            self.get()
        else:
            self.send_error(HTTPStatus.NOT_IMPLEMENTED)

    def get(self) -> None:
        """Answer a GET."""
        raise NotImplementedError

    def send(self, status: HTTPStatus, kind: str, content: bytes, name: str = "") -> None:
        """Send a whole answer; `name`: as which file a browser should keep it."""
        self.send_head(status, kind)
        self.send_header("Content-Length", str(len(content)))
        if name:
            self.send_header("Content-Disposition", f'attachment; filename="{name}"')
        self.end_headers()
        self.wfile.write(content)

    def send_head(self, status: HTTPStatus, kind: str) -> None:
        """Prepare the status and the headers that every answer has."""
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Cache-Control", "no-store")
        self.send_header("Referrer-Policy", "no-referrer")  # the token is in the address
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("X-Frame-Options", "DENY")

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
        """Standard error belongs to the measurement."""


class _Writer(io.BufferedIOBase):
    """Sends each piece that is written within `ANSWER_S`, or raises TimeoutError."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection

    def write(self, data: Any, /) -> int:
        end = time.monotonic() + ANSWER_S
        with memoryview(data) as view:
            for at in range(0, len(view), _CHUNK):
                if time.monotonic() > end:
                    raise TimeoutError("the client is too slow")
                self._connection.sendall(view[at : at + _CHUNK])
            return len(view)
