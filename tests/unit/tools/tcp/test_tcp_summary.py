"""Connections counted by peer and port."""

from __future__ import annotations

import json

import pytest

from purebpf.results import Loss
from purebpf.tools.tcp.event import Event
from purebpf.tools.tcp.options import parse
from purebpf.tools.tcp.summary import PeerTable

OUT = {"direction": "out", "remote_address": "10.0.0.9", "remote_port": 5432}
IN = {"direction": "in", "remote_address": "fd00::7", "remote_port": 40000, "local_port": 443}
EVENTS = [
    Event(1, "connect", **OUT, took_ns=2_000_000),  # type: ignore[arg-type]
    Event(2, "connect", **OUT, took_ns=4_000_000),  # type: ignore[arg-type]
    Event(3, "fail", **OUT, took_ns=9_000_000, error="ECONNREFUSED"),  # type: ignore[arg-type]
    Event(4, "retransmit", **OUT),  # type: ignore[arg-type]
    Event(5, "close", **OUT, took_ns=70_000_000, received=1000, sent=24),  # type: ignore[arg-type]
    Event(6, "accept", **IN, took_ns=10_000),  # type: ignore[arg-type]
    Event(7, "state", **OUT),  # type: ignore[arg-type]
    Event(8, "close", remote_address="10.0.0.9", remote_port=99, local_port=80, sent=7),
]


def test_the_table_is_this() -> None:
    table = PeerTable()
    shown = [*table.begin(None), *table.show(EVENTS), *table.end(Loss())]
    assert "".join(shown).splitlines() == [
        " FAILED   CONNS CONNECT     MAX    OPEN   IN  OUT RESENT ERROR         PEER",
        "      1       3 3.00 ms 4.00 ms 70.0 ms 1.0k   24      1 ECONNREFUSED  > 10.0.0.9:5432",
        "      0       1       -       -    0 ns    0    7      0 -             80 - 10.0.0.9",
        "      0       1 10.0 us 10.0 us    0 ns    0    0      0 -             443 < fd00::7",
    ]


def test_a_service_whose_connections_stay_open_says_so() -> None:
    (text,) = PeerTable().end(Loss())
    assert text == "no connection began, failed or ended (trace shows the data of open ones)\n"


def older(local_port: int, remote_port: int) -> Event:
    return Event(
        1, "close", remote_address="10.0.0.9", remote_port=remote_port, local_port=local_port
    )


def peers(*events: Event) -> list[tuple[str, int, int]]:
    """Direction, port and connections of each row."""
    table = PeerTable(format="json")
    list(table.show(events))
    *rows, _ = map(json.loads, table.end(Loss()))
    return [(row["direction"], row["port"], row["connections"]) for row in rows]


def test_older_connections_are_counted_at_the_port_of_the_service() -> None:
    out = Event(1, "connect", direction="out", remote_address="10.0.0.9", remote_port=50000)
    came = Event(1, "accept", direction="in", remote_address="10.0.0.9", local_port=60000)
    assert peers(older(40000, 443), older(40001, 443)) == [("out", 443, 2)]
    assert peers(older(443, 40000), older(443, 40001)) == [("in", 443, 2)]
    # services on ports as clients have them
    assert peers(out, older(40000, 50000)) == [("out", 50000, 2)]
    assert peers(came, older(60000, 40000)) == [("in", 60000, 2)]
    assert peers(older(40000, 50000), older(40001, 50000)) == [("out", 50000, 2)]
    assert peers(older(50000, 40000), older(50000, 40001)) == [("in", 50000, 2)]


def test_where_the_ports_do_not_tell_the_direction_is_not_known() -> None:
    assert peers(older(40000, 50000)) == [("", 40000, 1)]
    assert peers(older(80, 443)) == [("", 80, 1)]


def test_json_has_a_row_a_peer() -> None:
    table = PeerTable(format="json", top=1)
    list(table.show(EVENTS))
    row, _ = map(json.loads, table.end(Loss()))
    assert row == {
        "event": "peer", "direction": "out", "address": "10.0.0.9", "port": 5432,
        "connections": 3, "failed": 1, "errors": {"ECONNREFUSED": 1}, "connect_avg_ns": 3e6,
        "connect_max_ns": 4_000_000, "open_ns": 70_000_000, "received": 1000, "sent": 24,
        "retransmits": 1,
    }  # fmt: skip


def test_top_is_an_option_of_the_table() -> None:
    with pytest.raises(SystemExit):
        parse(["--top", "3"])
