"""A page that shows a measurement while it runs: HTTP on this machine, and server-sent events.

Only who has the token in the address gets anything: other users of the machine can connect to
127.0.0.1 too, and so can any page in a browser.
"""

from __future__ import annotations

import hmac
import queue
import secrets
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from purebpf.cli.stop import HasFileno
from purebpf.closing import Closing
from purebpf.errors import KernelError
from purebpf.report import Profile, html, json

if TYPE_CHECKING:
    from purebpf.cli.results import Session

__all__ = ["LivePage", "show"]

_CLIENTS = 8
_BEHIND = 4  # events that a slow client may be behind before it loses one
_QUIET_S = 15.0
_STALLED_S = 10
_PATIENCE_S = 5.0


def show(measured: Session, live: LivePage, ends: Sequence[HasFileno]) -> None:
    """Show each second, until the end."""
    while not measured.wait(*ends, at_most_s=1):
        measured.take()
        live.send(measured.last)
        live.answer(measured.so_far)


class LivePage(Closing):
    """Serves a page at (host, port), from when it is made until it is closed; port 0: any free.

    `send` and `answer` belong to the thread that measures; requests run in threads of their own
    and reach the measurement only through them.

    Raises:
        KernelError: nobody can listen there.
    """

    def __init__(self, where: tuple[str, int], title: str) -> None:
        self.token = secrets.token_urlsafe(16)
        self._title = title
        self._second = 0
        self._clients: set[queue.Queue[str | None]] = set()
        self._wanted: queue.Queue[_Wish] = queue.Queue()
        self._lock = threading.Lock()
        self._closed = False
        try:
            self._server = _Server(where, self)
        except OSError as error:
            raise KernelError(
                "bind(2)",
                error.errno or 0,
                f"serving on {where[0]}:{where[1]}",
                fix="--serve without a port takes one that is free",
            ) from None
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.2,))
        self._thread.start()

    @property
    def url(self) -> str:
        """What to open in a browser."""
        host, port = self._server.server_address[:2]
        shown = f"[{host!s}]" if ":" in str(host) else str(host)
        return f"http://{shown}:{port}/?token={self.token}"

    def send(self, profile: Callable[[], Profile]) -> None:
        """Show what the last second found; it is not even asked for while nobody looks."""
        self._second += 1
        with self._lock:
            clients = list(self._clients)
        if not clients:
            return
        event = html.second(profile(), self._second)
        for client in clients:
            _put(client, event)

    def answer(self, everything: Callable[[], Profile]) -> None:
        """Let those have their snapshot who asked for one since the last time."""
        wishes = self._wishes()
        if wishes:
            profile = everything()
            for wish in wishes:
                wish.profile = profile
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

    def snapshot(self) -> Profile | None:
        """Everything so far, as soon as the measurement has time for it; None if it has not."""
        wish = _Wish()
        with self._lock:
            if self._closed:
                return None
            self._wanted.put(wish)
        wish.granted.wait(_PATIENCE_S)
        return wish.profile

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
        self._server.shutdown()
        self._thread.join()
        self._server.hang_up()
        self._server.server_close()


class _Wish:
    """A snapshot that somebody waits for."""

    def __init__(self) -> None:
        self.granted = threading.Event()
        self.profile: Profile | None = None


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


class _Server(ThreadingHTTPServer):
    """Joins its threads when it is closed, so that nothing is left of it."""

    daemon_threads = False

    def __init__(self, where: tuple[str, int], live: LivePage) -> None:
        import socket

        self.live = live
        self._silent: set[Any] = set()
        self._lock = threading.Lock()
        if ":" in where[0]:
            self.address_family = socket.AF_INET6
        super().__init__(where, _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Somebody has connected, and nothing is asked yet."""
        with self._lock:
            self._silent.add(request)
        super().process_request(request, client_address)

    def asked(self, request: Any) -> None:
        """Its request is complete: there will be an answer."""
        with self._lock:
            self._silent.discard(request)

    def shutdown_request(self, request: Any) -> None:
        """The connection ends."""
        self.asked(request)
        super().shutdown_request(request)

    def hang_up(self) -> None:
        """Disconnect those who have asked for nothing so far; nobody can connect any more."""
        import socket

        with self._lock:
            for request in self._silent:
                with suppress(OSError):  # it went away by itself
                    request.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no news."""


class _Handler(BaseHTTPRequestHandler):
    """One request."""

    server: _Server
    server_version = "purebpf"
    sys_version = ""
    timeout = _STALLED_S

    def do_GET(self) -> None:
        """Answer, if the token is right."""
        self.server.asked(self.request)
        asked = urlsplit(self.path)
        token = parse_qs(asked.query).get("token", [""])[0]
        live = self.server.live
        if not hmac.compare_digest(token.encode("utf-8", "replace"), live.token.encode()):
            problem = "The token is missing or wrong: use the address that the command printed.\n"
            self._send(HTTPStatus.FORBIDDEN, "text/plain", problem)
        elif asked.path == "/":
            self._send(HTTPStatus.OK, "text/html", live.page())
        elif asked.path == "/events":
            self._stream(live)
        elif asked.path in {"/snapshot.html", "/snapshot.json"}:
            self._snapshot(live, asked.path)
        else:
            self._send(HTTPStatus.NOT_FOUND, "text/plain", "There is no such page.\n")

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
        """Standard error belongs to the measurement."""

    def _send(self, status: HTTPStatus, kind: str, text: str, name: str = "") -> None:
        content = text.encode("utf-8", "backslashreplace")
        self._headers(status, kind)
        self.send_header("Content-Length", str(len(content)))
        if name:
            self.send_header("Content-Disposition", f'attachment; filename="{name}"')
        self.end_headers()
        self.wfile.write(content)

    def _headers(self, status: HTTPStatus, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Cache-Control", "no-store")
        self.send_header("Referrer-Policy", "no-referrer")  # the token is in the address
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("X-Frame-Options", "DENY")

    def _snapshot(self, live: LivePage, path: str) -> None:
        profile = live.snapshot()
        if profile is None:
            self._send(HTTPStatus.SERVICE_UNAVAILABLE, "text/plain", "It is over, or too busy.\n")
        elif path.endswith(".json"):
            self._send(HTTPStatus.OK, "application/json", json.document(profile), "snapshot.json")
        else:
            self._send(HTTPStatus.OK, "text/html", html.page(profile), "snapshot.html")

    def _stream(self, live: LivePage) -> None:
        client = live.join()
        if client is None:
            self._send(HTTPStatus.SERVICE_UNAVAILABLE, "text/plain", "Too many pages are open.\n")
            return
        try:
            self._headers(HTTPStatus.OK, "text/event-stream")
            self.end_headers()
            while (event := self._next(client)) is not None:
                self.wfile.write(event)
            self.wfile.write(b"event: end\ndata: {}\n\n")
        finally:
            live.leave(client)

    @staticmethod
    def _next(client: queue.Queue[str | None]) -> bytes | None:
        """The next event as it is sent; None at the end."""
        try:
            event = client.get(timeout=_QUIET_S)
        except queue.Empty:
            return b": still here\n\n"
        return None if event is None else f"event: second\ndata: {event}\n\n".encode()
