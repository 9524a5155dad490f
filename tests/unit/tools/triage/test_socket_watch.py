"""Connections whose data was sent again, by the lines of /proc/PID/net/tcp."""

from __future__ import annotations

import os

import pytest

from purebpf.tools.triage import socket_watch
from purebpf.tools.triage.socket_watch import SocketWatch

HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout"
LINE = (
    "   0: 01004D0A:AC8E 02004D0A:1C86 {state} 00000045:00000000 01:00000014 {again} 0 0 777 2 "
    "0000000000000000 204 4 16 10 -1"
)


def watch(monkeypatch: pytest.MonkeyPatch, *looks: tuple[str, str]) -> SocketWatch:
    """Look at one connection, with a state and a number of retransmissions each time."""
    watching = SocketWatch()
    monkeypatch.setattr(socket_watch, "_namespaces", lambda: {1: os.getpid()})
    for state, again in looks:
        text = f"{HEAD}\n{LINE.format(state=state, again=again)}\n"
        monkeypatch.setattr(
            socket_watch, "read_text", lambda path, text=text: text if path.endswith("/tcp") else ""
        )
        watching.tick()
    return watching


def test_the_part_of_the_time_that_data_was_sent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = (("01", "00000000"), ("01", "00000001"), ("01", "00000003"), ("01", "00000000"))
    (socket,) = watch(monkeypatch, *looks).finish()
    assert (socket.peer, socket.peer_port, socket.resent) == ("10.77.0.2", 7302, 0.5)


def test_what_is_sent_again_before_and_after_a_connection_is_no_data(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (socket,) = watch(monkeypatch, ("02", "00000002"), ("04", "00000005")).finish()
    assert socket.resent == 0.0
