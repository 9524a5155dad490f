"""Programs of routes: seen, dropped, and gone with the route that was made for them."""

from __future__ import annotations

import ipaddress
import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyroute2 import IPRoute

import purebpf
from tests.support.host import network
from tests.support.patience import until

SPEC = purebpf.read_object(Path(__file__).parents[3] / "data/net_route.bpf.o")
NETWORK, ADDRESS = "192.0.2.0/24", "192.0.2.7"
OWN = "198.51.100.1"
PORT, FORBIDDEN = 4711, 9
PRIME = 13
SEGMENT, LAST, SENDER = "fc00::1", "fd00::2", "fc00::9"
IPV6, ROUTING, SEGMENTS = 0x86DD, 43, 4

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
        taken = pytest.raises(purebpf.AttachError, match="the network already has a route")
        with program.attach(ipaddress.ip_network(NETWORK), interface="lo"), taken:
            program.attach(NETWORK, interface="lo")
        with pytest.raises(TypeError, match="target required: the network"):
            program.attach(interface="lo")
        with pytest.raises(TypeError, match="target required: the name or index of a netw"):
            program.attach(NETWORK)
        with pytest.raises(ValueError, match="does not appear to be"):
            program.attach("nowhere", interface="lo")
        for gateway, said in (
            ("nobody", "does not appear to be"),
            ("fe80::1", "is not a gateway to"),
        ):
            with pytest.raises(ValueError, match=said):
                program.attach(NETWORK, interface="lo", gateway=gateway)
        with pytest.raises(purebpf.AttachError, match="gateway is unreachable"):
            program.attach(NETWORK, interface="lo", gateway="198.51.100.1")


def segments(tag: int) -> bytes:
    """An IPv6 packet to SEGMENT, then to LAST: a routing header, and an empty datagram."""
    ends = [socket.inet_pton(socket.AF_INET6, each) for each in (LAST, SEGMENT)]
    routing = struct.pack("!BBBBBBH", socket.IPPROTO_UDP, 4, SEGMENTS, 1, 1, 0, tag) + b"".join(
        ends
    )
    datagram = struct.pack("!HHHH", PORT, PORT, 8, 0)
    payload = routing + datagram
    sender = socket.inet_pton(socket.AF_INET6, SENDER)
    return struct.pack("!IHBB", 6 << 28, len(payload), ROUTING, 64) + sender + ends[1] + payload


def arrive(interface: str, packet: bytes, times: int) -> None:
    """Let packets arrive at the other end of `interface`."""
    with socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM) as sock:
        for _ in range(times):
            sock.sendto(packet, (interface, IPV6, 0, 0, address_of("near")))


def address_of(interface: str) -> bytes:
    with IPRoute() as route:
        (link,) = route.link("get", ifname=interface)
    return bytes.fromhex(link.get("address").replace(":", ""))


@contextmanager
def sent_on() -> Iterator[Callable[[int], list[tuple[int, int]]]]:
    """What comes back to `far` for LAST: of so many packets the segments left, and the tag."""
    Path("/proc/sys/net/ipv6/conf/all/forwarding").write_text("1")
    near = socket.if_nametoindex("near")
    with IPRoute() as route:
        route.route("add", dst=f"{LAST}/128", oif=near)
        there = {"lladdr": address_of("far").hex(":"), "state": "permanent"}
        route.neigh("add", dst=LAST, ifindex=near, **there)
    with socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(IPV6)) as sock:
        sock.bind(("far", IPV6))
        sock.settimeout(30)

        def left(count: int) -> list[tuple[int, int]]:
            found: list[tuple[int, int]] = []
            while len(found) < count:
                packet = sock.recv(256)
                if packet[24:40] == socket.inet_pton(socket.AF_INET6, LAST):
                    found.append((packet[43], int.from_bytes(packet[46:48], "big")))
            return found

        yield left


@pytest.mark.needs("veth", "segment_programs")
def test_packets_with_segments_are_seen_and_go_on_or_not():
    with network.pair("near", "far"), purebpf.load(SPEC) as obj, sent_on() as left:
        with obj.programs["routed"].attach(f"{SEGMENT}/128", interface="near") as link:
            assert f"the route to {SEGMENT}/128 by near" in link.what
            arrive("far", segments(FORBIDDEN), 1)
            arrive("far", segments(0), PRIME)
            assert left(PRIME) == [(0, 0)] * PRIME  # and not the first, which had a tag
            assert obj.globals["packets"] == PRIME + 1
        arrive("far", segments(0), PRIME)
        assert obj.globals["packets"] == PRIME + 1
        with pytest.raises(ValueError, match="segment routing needs IPv6"):
            obj.programs["routed"].attach(NETWORK, interface="near")
