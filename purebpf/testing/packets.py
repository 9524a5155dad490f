"""Frames as XDP and tc programs get them, with the checksums that belong there."""

from __future__ import annotations

import struct
from ipaddress import IPv4Address, ip_address
from typing import Protocol

__all__ = ["Packets"]

_ETH_P_IP, _ETH_P_IPV6, _ETH_P_8021Q = 0x0800, 0x86DD, 0x8100
_ICMP, _TCP, _UDP, _ICMPV6 = 1, 6, 17, 58
_HOPS = 64
_FLAGS = {name: 1 << bit for bit, name in enumerate("FSRPAUEC")}
"""Of TCP, as tcpdump writes them: FIN, SYN, RST, PSH, ACK, URG, ECE, CWR."""


class _Address(Protocol):
    @property
    def packed(self) -> bytes:
        """Its bytes, most significant first."""


class Packets:
    """Makes Ethernet frames of IPv4 or, by its addresses, IPv6.

    `packets.udp(b"payload", destination="2001:db8::2", destination_port=53)`.

    Attributes:
        source: the address that packets come from, unless a call says another.
        destination: where they go to.
        source_mac: of the frame, as its bytes.
        destination_mac: the same.
        vlan: the number of a VLAN, for a tag in the frame, or None.
    """

    def __init__(
        self,
        *,
        source: str = "192.0.2.1",
        destination: str = "192.0.2.2",
        source_mac: bytes = b"\x02\0\0\0\0\1",
        destination_mac: bytes = b"\x02\0\0\0\0\2",
        vlan: int | None = None,
    ) -> None:
        self.source = source
        self.destination = destination
        self.source_mac = source_mac
        self.destination_mac = destination_mac
        self.vlan = vlan

    def udp(
        self,
        payload: bytes = b"",
        *,
        source: str = "",
        destination: str = "",
        source_port: int = 40000,
        destination_port: int = 53,
    ) -> bytes:
        """A datagram.

        Raises:
            ValueError: no addresses, or of different families.
            struct.error: a port or length of more than 16 bits.
        """
        header = struct.pack("!HHHH", source_port, destination_port, 8 + len(payload), 0)
        return self._frame(_UDP, header + payload, 6, source, destination)

    def tcp(
        self,
        payload: bytes = b"",
        *,
        source: str = "",
        destination: str = "",
        source_port: int = 40000,
        destination_port: int = 80,
        flags: str = "S",
        sequence: int = 1,
        acknowledged: int = 0,
    ) -> bytes:
        """A segment; `flags` are letters as tcpdump has them: "S", "SA", "PA", "R", "FA".

        Raises:
            ValueError, struct.error: as `udp`.
            KeyError: an unknown flag.
        """
        bits = sum(_FLAGS[flag] for flag in set(flags))
        header = struct.pack(
            "!HHIIBBHHH",
            *(source_port, destination_port, sequence, acknowledged, 5 << 4, bits, 65535, 0, 0),
        )
        return self._frame(_TCP, header + payload, 16, source, destination)

    def ping(
        self, payload: bytes = b"", *, source: str = "", destination: str = "", sequence: int = 1
    ) -> bytes:
        """An echo request of ICMP or ICMPv6. ValueError and struct.error as `udp`."""
        is_ipv4 = ip_address(destination or self.destination).version == 4
        header = struct.pack("!BBHHH", 8 if is_ipv4 else 128, 0, 0, 1, sequence)
        protocol = _ICMP if is_ipv4 else _ICMPV6
        return self._frame(protocol, header + payload, 2, source, destination)

    def _frame(
        self, protocol: int, segment: bytes, checksum_at: int, source: str, destination: str
    ) -> bytes:
        """The frame around a segment, with the segment's checksum at that offset filled in."""
        sender = ip_address(source or self.source)
        receiver = ip_address(destination or self.destination)
        if sender.version != receiver.version:
            raise ValueError(f"a packet cannot go from {sender} to {receiver}: two families")
        pseudo = sender.packed + receiver.packed + struct.pack("!II", len(segment), protocol)
        total = _checksum((b"" if protocol == _ICMP else pseudo) + segment)
        if protocol == _UDP:
            total = total or 0xFFFF  # RFC 768: 0 is for "none"
        segment = segment[:checksum_at] + struct.pack("!H", total) + segment[checksum_at + 2 :]
        is_ipv4 = isinstance(sender, IPv4Address)
        head = (_ipv4 if is_ipv4 else _ipv6)(sender, receiver, protocol, len(segment))
        tag = b"" if self.vlan is None else struct.pack("!HH", _ETH_P_8021Q, self.vlan)
        kind = struct.pack("!H", _ETH_P_IP if is_ipv4 else _ETH_P_IPV6)
        return self.destination_mac + self.source_mac + tag + kind + head + segment


def _ipv4(sender: _Address, receiver: _Address, protocol: int, length: int) -> bytes:
    start = struct.pack("!BBHHHBB", 0x45, 0, 20 + length, 0, 0, _HOPS, protocol)
    addresses = sender.packed + receiver.packed
    total = _checksum(start + b"\0\0" + addresses)
    return start + struct.pack("!H", total) + addresses


def _ipv6(sender: _Address, receiver: _Address, protocol: int, length: int) -> bytes:
    return struct.pack("!IHBB", 6 << 28, length, protocol, _HOPS) + sender.packed + receiver.packed


def _checksum(data: bytes) -> int:
    """The Internet checksum (RFC 1071)."""
    even = data + b"\0" * (len(data) % 2)
    total: int = sum(word for (word,) in struct.iter_unpack("!H", even))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF
