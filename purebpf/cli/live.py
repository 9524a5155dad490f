"""A page that shows a measurement while it runs: HTTP on this machine, and server-sent events.

Only who has the token in the address gets anything: other users of the machine can connect to
127.0.0.1 too, and so can any page in a browser.
"""

from __future__ import annotations

import hmac
import queue
import secrets
import threading
import time
from collections.abc import Callable
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

from purebpf.closable import Closing
from purebpf.errors import KernelError
from purebpf.http.server import HttpServer, Request
from purebpf.results import Profile
from purebpf.results.formats import html, json

if TYPE_CHECKING:
    import socket

    from purebpf.measure.session import RunningProfile

__all__ = ["LivePage"]

_CLIENTS = 8
_BEHIND = 4  # events that a slow client may be behind before it loses one
_QUIET_S = 15.0
_PATIENCE_S = 5.0
_SNAPSHOTS = {"/snapshot.html": "text/html", "/snapshot.json": "application/json"}


class LivePage(Closing):
    """Serves a page at (host, port) until it is closed; port 0: any free.

    `send` and `answer` belong to the measuring thread; requests run in separate threads and reach
    the measurement only through them. `shown` changes a profile before it is shown.

    Raises:
        KernelError: the address cannot be bound.
    """

    def __init__(
        self,
        where: tuple[str, int],
        title: str,
        *,
        shown: Callable[[Profile], Profile] | None = None,
    ) -> None:
        self.token = secrets.token_urlsafe(16)
        self._title = title
        self._shown = shown or (lambda profile: profile)
        self._second = 0
        self._begun_at = self._sent_at = time.monotonic()
        self._clients: set[queue.Queue[str | None]] = set()
        self._wanted: queue.Queue[_Wish] = queue.Queue()
        self._lock = threading.Lock()
        self._closed = False
        try:
            self._server = HttpServer(where, self._has_token, self._answer_request)
        except OSError as error:
            raise KernelError(
                "bind(2)",
                error.errno or 0,
                f"serving on {where[0]}:{where[1]}",
                fix="use --serve without a port to listen on a free one",
            ) from None

    @property
    def url(self) -> str:
        """The address to open in a browser."""
        host, port = self._server.address
        shown = f"[{host}]" if ":" in host else host
        return f"http://{shown}:{port}/?token={self.token}"

    def show(self, measured: RunningProfile) -> None:
        """Send the changes since the last call, and answer requests for everything."""
        self.send(measured.last)
        self.answer(measured.so_far)

    def send(self, profile: Callable[[], Profile]) -> None:
        """Send the results of the last second; do nothing while no browser is connected."""
        self._second += 1
        now = time.monotonic()
        length_s, self._sent_at = now - self._sent_at, now
        with self._lock:
            clients = list(self._clients)
        if not clients:
            return
        at_s = now - self._begun_at
        event = html.second(self._shown(profile()), self._second, at_s=at_s, length_s=length_s)
        for client in clients:
            _put(client, event)

    def answer(self, everything: Callable[[], Profile]) -> None:
        """Answer the requests for a snapshot since the last call."""
        wishes = self._wishes()
        if wishes:
            snapshot = _Snapshot(self._shown(everything()))
            for wish in wishes:
                wish.snapshot = snapshot
                wish.granted.set()

    def _wishes(self) -> list[_Wish]:
        wishes = []
        while not self._wanted.empty():
            wishes.append(self._wanted.get_nowait())
        return wishes

    def join(self) -> queue.Queue[str | None] | None:
        """A place for a client's events; None: there are too many, or it is over."""
        with self._lock:
            if self._closed or len(self._clients) >= _CLIENTS:
                return None
            client: queue.Queue[str | None] = queue.Queue(_BEHIND)
            self._clients.add(client)
            return client

    def leave(self, client: queue.Queue[str | None]) -> None:
        """The client has gone."""
        with self._lock:
            self._clients.discard(client)

    def snapshot(self) -> _Snapshot | None:
        """Everything so far, as soon as the measurement has time for it; None if it has not."""
        wish = _Wish()
        with self._lock:
            if self._closed:
                return None
            self._wanted.put(wish)
        wish.granted.wait(_PATIENCE_S)
        return wish.snapshot

    def _has_token(self, path: str) -> bool:
        token = parse_qs(path.partition("?")[2]).get("token", [""])[0]
        return hmac.compare_digest(token.encode("utf-8", "replace"), self.token.encode())

    def _answer_request(self, head: bytes, connection: socket.socket) -> None:
        _Request(head, connection, self).answer()

    def page(self) -> str:
        """The page itself."""
        return html.live_page(self._title)

    def close(self) -> None:
        """Tell everybody that it is over, and stop; answers under way are finished."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            clients = list(self._clients)
        for client in clients:
            _put(client, None)
        for wish in self._wishes():
            wish.granted.set()
        self._server.close()


class _Snapshot:
    """Everything up to a moment, as files, shared by all requests of the same second."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._lock = threading.Lock()
        self._files: dict[str, bytes] = {}

    def file(self, name: str) -> bytes:
        """The bytes of snapshot.html or snapshot.json, made when first asked for."""
        with self._lock:
            if name not in self._files:
                write = json.document if name.endswith(".json") else html.page
                self._files[name] = _encode(write(self._profile))
            return self._files[name]


class _Wish:
    """A client's request for a snapshot."""

    def __init__(self) -> None:
        self.granted = threading.Event()
        self.snapshot: _Snapshot | None = None


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "backslashreplace")


def _put(client: queue.Queue[str | None], event: str | None) -> None:
    """Append to a client's events; one that is too far behind loses its oldest."""
    while True:
        try:
            client.put_nowait(event)
        except queue.Full:
            try:
                client.get_nowait()
            except queue.Empty:
                pass
        else:
            return


class _Request(Request):
    """One request that has the token."""

    def __init__(self, head: bytes, connection: socket.socket, live: LivePage) -> None:
        super().__init__(head, connection)
        self._live = live

    def get(self) -> None:
        """Answer."""
        path = self.path.partition("?")[0]
        if path == "/":
            self.send(HTTPStatus.OK, "text/html", _encode(self._live.page()))
        elif path == "/events":
            self._stream()
        elif path in _SNAPSHOTS:
            self._snapshot(path)
        else:
            self.send(HTTPStatus.NOT_FOUND, "text/plain", b"There is no such page.\n")

    def _snapshot(self, path: str) -> None:
        snapshot = self._live.snapshot()
        if snapshot is None:
            problem = b"It is over, or too busy.\n"
            self.send(HTTPStatus.SERVICE_UNAVAILABLE, "text/plain", problem)
        else:
            name = path.removeprefix("/")
            self.send(HTTPStatus.OK, _SNAPSHOTS[path], snapshot.file(name), name)

    def _stream(self) -> None:
        client = self._live.join()
        if client is None:
            problem = b"Too many pages are open.\n"
            self.send(HTTPStatus.SERVICE_UNAVAILABLE, "text/plain", problem)
            return
        try:
            self.send_head(HTTPStatus.OK, "text/event-stream")
            self.end_headers()
            while (event := self._next(client)) is not None:
                self.wfile.write(event)
            self.wfile.write(b"event: end\ndata: {}\n\n")
        finally:
            self._live.leave(client)

    @staticmethod
    def _next(client: queue.Queue[str | None]) -> bytes | None:
        """The next event as it is sent; None at the end."""
        try:
            event = client.get(timeout=_QUIET_S)
        except queue.Empty:
            return b": still here\n\n"
        return None if event is None else f"event: second\ndata: {event}\n\n".encode()
