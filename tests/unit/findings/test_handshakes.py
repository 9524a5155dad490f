"""Programs whose CPU time goes to TLS handshakes, and ones that keep their connections."""

from __future__ import annotations

import pytest

from purebpf.findings.facts import CallCount, Connect, Facts, Process, Socket
from purebpf.findings.find import find
from purebpf.findings.finding import Finding
from tests.support.builders.facts import facts, native, own, running

SERVER, CLIENT = 7, 8
LIBSSL = "/usr/lib/x86_64-linux-gnu/libssl.so.3"
SHAKING = (native("rsa_sign"), native("state_machine.part.0", LIBSSL), native("SSL_read", LIBSSL))
LISTENER = Socket(50, "tcp", "0.0.0.0", 8443, "", 0, 10)


def serving(shaking_s: float = 3.0, other_s: float = 1.0, accepted: int = 600) -> Facts:
    """A server with TLS, and a client on the same machine."""
    dialing = running(CLIENT, CLIENT, native("connect"), own("fetch_rate"), seconds=0.3)
    shaking = running(SERVER, SERVER, *SHAKING, native("serve", "/srv/rated"), seconds=shaking_s)
    other = running(SERVER, SERVER, native("render", "/srv/rated"), seconds=other_s)
    return facts(shaking, other, dialing)._replace(
        processes=(Process(SERVER, 1, "rated", "/srv/rated"), Process(CLIENT, 1, "shop")),
        sockets=(LISTENER,),
        descriptors={SERVER: {3: "socket:[50]"}},
        calls=(CallCount(SERVER, "accept4", 0, accepted),),
        connects=(Connect(CLIENT, 0, "127.0.0.1", 8443, accepted),),
    )


def handshakes(measured: Facts) -> list[Finding]:
    return [one for one in find(measured) if "TLS handshakes" in one.text]


def test_a_server_names_the_client_that_opens_a_connection_for_each_request() -> None:
    (finding,) = handshakes(serving())
    assert (finding.kind, finding.pids) == ("tls-handshakes", (SERVER,))
    assert "spends 0.30 CPUs (75 % of its own) on TLS handshakes: 60 new" in finding.text
    assert "shop (8) opens 60 of them in fetch_rate (app.py:10)" in finding.evidence


def test_a_client_names_its_function_and_the_peer() -> None:
    shaking = running(CLIENT, CLIENT, *SHAKING, native("ClientRequest"), own("fetch"), seconds=3.0)
    measured = facts(shaking)._replace(
        processes=(Process(CLIENT, 1, "shop"),),
        connects=(Connect(CLIENT, 0, "10.0.0.7", 443, 300),),
    )
    (finding,) = handshakes(measured)
    assert finding.text.endswith("30 new connections a second to 10.0.0.7:443")
    assert finding.evidence[0] == "in fetch (app.py:10)"


def test_handshakes_explain_connections_that_are_reset_at_their_end() -> None:
    reset = {"TcpEstabResets": 580.0, "TcpPassiveOpens": 600.0}
    kinds = [one.kind for one in find(serving()._replace(counters=reset))]
    assert "resets" not in kinds
    other = serving(shaking_s=0.0)._replace(counters=reset)
    assert "resets" in [one.kind for one in find(other)]


def test_waits_for_a_server_whose_memory_grows_too_are_explained_by_its_handshakes() -> None:
    measured = serving()
    server, client = measured.processes
    grows = server._replace(anon=tuple(range(0, 60 << 20, 6 << 20)))
    queue = LISTENER._replace(queue=3.0)
    found = find(measured._replace(processes=(grows, client), sockets=(queue,)))
    assert [one.kind for one in found][:2] == ["tls-handshakes", "growth"]
    assert "3.0 connections wait" in found[0].evidence[-1]


@pytest.mark.parametrize(
    "well",
    [serving(shaking_s=0.5), serving(other_s=9.0), serving(accepted=20)],
    ids=["little", "a small part", "few connections"],
)
def test_servers_with_some_handshakes_are_well(well: Facts) -> None:
    assert handshakes(well) == []
