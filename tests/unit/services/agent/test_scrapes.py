"""The port of the agent's metrics: what Prometheus gets, and what strangers cannot hold up."""

from __future__ import annotations

import gzip
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple
from urllib.request import Request, urlopen

import pytest

from purebpf.errors import KernelError
from purebpf.services.agent.config import ConfigError, Metrics
from purebpf.services.agent.metrics.exporter import Exporter
from purebpf.services.agent.metrics.families import State

STATE = State(19, 1, 0, 0, 0, ())
SILENT = 200
PATIENCE_S = 20


class Served(NamedTuple):
    """An exporter that listens."""

    port: int
    wanted: Metrics


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """Files of a certificate for 127.0.0.1, and of its key."""
    folder = tmp_path_factory.mktemp("tls")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
         "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1",
         "-keyout", folder / "key", "-out", folder / "certificate"],
        check=True, capture_output=True,
    )  # fmt: skip
    return str(folder / "certificate"), str(folder / "key")


@pytest.fixture(params=["plain", "tls", "mutual"])
def served(request: pytest.FixtureRequest, certificate: tuple[str, str]) -> Iterator[Served]:
    wanted = Metrics(listen="127.0.0.1:0")
    if request.param != "plain":
        wanted = wanted._replace(certificate=certificate[0], key=certificate[1])
    if request.param == "mutual":
        wanted = wanted._replace(client_ca=certificate[0])
    with Exporter(wanted, 60, lambda: STATE) as made:
        yield Served(made.port, wanted)


def scrape(served: Served, headers: dict[str, str] | None = None) -> tuple[str, bytes, str]:
    """Type, content and encoding of an answer."""
    context = None
    if served.wanted.certificate:
        context = ssl.create_default_context(cafile=served.wanted.certificate)
    if context is not None and served.wanted.client_ca:
        context.load_cert_chain(served.wanted.certificate, served.wanted.key)
    address = f"{'https' if context else 'http'}://127.0.0.1:{served.port}/metrics"
    with urlopen(
        Request(address, headers=headers or {}), timeout=PATIENCE_S, context=context
    ) as answer:
        return (
            answer.headers["Content-Type"],
            answer.read(),
            answer.headers["Content-Encoding"] or "",
        )


def test_a_scraper_chooses_the_format(served: Served) -> None:
    kind, text, encoding = scrape(served)
    assert kind.startswith("text/plain")
    assert b"purebpf_agent_windows_total" in text
    assert encoding == ""
    kind, packed, encoding = scrape(
        served,
        {"Accept": "application/openmetrics-text; version=1.0.0", "Accept-Encoding": "gzip"},
    )
    assert kind.startswith("application/openmetrics-text")
    assert encoding == "gzip"
    assert gzip.decompress(packed).endswith(b"# EOF\n")


def test_connections_that_say_nothing_hold_up_no_scrape(served: Served) -> None:
    threads = threading.active_count()
    with ExitStack() as held:
        for _ in range(SILENT):
            held.enter_context(socket.create_connection(("127.0.0.1", served.port), PATIENCE_S))
        assert b"purebpf_agent_windows_total" in scrape(served)[1]
        assert threading.active_count() <= threads + 1


def test_half_a_handshake_holds_up_no_scrape(served: Served) -> None:
    with socket.create_connection(("127.0.0.1", served.port), PATIENCE_S) as client:
        client.sendall(b"\x16\x03\x01\x02\x00\x01")
        assert b"purebpf_agent_windows_total" in scrape(served)[1]


def test_a_scraper_without_a_certificate_gets_nothing(certificate: tuple[str, str]) -> None:
    path, key = certificate
    wanted = Metrics(listen="127.0.0.1:0", certificate=path, key=key, client_ca=path)
    context = ssl.create_default_context(cafile=path)
    with Exporter(wanted, 60, lambda: STATE) as exporter:
        address = f"https://127.0.0.1:{exporter.port}/metrics"
        with pytest.raises(OSError, match=r"(?i)certificate|reset|EOF|closed"):
            urlopen(address, timeout=PATIENCE_S, context=context)


def test_a_port_that_is_taken_is_an_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        where = f"127.0.0.1:{server.getsockname()[1]}"
        with (
            pytest.raises(KernelError, match="EADDRINUSE"),
            Exporter(Metrics(listen=where), 60, lambda: STATE),
        ):
            pass


def test_a_certificate_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    wanted = Metrics(listen="127.0.0.1:0", certificate=str(tmp_path / "file"), key="/none")
    with pytest.raises(KernelError, match="ENOENT"), Exporter(wanted, 60, lambda: STATE):
        pass
    (tmp_path / "file").write_text("nonsense")
    wanted = wanted._replace(key=str(tmp_path / "file"))
    with pytest.raises(ConfigError, match="certificate, key"), Exporter(wanted, 60, lambda: STATE):
        pass
