"""A store for profiles on loopback that answers as a test wants it, also badly."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

__all__ = ["HttpSink", "Received", "serving"]


class Received(NamedTuple):
    """A request."""

    path: str
    headers: dict[str, str]
    body: bytes


class HttpSink:
    """What came, and how to answer.

    Attributes:
        answers: (status, headers) of the next requests; then 200. Status 0: close in the middle of
            an answer; -1: never answer.
        received: requests that were read whole.
    """

    def __init__(self) -> None:
        self.answers: list[tuple[int, dict[str, str]]] = []
        self.received: list[Received] = []
        self.over = threading.Event()
        self.url = ""


@contextmanager
def serving(tls: ssl.SSLContext | None = None) -> Iterator[HttpSink]:
    """Serve on a free port of 127.0.0.1."""
    sink = HttpSink()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            sink.received.append(Received(self.path, dict(self.headers), body))
            status, headers = sink.answers.pop(0) if sink.answers else (200, {})
            if status < 0:
                sink.over.wait(60)
                return
            if status == 0:
                self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\nhal")
                self.close_connection = True
                return
            self.send_response(status)
            for name, value in {"Content-Length": "0", **headers}.items():
                self.send_header(name, value)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    class Server(ThreadingHTTPServer):
        def handle_error(self, *_: Any) -> None:
            """Clients may refuse the certificate."""

    with Server(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        sink.url = f"http{'s' if tls else ''}://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield sink
        finally:
            sink.over.set()
            server.shutdown()
            thread.join()
