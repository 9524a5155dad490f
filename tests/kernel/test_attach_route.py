"""Programs of routes: seen, dropped, and gone with the route that was made for them."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyroute2 import IPRoute

import purebpf
from tests.support import network
from tests.support.patience import until

SPEC = purebpf.read_object(Path(__file__).parents[1] / "data/net_route.bpf.o")
NETWORK, ADDRESS = "192.0.2.0/24", "192.0.2.7"
OWN = "198.51.100.1"
PORT, FORBIDDEN = 4711, 9
PRIME = 13

pytestmark = pytest.mark.needs("bpf", "net_namespace", "route_programs")


@pytest.fixture(autouse=True)
def _namespace() -> Iterator[None]:
    with network.namespace():
        yield


def send(port: int = PORT, times: int = PRIME, source: str = "0.0.0.0") -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind((source, 0))
        for _ in range(times):
            sock.sendto(b"x", (ADDRESS, port))


@pytest.mark.parametrize("name", ["sent", "leaving"])
def test_packets_that_take_the_route_are_seen_and_dropped(name: str):
    with purebpf.load(SPEC) as obj:
        program = obj.programs[name]
        with program.attach(NETWORK, interface="lo") as link:
            assert f"the route to {NETWORK} by lo" in link.what
            send()
            assert obj.globals["packets"] == PRIME
            with pytest.raises(PermissionError):
                send(FORBIDDEN, 1)
        with pytest.raises(OSError, match="unreachable"):
            send()
        assert obj.globals["packets"] == PRIME + 1


def test_packets_that_arrive_to_be_forwarded_are_seen():
    """Over the loopback interface: what a socket sends by it comes back, and takes the route."""
    for name in ("conf/all/forwarding", "conf/lo/accept_local"):
        Path("/proc/sys/net/ipv4", name).write_text("1")
    with IPRoute() as route:
        route.addr("add", address=OWN, prefixlen=32, index=socket.if_nametoindex("lo"))
    with purebpf.load(SPEC) as obj, obj.programs["arriving"].attach(NETWORK, interface="lo"):
        send(FORBIDDEN, PRIME, OWN)
        assert until(lambda: obj.globals["packets"] == PRIME)


def test_the_route_is_what_it_was_asked_for():
    with purebpf.load(SPEC) as obj:
        program = obj.programs["sent"]
        taken = pytest.raises(purebpf.AttachError, match="there is a route to that network")
        with program.attach(ipaddress.ip_network(NETWORK), interface="lo"), taken:
            program.attach(NETWORK, interface="lo")
        with pytest.raises(TypeError, match="to which network"):
            program.attach(interface="lo")
        with pytest.raises(TypeError, match="which network interface"):
            program.attach(NETWORK)
        with pytest.raises(ValueError, match="does not appear to be"):
            program.attach("nowhere", interface="lo")
        with pytest.raises(purebpf.AttachError, match="gateway cannot be reached"):
            program.attach(NETWORK, interface="lo", gateway="198.51.100.1")
