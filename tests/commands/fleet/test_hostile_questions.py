"""`fleet serve` and a reader who types anything into each field of an address, and goes away."""

from __future__ import annotations

import http.client
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from urllib.parse import quote

import pytest

from tests.commands.conftest import ROOT
from tests.commands.fleet.test_fleet import fleet
from tests.commands.fleet.test_hostile_clients import resident_mb
from tests.support.host.deliveries import Truth, messages

pytestmark = pytest.mark.any_kernel
PAGES = ("/", "/regressions", "/diff", "/flamegraph", "/flamegraph.json", "/flamegraph.pb.gz")
RANGE = "since=2026-11-22T15:00&until=2026-11-22T15:10"
TEXTS = (
    "",
    "'",
    "';drop table samples;--",
    '" or 1=1 --',
    "\0",
    "\x1b[2J",
    "<script>",
    "é" * 200,
    "x" * 201,
    "x" * 10_000,
    "%",
    "../../etc/passwd",
    "\ud800".encode("utf-8", "surrogatepass").decode("latin-1"),
)
TIMES = (
    *("0d", "1d", "3000000d", "99999999999999999d", "1e9d", "-1d", ".d", "1..2d", "nand", "infd"),
    *("9" * 190 + "d", "٣d", "0001-01-01", "9999-12-31T23:59", "0001-01-01T00:00+23:59"),
    *("1970-01-01", "2199-12-31", "2026-W47", "2026-11-22T15:00:00.123456789", "now", "later"),
)
FIELDS = {
    "since": TIMES,
    "until": TIMES,
    "kind": ("cpu", "offcpu", "runqueue", "all", *TEXTS),
    "service": TEXTS,
    "build": TEXTS,
    "host": TEXTS,
    "label": ("=", "a=", "=b", "a=b", "a'=b", "comm=x", "labels[1]=2", "x=" + "y" * 198, *TEXTS),
    "against": ("before", "day", "week", "build", *TEXTS),
    "than": TEXTS,
    "token": TEXTS,
    "unknown": TEXTS,
}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("store")
    for number, one in enumerate(messages(Truth(), hosts=3, minutes=10)):
        (folder / f"{number}.otlp").write_bytes(one.data)
    fleet(folder / "store", "import", *map(str, folder.glob("*.otlp")))
    return str(folder / "store")


@contextmanager
def pages(store: str) -> Iterator[tuple[subprocess.Popen[str], int, str]]:
    """The server, its port and token."""
    words = [sys.executable, "-m", "purebpf", "fleet", "serve", "--store", store]
    with subprocess.Popen(
        [*words, "--listen", "127.0.0.1:0"], stderr=subprocess.PIPE, text=True, cwd=ROOT
    ) as process:
        try:
            assert process.stderr
            line = process.stderr.readline()
            match = re.search(r"http\S+:(\d+)/\?token=(\S+)", line)
            assert match, line + process.stderr.read()
            yield process, int(match[1]), match[2]
        finally:
            process.kill()


def ask(port: int, token: str, address: str) -> tuple[int, bytes]:
    """Status and body of a page, which must be whole."""
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=120)) as client:
        client.request("GET", address, headers={"Authorization": f"Bearer {token}"})
        answer = client.getresponse()
        return answer.status, answer.read()


def leave(port: int, token: str, address: str) -> None:
    """Ask, and go away."""
    request = f"GET {address} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {token}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        connection.sendall(request.encode())


@pytest.mark.nightly
@pytest.mark.slow
def test_no_field_of_a_page_takes_it_from_other_readers(store: str) -> None:
    with pages(store) as (process, port, token):
        for name, values in FIELDS.items():
            for number, value in enumerate(values):
                path = PAGES[number % len(PAGES)]
                given = f"{name}={quote(value)}"
                rest = RANGE if name not in ("since", "until") else ""
                status, body = ask(port, token, f"{path}?{given}&{rest}")
                assert status in (200, 400, 422), (path, name, value[:40], status, body[-300:])
                leave(port, token, f"{path}?{given}&{rest}")
        assert ask(port, token, f"/?{RANGE}")[0] == 200
        assert resident_mb(process.pid) < 300
        process.send_signal(signal.SIGTERM)
        assert process.stderr
        assert "Traceback" not in process.stderr.read()
        assert process.wait(60) == 0


def test_a_server_is_not_held_by_questions_when_it_ends(store: str) -> None:
    with pages(store) as (process, port, token):
        assert ask(port, token, "/?since=99999999999999999d")[0] == 400
        for since in ("20000d", "1970-01-02"):
            for path in PAGES:
                leave(port, token, f"{path}?since={since}")
        assert ask(port, token, "/?since=20000d")[0] == 200
        process.send_signal(signal.SIGTERM)
        assert process.stderr
        assert "Traceback" not in process.stderr.read()
        assert process.wait(60) == 0
