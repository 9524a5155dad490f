"""Connections that fail at once or are reset, and datagrams that a receiver loses."""

from __future__ import annotations

import errno

import pytest

from purebpf.findings.facts import (
    CallCount,
    Connect,
    Endpoint,
    Facts,
    PathCount,
    Process,
    SegmentCount,
    Socket,
    WaitSum,
)
from purebpf.findings.find import find
from tests.support.builders.facts import PYTHON, THREAD, facts, own, waiting

SHOP = Process(7, 1, "shop", PYTHON, "shop.py")


def said(measured: Facts, kind: str) -> str:
    return "; ".join(
        "; ".join((one.text, *one.evidence)) for one in find(measured) if one.kind == kind
    )


def failing(error: int, times: int = 480, succeeded: int = 0) -> Facts:
    counts = (CallCount(7, "connect", error, times), CallCount(7, "connect", 0, succeeded))
    return Facts(10.0, 2, processes=(SHOP,), calls=counts)


def asking(path: str, error: int = errno.ECONNREFUSED) -> Facts:
    return failing(error)._replace(paths=(PathCount(7, "connect", path, 480),))


def test_the_unix_socket_that_nobody_serves_is_named() -> None:
    (finding,) = find(asking("/run/shop/app.sock"))
    assert "fails to connect to /run/shop/app.sock 48.0 times a second" in finding.text
    assert "nobody listens there (ECONNREFUSED)" in finding.text
    assert finding.place == "/run/shop/app.sock"


@pytest.mark.parametrize("path", ["/run/uuidd/request", "/var/run/nscd/socket", "/dev/log"])
def test_libraries_can_do_without_their_daemons(path: str) -> None:
    assert said(asking(path, errno.ENOENT), "refused") == ""
    assert said(asking("/run/shop/db.sock", errno.ENOENT), "refused") != ""


@pytest.mark.parametrize(
    ("error", "words"),
    [(errno.ENETUNREACH, "no route to that network"), (errno.ENOENT, "unix socket of the server")],
)
def test_connections_that_fail_before_a_packet_is_sent(error: int, words: str) -> None:
    text = said(failing(error), "refused")
    assert "fails to connect 48.0 times a second" in text
    assert words in text


@pytest.mark.parametrize(
    "well",
    [
        failing(errno.ENETUNREACH, succeeded=400),
        failing(errno.ENOENT, times=2),
        failing(errno.EINPROGRESS),
        failing(errno.ENOENT)._replace(paths=(PathCount(7, "openat", "/etc/passwd", 240),)),
    ],
    ids=["a resolver tries IPv6", "once", "not over yet", "glibc asks for nscd"],
)
def test_attempts_that_are_well(well: Facts) -> None:
    assert said(well, "refused") == ""


def test_a_refused_tcp_connection_is_told_with_its_address_only() -> None:
    known = (Connect(7, errno.ECONNREFUSED, "127.0.0.1", 9000, 480),)
    measured = failing(errno.ECONNREFUSED)._replace(connects=known)
    (finding,) = (one for one in find(measured) if one.kind == "refused")
    assert "127.0.0.1:9000" in finding.text


def resetting(reset: float = 400.0, accepted: int = 400) -> Facts:
    return Facts(
        *(10.0, 2),
        processes=(SHOP,),
        sockets=(Socket(50, "tcp", "0.0.0.0", 8000, "", 0, 10),),
        descriptors={7: {4: "socket:[50]"}},
        calls=(CallCount(7, "accept4", 0, accepted),),
        counters={"TcpEstabResets": reset, "TcpPassiveOpens": 400.0},
    )


def test_connections_of_a_server_that_are_reset() -> None:
    text = said(resetting(), "resets")
    assert "accepts 40 connections a second on port 8000" in text
    assert "100 % of all connections are reset" in text


@pytest.mark.parametrize(
    "well", [resetting(reset=100.0), resetting(accepted=10)], ids=["few", "somebody else's"]
)
def test_resets_that_are_well(well: Facts) -> None:
    assert said(well, "resets") == ""


def resending(
    *unacknowledged: float, is_server: bool = False, sent: int = 1000, resent: int = 120
) -> Facts:
    """Connections to 10.0.0.7:5000, and the part of the time that each waits for their end."""
    ends = [
        (8000, 40_000 + n) if is_server else (40_000 + n, 5000) for n in range(len(unacknowledged))
    ]
    sockets = tuple(
        Socket(
            *(60 + n, "tcp", "10.0.0.1", port, "10.0.0.7", peer, 1),
            *(0.0, 0, 99, 1.0, unacknowledged[n]),
        )
        for n, (port, peer) in enumerate(ends)
    )
    listener = Socket(50, "tcp", "0.0.0.0", 8000, "", 0, 10)
    links = {n: f"socket:[{one.inode}]" for n, one in enumerate((listener, *sockets), 3)}
    return Facts(
        *(10.0, 2),
        processes=(SHOP,),
        sockets=(listener, *sockets),
        segments=(SegmentCount(98, 9000, 0), SegmentCount(99, sent, resent)),
        descriptors={7: links},
    )


