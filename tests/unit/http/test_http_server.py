"""The live page's port among clients that are slow, many, or send nonsense."""

from __future__ import annotations

import gc
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress

import pytest

from purebpf.cli.live import LivePage
from purebpf.http import server as http_server
from purebpf.http.server import HttpServer, Request
from purebpf.measure.run import collecting
from tests.support.builders.profiles import example

ANYWHERE = ("127.0.0.1", 0)
GOOD = b"GET /good HTTP/1.1\r\n\r\n"
PATIENCE_S = 20


class Hello(Request):
    def get(self) -> None:
        self.send(200, "text/plain", b"hello")  # type: ignore[arg-type]


def answer(head: bytes, connection: socket.socket) -> None:
    Hello(head, connection).answer()


@pytest.fixture
def server() -> Iterator[HttpServer]:
    with HttpServer(ANYWHERE, lambda path: path == "/good", answer) as made:
        yield made


def asked(server: HttpServer, request: bytes = GOOD) -> bytes:
    """All that comes back; b"" also where the connection was reset."""
    with socket.create_connection(server.address, timeout=PATIENCE_S) as connection:
        try:
            connection.sendall(request)
            return b"".join(iter(lambda: connection.recv(1 << 16), b""))
        except ConnectionResetError:
            return b""


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def until(count: int) -> None:
    """Wait until no more descriptors than that are open."""
    deadline = time.monotonic() + PATIENCE_S
    while descriptors() > count:
        assert time.monotonic() < deadline, descriptors()
        time.sleep(0.01)


def test_a_request_in_pieces(server: HttpServer) -> None:
    with socket.create_connection(server.address, timeout=PATIENCE_S) as connection:
        for byte in GOOD:
            connection.sendall(bytes([byte]))
            time.sleep(0.001)
        found = b"".join(iter(lambda: connection.recv(1 << 16), b""))
    assert found.startswith(b"HTTP/1.0 200")
    assert found.endswith(b"\r\n\r\nhello")


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"GET /bad HTTP/1.1\r\n\r\n", b"403"),
        (b"POST /bad HTTP/1.1\r\n\r\n", b"403"),
        (b"POST /good HTTP/1.1\r\n\r\n", b"501"),
        (b"GET /good HTTP/1.1\r\n:\r\n\r\n", b"200"),
        (b"GET //[ HTTP/1.1\r\n\r\n", b"403"),
        (b"\r\n\r\n", b"403"),
        (b"\xff\xfe\0\x85\n\n", b"403"),
        (b"GET /good HTTP/1.1\r\nX: " + b"x" * http_server.REQUEST_BYTES, b"431"),
    ],
)
def test_each_request_is_answered(server: HttpServer, request_: bytes, status: bytes) -> None:
    assert asked(server, request_).split(maxsplit=2)[1] == status
    assert asked(server).endswith(b"hello")


