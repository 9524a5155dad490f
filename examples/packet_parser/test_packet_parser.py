"""Unit tests of an XDP program: the kernel runs it on packets made here, nothing is attached.

sudo python -m pytest test_packet_parser.py
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

import purebpf

DROP, PASS = 1, 2  # enum xdp_action
UDP, TCP = 17, 6
DNS = 53


@pytest.fixture(scope="module")
def obj() -> Iterator[purebpf.Object]:
    """The program, loaded once for all tests."""
    spec = purebpf.read_object(Path(__file__).with_name("packet_parser.bpf.o"))
    with purebpf.load(spec.set(max_size=512)) as loaded:
        yield loaded


def ethernet(payload: bytes, kind: int = 0x0800, vlan: int | None = None) -> bytes:
    """A frame; with `vlan`, a tagged one."""
    tag = b"" if vlan is None else struct.pack("!HH", 0x8100, vlan)
    return bytes(12) + tag + struct.pack("!H", kind) + payload


def ipv4(payload: bytes, protocol: int = UDP, options: bytes = b"", fragment: int = 0) -> bytes:
    """A packet; `fragment` are its flags and offset."""
    words = 5 + len(options) // 4
    size = words * 4 + len(payload)
    head = struct.pack("!BBHHHBBH8x", 0x40 | words, 0, size, 0, fragment, 64, protocol, 0)
    return head + options + payload


def ipv6(payload: bytes, protocol: int = UDP) -> bytes:
    """A packet without extension headers."""
    return struct.pack("!IHBB32x", 0x60000000, len(payload), protocol, 64) + payload


def udp(source: int, size: int) -> bytes:
    """A datagram of `size` bytes, header included."""
    return struct.pack("!HHHH", source, 4711, size, 0) + bytes(size - 8)


@pytest.mark.parametrize(
    ("packet", "verdict"),
    [
        (ethernet(ipv4(udp(DNS, 512))), PASS),
        (ethernet(ipv4(udp(DNS, 513))), DROP),
        (ethernet(ipv4(udp(5353, 513))), PASS),
        (ethernet(ipv4(udp(DNS, 513), TCP)), PASS),
        (ethernet(ipv4(udp(DNS, 513), options=bytes(8))), DROP),
        (ethernet(ipv4(udp(DNS, 513)), vlan=7), DROP),
        (ethernet(ipv4(udp(5353, 100), fragment=0x2000)), DROP),
        (ethernet(ipv4(udp(5353, 100), fragment=0x4000)), PASS),  # do not fragment
        (ethernet(ipv6(udp(DNS, 513)), 0x86DD), DROP),
        (ethernet(ipv6(udp(DNS, 512)), 0x86DD), PASS),
        (ethernet(bytes(46), 0x0806), PASS),  # ARP
    ],
)
def test_verdict(obj: purebpf.Object, packet: bytes, verdict: int) -> None:
    before = obj.globals["dropped"]
    assert obj.programs["parse"].test_run(data=packet).retval == verdict
    assert obj.globals["dropped"] - before == (verdict == DROP)


def test_a_packet_may_end_anywhere(obj: purebpf.Object) -> None:
    whole = ethernet(ipv4(udp(DNS, 513), options=bytes(4)), vlan=7)
    headers = 14 + 4 + 24 + 8
    for size in range(14, headers + 1):  # the kernel takes no less than an Ethernet header
        verdict = DROP if size >= headers else PASS
        assert obj.programs["parse"].test_run(data=whole[:size]).retval == verdict, size


def test_packets_are_not_changed(obj: purebpf.Object) -> None:
    packet = ethernet(ipv6(udp(DNS, 100)), 0x86DD)
    assert obj.programs["parse"].test_run(data=packet).data == packet
