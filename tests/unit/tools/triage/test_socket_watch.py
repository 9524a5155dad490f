"""Data that is not acknowledged, by the lines of /proc/PID/net/tcp and snmp."""

from __future__ import annotations

import os

import pytest

from purebpf.findings.facts import SegmentCount
from purebpf.tools.triage import socket_watch
from purebpf.tools.triage.socket_watch import SocketWatch

HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout"
LINE = (
    "   0: 01004D0A:AC8E 02004D0A:1C86 {state} {unacknowledged}:00000000 01:00000014 00000000 0 0 "
    "777 2 0000000000000000 204 4 16 10 -1"
)
SNMP = "Ip: Forwarding\nIp: 1\nTcp: ActiveOpens OutSegs RetransSegs\nTcp: 5 {sent} {again}\n"


def watch(
    monkeypatch: pytest.MonkeyPatch, *looks: tuple[str, str], snmp: str = SNMP
) -> SocketWatch:
    """Look at one connection, with a state and a number of unacknowledged bytes each time."""
    watching = SocketWatch()
    monkeypatch.setattr(socket_watch, "_namespaces", lambda: {1: os.getpid()})
    for number, (state, unacknowledged) in enumerate(looks):
        line = LINE.format(state=state, unacknowledged=unacknowledged)
        files = {
            "tcp": f"{HEAD}\n{line}\n",
            "snmp": snmp.format(sent=100 + 50 * number, again=10 * number),
        }
        monkeypatch.setattr(
            socket_watch, "read_text", lambda path, files=files: files.get(path.split("/")[-1], "")
        )
        watching.tick()
    return watching


def test_the_part_of_the_time_that_data_is_not_acknowledged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks = (("01", "00000000"), ("01", "00000045"), ("01", "00000045"), ("01", "00000000"))
    (socket,) = watch(monkeypatch, *looks).finish()
    assert (socket.peer, socket.peer_port, socket.unacknowledged) == ("10.77.0.2", 7302, 0.5)


def test_connections_that_begin_or_end_send_no_data(monkeypatch: pytest.MonkeyPatch) -> None:
    (socket,) = watch(monkeypatch, ("02", "00000001"), ("04", "00000001")).finish()
    assert socket.unacknowledged == 0.0


def test_segments_that_were_sent_again_between_the_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = [("01", "00000000")] * 3
    assert watch(monkeypatch, *looks).segments() == (SegmentCount(1, 100, 20),)
    assert watch(monkeypatch, *looks, snmp="").segments() == ()