def test_connections_that_drip_end(server: HttpServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit is for the whole request, not for each byte."""
    monkeypatch.setattr(http_server, "REQUEST_S", 0.5)
    began = time.monotonic()
    with socket.create_connection(server.address, timeout=PATIENCE_S) as slow:
        slow.sendall(b"GET / HTTP/1.1\r\nX: ")
        with suppress(OSError):
            while time.monotonic() < began + PATIENCE_S:
                slow.sendall(b"a")
                time.sleep(0.05)
    assert time.monotonic() - began < PATIENCE_S


def test_a_flood_takes_few_descriptors_and_shuts_out_none(server: HttpServer) -> None:
    before, most = descriptors(), 0
    with ExitStack() as stack:
        for number in range(300):
            slow = stack.enter_context(closing(socket.create_connection(server.address)))
            slow.sendall(b"GET / HTTP/1.1\r\nX: ")
            most = max(most, descriptors() - before - number)
            if number % 50 == 49:
                assert asked(server).endswith(b"hello")
    # those of this test are counted beside the server's
    assert most <= http_server.PENDING_OF_PEER + http_server.PENDING + 2
    until(before + http_server.PENDING_OF_PEER)


def test_another_peer_has_its_own_share(server: HttpServer) -> None:
    """127.0.0.2 is this machine, too, and another address."""
    with ExitStack() as stack:
        first = stack.enter_context(
            socket.create_connection(server.address, source_address=("127.0.0.2", 0))
        )
        first.settimeout(PATIENCE_S)
        first.sendall(GOOD[:-1])
        for _ in range(2 * http_server.PENDING):
            slow = stack.enter_context(closing(socket.create_connection(server.address)))
            slow.sendall(b"G")
        first.sendall(GOOD[-1:])
        assert b"hello" in b"".join(iter(lambda: first.recv(1 << 16), b""))


def test_answers_are_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "ANSWERS", 2)
    go_on = threading.Event()

    def wait(head: bytes, connection: socket.socket) -> None:
        go_on.wait(PATIENCE_S)
        answer(head, connection)

    with HttpServer(ANYWHERE, lambda _: True, wait) as server, ExitStack() as stack:
        waiting = [stack.enter_context(socket.create_connection(server.address)) for _ in range(2)]
        for connection in waiting:
            connection.sendall(GOOD)
        deadline = time.monotonic() + PATIENCE_S
        while len(server._answers) < 2:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        assert b" 503 " in asked(server)
        go_on.set()
        for connection in waiting:
            assert b"".join(iter(lambda: connection.recv(1 << 16), b"")).endswith(b"hello")  # noqa: B023


def test_a_client_that_takes_nothing_does_not_hold_up_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(http_server, "_LAST_ANSWERS_S", 0.3)
    begun = threading.Event()

    def much(head: bytes, connection: socket.socket) -> None:
        begun.set()
        Hello(head, connection).send(200, "text/plain", bytes(1 << 26))  # type: ignore[arg-type]

    before = descriptors()
    server = HttpServer(ANYWHERE, lambda _: True, much)
    with socket.create_connection(server.address) as connection:
        connection.sendall(GOOD)
        assert begun.wait(PATIENCE_S)
        began = time.monotonic()
        server.close()
        assert time.monotonic() - began < http_server.STALLED_S / 2
    assert descriptors() == before


def test_an_answer_that_takes_too_long_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """However steadily the client takes its bytes."""
    monkeypatch.setattr(http_server, "ANSWER_S", 0.2)
    ended = threading.Event()

    def much(head: bytes, connection: socket.socket) -> None:
        try:
            Hello(head, connection).send(200, "text/plain", bytes(1 << 26))  # type: ignore[arg-type]
        except TimeoutError:
            ended.set()

    with (
        HttpServer(ANYWHERE, lambda _: True, much) as server,
        socket.create_connection(server.address) as connection,
    ):
        connection.sendall(GOOD)
        deadline = time.monotonic() + PATIENCE_S
        while not ended.is_set():
            assert time.monotonic() < deadline
            connection.recv(1 << 16)
            time.sleep(0.05)


def snapshot(live: LivePage, path: str) -> bytes:
    """What a client gets, while the measurement goes on."""
    found: list[bytes] = []
    request = f"GET {path}?token={live.token} HTTP/1.1\r\n\r\n".encode()
    client = threading.Thread(target=lambda: found.append(asked(live._server, request)))
    client.start()
    while client.is_alive():
        live.answer(example)
        client.join(0.01)
    return found[0]


def test_pages_and_snapshots_leave_no_cyclic_garbage() -> None:
    """Each kept its profile, 5 MB, as long as garbage was not collected."""
    paths = ("/", "/snapshot.html", "/snapshot.json", "/events")
    with LivePage(ANYWHERE, "") as live:
        for path in paths[:-1]:  # what the first one imports
            assert b" 200 " in snapshot(live, path)
        gc.collect()
        gc.disable()
        try:
            for path in paths[:-1]:
                snapshot(live, path)
            assert gc.collect() == 0
        finally:
            gc.enable()


def test_all_who_ask_at_once_share_a_snapshot() -> None:
    with LivePage(ANYWHERE, "") as live:
        made = []
        request = f"GET /snapshot.json?token={live.token} HTTP/1.1\r\n\r\n".encode()
        clients = [threading.Thread(target=asked, args=(live._server, request)) for _ in range(8)]
        for client in clients:
            client.start()
        deadline = time.monotonic() + PATIENCE_S
        while live._wanted.qsize() < len(clients):
            assert time.monotonic() < deadline
            time.sleep(0.01)

        def everything() -> object:
            made.append(1)
            return example()

        live.answer(everything)  # type: ignore[arg-type]
        for client in clients:
            client.join()
    assert made == [1]


def test_garbage_is_collected_in_what_goes_on_for_long() -> None:
    gc.disable()
    try:
        with collecting():
            assert gc.isenabled()
            assert gc.get_freeze_count()
        assert not gc.isenabled()
        assert not gc.get_freeze_count()
    finally:
        gc.enable()
