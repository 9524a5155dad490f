"""Stores that mean harm: what they send costs the agent a bounded time, and lines of its log."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from purebpf.services.agent import http_sinks
from purebpf.services.agent.config import Sink
from purebpf.services.agent.outcome import Outcome
from purebpf.services.agent.sinks import make_sink

SILENCE_S = 0.25
"""What such a sink waits for a byte."""


@contextmanager
def answering(answer: Callable[[socket.socket], object]) -> Iterator[str]:
    """A server that answers one request in its own way."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def run() -> None:
            with suppress(OSError):
                connection, _ = server.accept()
                with connection:
                    connection.recv(1 << 16)
                    answer(connection)

        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.getsockname()[1]}"
        finally:
            thread.join()


def drip(connection: socket.socket) -> None:
    """A header that goes on, a byte at a time, for half a minute."""
    connection.sendall(b"HTTP/1.1 200 OK\r\nX: ")
    end = time.monotonic() + 30
    while time.monotonic() < end:
        connection.sendall(b"x")
        time.sleep(SILENCE_S / 25)


def promise(connection: socket.socket) -> None:
    """Answers that another answer follows, for half a minute."""
    end = time.monotonic() + 30
    while time.monotonic() < end:
        connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n" * 10)
        time.sleep(SILENCE_S / 25)


@pytest.mark.parametrize("answer", [drip, promise])
def test_a_store_cannot_hold_a_sender_by_a_byte_at_a_time(
    answer: Callable[[socket.socket], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_sinks, "_TIMEOUTS", 2)
    with answering(answer) as url:
        begun = time.monotonic()
        outcome = make_sink(Sink("otlp", url=url, timeout_s=SILENCE_S)).send("x", b"data")
        took_s = time.monotonic() - begun
    assert outcome in (
        Outcome(why=f"{url}: no whole answer in {2 * SILENCE_S:g} s"),
        Outcome(why=f"{url}: got more than 100 interim responses"),  # Python 3.14.8 counts them
    )
    assert took_s < 15


def test_an_answer_other_than_http_is_a_short_line_of_the_log() -> None:
    text = b"\x1b[2J" + b"A" * 60_000 + b"\r\n\r\n"
    with answering(lambda connection: connection.sendall(text)) as url:
        outcome = make_sink(Sink("otlp", url=url)).send("x", b"data")
    assert not outcome.is_done
    assert outcome.why.startswith(f"{url}: [2JAAAA")
    assert len(outcome.why) < 300


@pytest.mark.parametrize("token", ["secret\ntail", "secret\x7f", "secret\u20ac"])
def test_a_token_of_two_lines_is_not_shown(token: str, tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text(token, encoding="utf-8")
    outcome = make_sink(Sink("otlp", url="http://127.0.0.1:9", token_file=str(path))).send("x", b"")
    assert outcome.why == f"http://127.0.0.1:9: {path} is not a token: expected one line"