def test_data_that_gets_lost_on_the_way_to_a_peer() -> None:
    (finding,) = find(resending(0.7, 0.5, 0.0))
    assert (finding.kind, finding.pids) == ("lost-packets", (7,))
    assert finding.text.startswith(
        "data to 10.0.0.7:5000 gets lost, and is sent again after 200 ms"
    )
    assert "12.0 TCP segments a second, 12 % of all" in finding.text
    assert finding.evidence[0].startswith("1.2 of 3.0 connections wait for an acknowledgement")
    assert finding.cost == pytest.approx(1.2)
    (finding,) = find(resending(0.7, 0.5, 0.0, is_server=True, resent=50))
    assert "data from port 8000 gets lost" in finding.text
    assert finding.evidence[0].endswith("at a time, to 10.0.0.7")
    assert finding.cost == pytest.approx(1.0)


@pytest.mark.parametrize(
    "well",
    [
        resending(1.0, 1.0, resent=0),  # it sends much, and the other end takes its time
        resending(0.7, 0.5, sent=100_000),
        resending(0.7, 0.5, resent=8, sent=100),
        resending(0.0, 0.1),
    ],
    ids=["full", "few by all", "few a second", "nobody waits"],
)
def test_connections_that_lose_little(well: Facts) -> None:
    assert find(well) == []


def losing(drops: int = 5000, arrived: float = 4500.0) -> Facts:
    """A collector that sleeps for each line, and devices that send twice as many."""
    stay = waiting(7, 7, "clock_nanosleep", own("store_line", 12), *THREAD)
    sockets = (
        Socket(1, "udp", "127.0.0.1", 514, "", 0, 7, drops=drops),
        Socket(2, "udp", "127.0.0.1", 40_000, "127.0.0.1", 514, 1),
    )
    return facts(stay)._replace(
        processes=(SHOP, Process(8, 1, "devices", "/srv/devices")),
        sockets=sockets,
        descriptors={7: {3: "socket:[1]"}, 8: {3: "socket:[2]"}},
        calls=(CallCount(7, "recvfrom", 0, 4500), CallCount(8, "sendto", 0, 9600)),
        counters={"UdpInDatagrams": arrived, "UdpRcvbufErrors": float(drops)},
    )


def test_the_receiver_that_loses_datagrams_is_named_with_its_work() -> None:
    (finding,) = (one for one in find(losing()) if one.kind.startswith("datagram"))
    assert (finding.kind, finding.pids) == ("datagrams-lost", (7,))
    assert "loses 500 UDP packets a second on port 514" in finding.text
    assert finding.evidence[0].startswith("it sleeps in store_line (app.py:12)")
    assert finding.evidence[1] == "devices (8) sends 960"


def test_a_flood_is_told_of_its_sender() -> None:
    flood = losing(drops=400_000)
    assert [one.kind for one in find(flood) if "datagram" in one.kind] == ["datagram-storm"]
    assert "takes 450 at port 514" in said(flood, "datagram-storm")
    assert said(losing(drops=100), "datagrams-lost") == ""


def test_a_receiver_with_two_ports_is_told_without_them() -> None:
    flood = losing(drops=400_000)
    other = Socket(3, "udp", "127.0.0.1", 515, "", 0, 7)
    flood = flood._replace(
        sockets=(*flood.sockets, other),
        descriptors={**flood.descriptors, 7: {3: "socket:[1]", 4: "socket:[3]"}},
    )
    assert "takes 450;" in said(flood, "datagram-storm")


def connecting(times: int = 1500, **more: object) -> Facts:
    """A program that makes 150 connections a second with connect(2)."""
    calls = (CallCount(7, "connect", 0, times),)
    return Facts(10.0, 2, processes=(SHOP,), calls=calls, **more)  # type: ignore[arg-type]


UNIX = Endpoint("socket", "other", "/run/stock.sock", inode=50)
WAITED = (WaitSum(7, 7, "recvfrom", 5, 5, 0, UNIX, 4.0, 1500, 0.01),)


def test_new_connections_to_a_unix_socket_for_each_request() -> None:
    stay = waiting(7, 7, "recvfrom", own("ask_stock"), *THREAD, seconds=4.0, argument=5)
    ends = {"unix_peers": {50: 51}, "unix_names": {51: "/run/stock.sock"}}
    measured = connecting(waits=WAITED, activities=(stay,), **ends)
    assert "makes 150 connections a second to /run/stock.sock" in said(measured, "connections")
    open_now = connecting(descriptors={7: {5: "socket:[50]"}}, unix_peers={50: 51})
    assert "150 connections a second to a unix socket" in said(open_now, "connections")


@pytest.mark.parametrize(
    "well",
    [
        connecting(),
        connecting(times=500, waits=WAITED),
        connecting(waits=WAITED, connects=(Connect(7, 0, "10.0.0.7", 80, 1400),)),
    ],
    ids=["a resolver connects UDP sockets", "few", "TCP connections have a rule of their own"],
)
def test_connections_that_are_not_to_unix_sockets(well: Facts) -> None:
    assert "unix" not in said(well, "connections")
    assert "stock.sock" not in said(well, "connections")
