"""The live page's server: the token, the events, the snapshot, and the end of it."""

from __future__ import annotations

import errno
import http.client
import json as reader
import socket
import threading
import time
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from purebpf.cli.live import LivePage
from purebpf.errors import KernelError
from tests.support.builders.profiles import example

ANYWHERE = ("127.0.0.1", 0)


@pytest.fixture
def live() -> Iterator[LivePage]:
    with LivePage(ANYWHERE, "Sampling <everything>") as found:
        yield found


class Client:
    """One connection; closed at the end of its context."""

    def __init__(self, live: LivePage, path: str, token: str | None = None) -> None:
        address = urlsplit(live.url)
        assert address.hostname
        self.connection = http.client.HTTPConnection(address.hostname, address.port, timeout=10)
        self.connection.request("GET", f"{path}?token={live.token if token is None else token}")
        self.response = self.connection.getresponse()

    def __enter__(self) -> http.client.HTTPResponse:
        return self.response

    def __exit__(self, *_: object) -> None:
        self.response.close()
        self.connection.close()


def event(stream: http.client.HTTPResponse) -> tuple[str, str]:
    """The name and the data of the next event."""
    name, data = stream.readline(), stream.readline()
    assert stream.readline() == b"\n"
    return name.decode().strip(), data.decode().removeprefix("data: ")


def test_the_page_is_there_for_who_has_the_token(live: LivePage) -> None:
    with Client(live, "/") as response:
        text = response.read().decode()
    assert response.status == 200
    assert "<title>Sampling &lt;everything&gt;</title>" in text
    assert response.headers["Referrer-Policy"] == "no-referrer"
    assert "connect-src 'self'" in text


@pytest.mark.parametrize("token", ["", "wrong", "\u00e9", "x" * 1000])
@pytest.mark.parametrize("path", ["/", "/events", "/snapshot.html", "/nothing"])
def test_a_request_without_the_token_gets_nothing(live: LivePage, path: str, token: str) -> None:
    from urllib.parse import quote

    with Client(live, path, quote(token)) as response:
        assert response.status == 403
        assert live.token not in response.read().decode()


def test_a_path_that_is_not_there(live: LivePage) -> None:
    with Client(live, "/etc/passwd") as response:
        assert response.status == 404


def test_a_second_reaches_everybody_who_looks(live: LivePage) -> None:
    with Client(live, "/events") as one, Client(live, "/events") as other:
        live.send(example)
        for stream in (one, other):
            name, data = event(stream)
            assert name == "event: second"
            tree = reader.loads(data)
            assert tree["head"]["second"] == 1
            assert tree["head"]["total"] == 100


def test_a_page_without_viewers_is_not_rendered(live: LivePage) -> None:
    live.send(lambda: pytest.fail("no viewer asked for it"))


def test_who_is_too_slow_loses_the_oldest(live: LivePage) -> None:
    client = live.join()
    assert client
    for _ in range(10):
        live.send(example)
    seconds = [reader.loads(client.get() or "")["head"]["second"] for _ in range(client.qsize())]
    assert seconds == [7, 8, 9, 10]
    live.leave(client)


def test_there_are_not_too_many(live: LivePage) -> None:
    clients = [live.join() for _ in range(9)]
    assert clients[-1] is None
    with Client(live, "/events") as response:
        assert response.status == 503
    for client in clients[:-1]:
        assert client
        live.leave(client)


def test_the_end_is_reported() -> None:
    with LivePage(ANYWHERE, "") as live:
        client = Client(live, "/events")
        closer = threading.Thread(target=live.close)
        closer.start()
        assert event(client.response) == ("event: end", "{}\n")
        client.__exit__()
        closer.join()
        assert live.join() is None


@pytest.mark.parametrize("path", ["/snapshot.html", "/snapshot.json"])
def test_a_snapshot_is_everything_so_far(live: LivePage, path: str) -> None:
    found: list[bytes] = []

    def ask() -> None:
        with Client(live, path) as response:
            found.append(response.read())

    asking = threading.Thread(target=ask)
    asking.start()
    while asking.is_alive():
        live.answer(example)
        asking.join(0.02)
    title = b"Sampling at 99 Hertz" if path.endswith("json") else b" - CPU - 2 s"
    assert title in found[0]
    if path.endswith("json"):
        assert reader.loads(found[0])["total"] == 100


def test_an_address_in_use_is_reported() -> None:
    with socket.create_server(ANYWHERE) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(KernelError, match="listen on a free one") as raised:
            LivePage(("127.0.0.1", port), "")
    assert raised.value.errno == errno.EADDRINUSE


def test_each_page_has_a_token_of_its_own() -> None:
    with LivePage(ANYWHERE, "") as one, LivePage(ANYWHERE, "") as other:
        assert one.token != other.token
        assert one.token in one.url


@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\nHost: x\r\n"])
def test_who_has_asked_for_nothing_is_not_waited_for(sent: bytes) -> None:
    """Browsers connect before they have something to ask."""
    live = LivePage(ANYWHERE, "")
    address = urlsplit(live.url)
    with socket.create_connection((address.hostname or "", address.port or 0)) as idle:
        idle.sendall(sent)
        with Client(live, "/"):  # later: the other connection is accepted now
            pass
        began = time.monotonic()
        live.close()
        assert time.monotonic() - began < 5
        assert idle.recv(1) == b""


def test_an_answer_under_way_is_finished() -> None:
    found: list[int] = []
    live = LivePage(ANYWHERE, "")

    def ask() -> None:
        with Client(live, "/snapshot.json") as response:
            response.read()
            found.append(response.status)

    asking = threading.Thread(target=ask)
    asking.start()
    while live._wanted.empty():
        time.sleep(0.01)
    live.close()
    asking.join()
    assert found == [503]
