"""TCP connections that wait for an answer, by the kernel's clocks of each connection.

An event loop waits for many peers at once, so its threads do not say for whom. For each connection,
the kernel knows when data was last sent and last received (struct tcp_info of linux/tcp.h), and
sock_diag(7) asks for it. A connection that sent more recently than it received waits for an answer.
"""

from __future__ import annotations

import ipaddress
import socket
import struct
import time
from collections import defaultdict
from collections.abc import Iterator

from purebpf.findings.facts import Unanswered
from purebpf.tools.triage.sock_diag import attributes, dump
from purebpf.tuples import NamedTuple

__all__ = ["UnansweredWatch"]

_TCP, _ESTABLISHED, _INFO = 6, 1, 2
_REQUEST = struct.Struct("<BBBxI48x")
_MESSAGE = struct.Struct("<B3x4s16x16s12x16xI")
"""struct inet_diag_msg: the family, both ports, the peer's address and the inode."""
_PORTS = struct.Struct(">HH")
_SENT, _RECEIVED, _BYTES = 44, 52, 120
"""In struct tcp_info: tcpi_last_data_sent and _recv, tcpi_bytes_acked and _received."""
_STALLED = 176
"""tcpi_rwnd_limited (Linux 4.10): microseconds in which the other end had no room."""
_LEAST_STALLED_S = 0.1
_OF_SYN = 1
"""A byte of tcpi_bytes_acked that is no data."""
_SLOW_MS, _FRESH_MS = 30, 1000


class _Clocks(NamedTuple):
    """Milliseconds since data was sent and received, bytes in all, the other end, and microseconds
    in which it had no room.
    """

    sent_ms: int
    received_ms: int
    acknowledged: int
    received: int
    peer: str
    peer_port: int
    port: int
    stalled_us: int

    @property
    def awaits_an_answer(self) -> bool:
        """True if the last data was sent, and a while ago.

        The clock of received data starts with the connection: a request that follows within the
        same tick is as old.
        """
        is_first = not self.received and self.acknowledged > _OF_SYN
        is_later = self.sent_ms < self.received_ms or (
            is_first and self.sent_ms == self.received_ms
        )
        return self.sent_ms >= _SLOW_MS and is_later

    @property
    def owes_an_answer(self) -> bool:
        """True if the last data was received, and a while ago."""
        return self.received > 0 and _SLOW_MS <= self.received_ms < self.sent_ms


class UnansweredWatch:
    """Asks at each `tick`, in our network namespace."""

    def __init__(self) -> None:
        self._ticks = 0
        self._awaited: dict[int, list[int]] = defaultdict(list)
        self._received: dict[int, set[int]] = defaultdict(set)
        self._fresh: set[int] = set()
        self._owed: dict[int, list[int]] = defaultdict(list)
        self._sent: dict[int, set[int]] = defaultdict(set)
        self._ends: dict[int, tuple[str, int, int]] = {}
        self._stalled: dict[int, tuple[float, int, float, int]] = {}
        self._peers: dict[int, tuple[str, int, int]] = {}

    def tick(self) -> None:
        """Take in the connections of this moment; nothing where the kernel does not answer."""
        self._ticks += 1
        for family in (socket.AF_INET, socket.AF_INET6):
            try:
                for inode, clocks in _connections(family):
                    self._add(inode, clocks)
            except OSError:
                continue

    def _add(self, inode: int, clocks: _Clocks) -> None:
        self._received[inode].add(clocks.received)
        self._sent[inode].add(clocks.acknowledged)
        if clocks.stalled_us:
            now_s = time.monotonic()
            since_s, since_us, _, _ = self._stalled.get(inode, (now_s, clocks.stalled_us, 0.0, 0))
            self._stalled[inode] = since_s, since_us, now_s, clocks.stalled_us
            self._peers[inode] = clocks.peer, clocks.peer_port, clocks.port
        if clocks.owes_an_answer:
            self._owed[inode].append(clocks.received_ms)
            self._ends.setdefault(inode, (clocks.peer, clocks.peer_port, clocks.port))
        if clocks.awaits_an_answer:
            self._awaited[inode].append(clocks.sent_ms)
            self._ends[inode] = clocks.peer, clocks.peer_port, clocks.port
            if not clocks.received and clocks.received_ms - clocks.sent_ms < _FRESH_MS:
                self._fresh.add(inode)

    def finish(self) -> tuple[Unanswered, ...]:
        """The connections that got answers, or have just begun; who only sends awaits none."""
        return tuple(
            Unanswered(
                *(inode, len(ages) / self._ticks, sum(ages) / len(ages) / 1000),
                *self._ends[inode],
            )
            for inode, ages in self._awaited.items()
            if len(self._received[inode]) > 1 or inode in self._fresh
        )

    def stalled(self) -> tuple[Unanswered, ...]:
        """The connections whose other end had no room for data, for how much of the time."""
        found = []
        for inode, (since_s, since_us, until_s, until_us) in self._stalled.items():
            stalled_s = (until_us - since_us) / 1e6
            if stalled_s >= _LEAST_STALLED_S:
                part = min(1.0, stalled_s / (until_s - since_s))
                found.append(Unanswered(inode, part, 0.0, *self._peers[inode]))
        return tuple(found)

    def held(self) -> tuple[Unanswered, ...]:
        """The connections on which this end has answered, and has let some requests wait."""
        return tuple(
            Unanswered(
                *(inode, len(ages) / self._ticks, sum(ages) / len(ages) / 1000),
                *self._ends[inode],
            )
            for inode, ages in self._owed.items()
            if len(self._sent[inode]) > 1
        )


def _connections(family: int) -> Iterator[tuple[int, _Clocks]]:
    request = _REQUEST.pack(family, _TCP, 1 << (_INFO - 1), 1 << _ESTABLISHED)
    for message in dump(request):
        if len(message) >= _MESSAGE.size:
            yield from _read_message(message)


def _address(family: int, data: bytes) -> str:
    """The text of an address; one of IPv4 that an IPv6 socket has as IPv4."""
    if family == socket.AF_INET:
        return socket.inet_ntop(family, data[:4])
    mapped = ipaddress.IPv6Address(data).ipv4_mapped
    return str(mapped) if mapped else socket.inet_ntop(family, data)


def _read_message(message: bytes) -> Iterator[tuple[int, _Clocks]]:
    family, ports, peer, inode = _MESSAGE.unpack_from(message)
    port, peer_port = _PORTS.unpack(ports)
    address = _address(family, peer)
    for kind, info in attributes(message, _MESSAGE.size):
        if kind == _INFO and len(info) >= _BYTES + 16:
            sent, received = (
                struct.unpack_from("<I", info, offset)[0] for offset in (_SENT, _RECEIVED)
            )
            acknowledged, in_all = struct.unpack_from("<QQ", info, _BYTES)
            is_told = len(info) >= _STALLED + 8
            stalled_us = struct.unpack_from("<Q", info, _STALLED)[0] if is_told else 0
            ends = (address, peer_port, port)
            clocks = _Clocks(sent, received, acknowledged, in_all, *ends, stalled_us)
            yield inode, clocks
