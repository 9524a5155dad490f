# mypy: ignore-errors
# flask and waitress are not among what this project installs
"""A web service with three problems, and clients that make it work: slow_service.py SECONDS.

Needs flask and waitress. The database is a process behind a socket. What is wrong with it, and how
purebpf shows that: docs/python.md.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import socket
import sys
import threading
import time
from multiprocessing import Process

import flask
from waitress.server import create_server

QUERY_S = 0.01
PORT = 8742
app = flask.Flask(__name__)


class Database:
    """One connection, which handlers share: the second problem."""

    def __init__(self, address: tuple[str, int]) -> None:
        self._lock = threading.Lock()
        self._socket = socket.create_connection(address)

    def query(self, text: str) -> bytes:
        """An answer; one query at a time."""
        with self._lock:
            self._socket.sendall(text.encode() + b"\n")
            return self._socket.recv(4096)


@app.route("/report")
def report() -> str:
    """The first problem: it works too much."""
    rows = [{"id": number, "sum": number / 7} for number in range(400)]
    return re.sub("[0-9]+", lambda digits: f"<b>{digits.group()}</b>", json.dumps(rows))


@app.route("/orders")
def orders() -> str:
    """Waits for the database."""
    return str(len(app.config["database"].query("select")))


def refresh_prices() -> None:
    """The third problem: a background thread that keeps the GIL half of the time."""
    while True:
        end = time.monotonic() + 0.05
        while time.monotonic() < end:
            sum(number / 7 for number in range(1000))
        time.sleep(0.05)


def answer_queries(listener: socket.socket) -> None:
    """The database: each query takes a while."""
    connection, _ = listener.accept()
    while connection.recv(4096):
        time.sleep(QUERY_S)
        connection.sendall(b"row " * 100)


def send_requests() -> None:
    """Four clients, which end with the service."""
    service = os.getppid()

    def ask(path: str) -> None:
        while os.getppid() == service:
            connection = http.client.HTTPConnection("127.0.0.1", PORT)
            try:
                connection.request("GET", path)
                connection.getresponse().read()
            except OSError:  # it does not listen yet
                time.sleep(0.05)
            connection.close()

    for path in ("/orders", "/orders", "/orders", "/report"):
        threading.Thread(target=ask, args=(path,)).start()


def main(seconds: float) -> None:
    """Serve for so long."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        others = [
            Process(target=answer_queries, args=(listener,), daemon=True),
            Process(target=send_requests, daemon=True),
        ]
        for other in others:
            other.start()
        app.config["database"] = Database(listener.getsockname()[:2])
    threading.Thread(target=refresh_prices, daemon=True).start()
    server = create_server(app, host="127.0.0.1", port=PORT, threads=8)
    threading.Thread(target=server.run, daemon=True).start()
    time.sleep(seconds)
    for other in others:
        other.kill()


if __name__ == "__main__":
    main(float(sys.argv[1]))
