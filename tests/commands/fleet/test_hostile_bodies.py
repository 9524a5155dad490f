"""A hub and what a sender with a token can write into each field: the others notice nothing."""

from __future__ import annotations

import gzip
import http.client
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from tests.commands.fleet.test_fleet import PATH, hub
from tests.commands.fleet.test_hostile_clients import resident_mb
from tests.support.host.deliveries import Truth, messages
from tests.support.host.hostile_bodies import bodies

pytestmark = pytest.mark.any_kernel
MOST_MB = 300
CPU_S = 8.0
"""A message may take that; the machine's load does not count."""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, int]]:
    """The process and port of a hub."""
    folder = tmp_path_factory.mktemp("hub")
    tokens = folder / "tokens"
    tokens.touch(0o600)
    tokens.write_text("evil\nhonest\n")
    with hub(folder, "--tokens", str(tokens)) as (process, port):
        yield process.pid, port


def send(port: int, data: bytes, encoding: str, token: str = "evil") -> int:
    """The status of the answer; 0: the connection ended."""
    headers = {
        "Content-Type": "application/x-protobuf",
        "Content-Encoding": encoding,
        "Authorization": f"Bearer {token}",
    }
    with (
        suppress(OSError),
        closing(http.client.HTTPConnection("127.0.0.1", port, timeout=120)) as client,
    ):
        client.request("POST", PATH, data, headers)
        return client.getresponse().status
    return 0


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.nightly
@pytest.mark.slow
def test_no_field_takes_the_hub_from_the_others(served: tuple[int, int]) -> None:
    pid, port = served
    (sent,) = messages(Truth(), hosts=1, minutes=1)
    honest = gzip.compress(sent.data)
    bad = []
    for name, data, encoding in bodies():
        began_s = cpu_s(pid)
        evil: list[int] = []
        sender = threading.Thread(target=lambda d, e, r: r.append(send(port, d, e)),
                                  args=(data, encoding, evil))  # fmt: skip
        sender.start()
        assert send(port, honest, "gzip", "honest") == 200, name
        sender.join()
        took_s = cpu_s(pid) - began_s
        if evil[0] not in (200, 400, 413) or took_s > CPU_S or resident_mb(pid) > MOST_MB:
            bad.append(f"{name}: {evil[0]}, {took_s:.1f} s, {resident_mb(pid):.0f} MB")
    assert not bad, "\n".join(bad)


def test_a_body_in_pieces_of_a_byte(served: tuple[int, int]) -> None:
    pid, port = served
    head = (
        f"POST {PATH} HTTP/1.1\r\nHost: a\r\nContent-Type: application/x-protobuf\r\n"
        "Authorization: Bearer evil\r\nTransfer-Encoding: chunked\r\n\r\n"
    ).encode()
    with socket.create_connection(("127.0.0.1", port), timeout=120) as connection:
        connection.sendall(head + b"1\r\n\x12\r\n" * 100_000)
        assert send(port, b"", "identity", "honest") == 200
        connection.sendall(b"0\r\n\r\n")
        assert connection.recv(12) == b"HTTP/1.1 400"
    assert resident_mb(pid) < MOST_MB


def test_many_bodies_of_one_sender_wait_for_each_other_only(served: tuple[int, int]) -> None:
    pid, port = served
    strings = b"\x12\xfe\xff\x3f" + b"\x2a\0" * (0xFFFFE // 2)
    evil: list[int] = []
    senders = [
        threading.Thread(target=lambda: evil.append(send(port, strings, "identity")))
        for _ in range(40)
    ]
    for sender in senders:
        sender.start()
    assert send(port, b"", "identity", "honest") == 200
    for sender in senders:
        sender.join()
    assert set(evil) <= {200, 400, 503}
    assert resident_mb(pid) < MOST_MB
