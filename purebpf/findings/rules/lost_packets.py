"""TCP connections whose data gets lost on the way, and is sent again. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from purebpf.findings.evidence import Evidence
from purebpf.findings.facts import SegmentCount, Socket
from purebpf.findings.finding import Finding
from purebpf.findings.words import spell_address

__all__ = ["lost_packets"]

_RATE, _PART = 1.0, 0.04
"""Segments that are sent again, a second and by all that are sent: fewer are usual anywhere."""
_LATER_S = 0.2
"""The shortest time after which Linux sends a segment again whose acknowledgement is missing."""
_LEAST = 0.3
"""Connections that wait for an acknowledgement at a time."""
_PEERS = 3
"""Addresses of clients that are named."""


def lost_packets(evidence: Evidence) -> Iterator[Finding]:
    """The kernel sends much of a program's data again, as nobody acknowledges it."""
    for count in evidence.facts.segments:
        rate = count.resent / evidence.elapsed_s
        if rate < _RATE or count.resent < _PART * count.sent:
            continue
        groups = _groups(evidence, count.namespace)
        waits = {end: sum(one.unacknowledged for one in group) for end, group in groups.items()}
        end = max(waits, key=waits.__getitem__, default=None)
        if end is not None and waits[end] >= _LEAST:
            yield _lost(evidence, count, end, groups[end], min(waits[end], rate * _LATER_S))


def _groups(evidence: Evidence, namespace: int) -> dict[tuple[int, str, int], list[Socket]]:
    """Connections by process and peer; a server's by its port, with "" as peer."""
    groups: dict[tuple[int, str, int], list[Socket]] = defaultdict(list)
    for socket in evidence.facts.sockets:
        owners = evidence.connections.sockets.get(socket.inode, ())
        if socket.namespace == namespace and socket.peer_port and owners:
            is_client = socket.port not in evidence.connections.listeners
            end = (socket.peer, socket.peer_port) if is_client else ("", socket.port)
            groups[min(owners), *end].append(socket)
    return groups


def _lost(
    evidence: Evidence,
    count: SegmentCount,
    end: tuple[int, str, int],
    sockets: list[Socket],
    cost: float,
) -> Finding:
    pid, address, port = end
    place = spell_address(address, port) if address else f"port {port}"
    waiting = sum(one.unacknowledged for one in sockets)
    whole = sum(one.share for one in sockets)
    clients = sorted({one.peer for one in sockets if one.unacknowledged})
    return Finding(
        *("lost-packets", evidence.process(pid).comm, (pid,), cost),
        f"data {'to' if address else 'from'} {place} gets lost, and is sent again after "
        f"{1000 * _LATER_S:.0f} ms or more: {count.resent / evidence.elapsed_s:.1f} TCP segments a "
        f"second, {100 * count.resent / count.sent:.0f} % of all",
        (
            f"{waiting:.1f} of {whole:.1f} connections wait for an acknowledgement at a time"
            + ("" if address else f", to {', '.join(clients[:_PEERS])}"),
            "the network drops packets, or a firewall does",
        ),
        ("tcp", "-p", str(pid)),
        place=place,
    )
