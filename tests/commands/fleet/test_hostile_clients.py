"""A hub among clients who mean harm: those who wait, and bytes that become many."""

from __future__ import annotations

import gzip
import resource
import socket
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.commands.fleet.test_fleet import PATH, hub, post
from tests.support.host.deliveries import Truth, messages

pytestmark = pytest.mark.any_kernel


@contextmanager
def few_files(count: int) -> Iterator[None]:
    """What is started has so many descriptors."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (count, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def connect(port: int, said: bytes) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port), timeout=60)
    connection.sendall(said)
    return connection


@pytest.mark.parametrize(
    "said",
    [
        b"",
        f"POST {PATH} HTTP/1.1\r\nHo".encode(),
        b"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        f"POST {PATH} HTTP/1.1\r\nHost: a\r\nContent-Type: application/x-protobuf\r\n"
        "Content-Length: 16000\r\n\r\nbody".encode(),
    ],
    ids=["nothing", "half a head", "a request without a token", "a body without an end"],
)
def test_connections_that_wait_shut_no_other_out(tmp_path: Path, said: bytes) -> None:
    (sent,) = messages(Truth(), hosts=1, minutes=1)
    with ExitStack() as stack:
        with few_files(512):
            _, port = stack.enter_context(hub(tmp_path))
        for _ in range(600):
            stack.enter_context(connect(port, said))
        assert post(port, gzip.compress(sent.data)) == (200, "")


def test_a_head_that_drips_ends(tmp_path: Path) -> None:
    with hub(tmp_path) as (_, port), connect(port, b"GET /health HTTP/1.1\r\nHost:") as slow:
        assert slow.recv(1) == b""


def resident_mb(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    (line,) = [line for line in status.splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) / 1024


def test_bombs_that_wait_for_their_end_take_bounded_memory(tmp_path: Path) -> None:
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    bomb = packer.compress(bytes(15 << 20)) + packer.flush(zlib.Z_SYNC_FLUSH)
    head = (
        f"POST {PATH} HTTP/1.1\r\nHost: a\r\nContent-Type: application/x-protobuf\r\n"
        "Content-Encoding: gzip\r\nContent-Length: 1000000\r\n\r\n"
    ).encode()
    (sent,) = messages(Truth(), hosts=1, minutes=1)
    with hub(tmp_path) as (process, port), ExitStack() as stack:
        before = resident_mb(process.pid)
        for _ in range(60):
            stack.enter_context(connect(port, head + bomb))
        assert post(port, gzip.compress(sent.data)) == (200, "")
        assert resident_mb(process.pid) - before < 100  # unpacked, 60 of them are 900


def test_messages_under_way_have_a_limit_for_each_sender(tmp_path: Path) -> None:
    head = (
        f"POST {PATH} HTTP/1.1\r\nHost: a\r\nContent-Type: application/x-protobuf\r\n"
        "Content-Length: 16000000\r\n\r\n"
    ).encode()
    with hub(tmp_path) as (process, port), ExitStack() as stack:
        before = resident_mb(process.pid)
        for _ in range(2):
            stack.enter_context(connect(port, head + bytes(11 << 20)))
        with connect(port, head + bytes(11 << 20)) as third:
            assert b" 503 " in third.recv(64)
        assert resident_mb(process.pid) - before < 100
