"""Frames that tests give to programs: every byte is where it belongs."""

from __future__ import annotations

import struct

import pytest

from purebpf.testing.packets import Packets

LONG = bytes(range(256)) * 3 + b"odd"


def folded(data: bytes) -> int:
    """The one's complement sum, byte by byte: 0xffff when the checksum in it is right."""
    total = sum(byte << 8 if at % 2 == 0 else byte for at, byte in enumerate(data))
    while total > 0xFFFF:
        total = total % 0x10000 + total // 0x10000
    return total


@pytest.mark.parametrize("payload", [b"", b"x", LONG], ids=len)
@pytest.mark.parametrize(("kind", "protocol"), [("udp", 17), ("tcp", 6), ("ping", 1)])
def test_the_sums_of_ipv4_are_right(kind: str, protocol: int, payload: bytes) -> None:
    frame = getattr(Packets(), kind)(payload)
    assert frame[:14] == b"\x02\0\0\0\0\2\x02\0\0\0\0\1\x08\0"
    packet = frame[14:]
    assert (packet[0], packet[9], folded(packet[:20])) == (0x45, protocol, 0xFFFF)
    assert int.from_bytes(packet[2:4], "big") == len(packet)
    segment = packet[20:]
    pseudo = packet[12:20] + struct.pack("!HH", protocol, len(segment))
    assert folded((b"" if kind == "ping" else pseudo) + segment) == 0xFFFF
    assert segment.endswith(payload)


@pytest.mark.parametrize(("kind", "protocol"), [("udp", 17), ("tcp", 6), ("ping", 58)])
def test_addresses_of_ipv6_make_packets_of_ipv6(kind: str, protocol: int) -> None:
    make = getattr(Packets(source="2001:db8::1", destination="2001:db8::2", vlan=7), kind)
    frame = make(LONG)
    assert frame[12:18] == b"\x81\0\0\x07\x86\xdd"
    packet = frame[18:]
    assert (packet[0] >> 4, packet[6]) == (6, protocol)
    segment = packet[40:]
    assert int.from_bytes(packet[4:6], "big") == len(segment)
    pseudo = packet[8:40] + struct.pack("!II", len(segment), protocol)
    assert folded(pseudo + segment) == 0xFFFF


def test_what_a_call_says_is_in_the_packet() -> None:
    packets = Packets()
    datagram = packets.udp(source="10.0.0.1", source_port=5353, destination_port=4711)[14:]
    assert datagram[12:16] == b"\n\0\0\1"
    assert struct.unpack("!HHH", datagram[20:26]) == (5353, 4711, 8)
    segment = packets.tcp(flags="SA", sequence=5, acknowledged=6)[34:]
    assert struct.unpack("!HHIIBB", segment[:14]) == (40000, 80, 5, 6, 0x50, 0x12)


def test_a_sum_of_zero_is_sent_as_ones() -> None:
    packets = Packets()
    (total,) = struct.unpack("!H", packets.udp(b"\0\0")[40:42])
    assert packets.udp(struct.pack("!H", total))[40:42] == b"\xff\xff"


def test_two_families_are_refused() -> None:
    with pytest.raises(ValueError, match=r"from 192\.0\.2\.1 to 2001:db8::2: two families"):
        Packets().udp(destination="2001:db8::2")
