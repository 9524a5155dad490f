"""TCP connections whose data gets lost on the way, and is sent again. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from purebpf.findings.evidence import Evidence
from purebpf.findings.facts import Socket
from purebpf.findings.finding import Finding
from purebpf.findings.words import spell_address

__all__ = ["lost_packets"]

_LEAST, _PART = 0.3, 0.1
"""Connections that wait at a time because data was lost, and the part of those to one peer."""
_PEERS = 3
"""Addresses of clients that lose packets, which are named."""


def lost_packets(evidence: Evidence) -> Iterator[Finding]:
    """What a program sends is not acknowledged, so that the kernel sends it again, and waits.

    Silent where few of the connections of a server do so: some clients have a bad network.
    """
    groups: dict[tuple[int, str, int], list[Socket]] = defaultdict(list)
    for socket in evidence.facts.sockets:
        owners = evidence.connections.sockets.get(socket.inode, ())
        if socket.peer_port and owners:
            is_client = socket.port not in evidence.connections.listeners
            end = (socket.peer, socket.peer_port) if is_client else ("", socket.port)
            groups[min(owners), *end].append(socket)
    for (pid, address, port), sockets in groups.items():
        cost, whole = (sum(getattr(one, name) for one in sockets) for name in ("resent", "share"))
        if cost < max(_LEAST, _PART * whole):
            continue
        place = spell_address(address, port) if address else f"port {port}"
        clients = sorted({one.peer for one in sockets if one.resent})
        yield Finding(
            *("lost-packets", evidence.process(pid).comm, (pid,), cost),
            f"data that it sends {'to' if address else 'from'} {place} gets lost, and is sent "
            f"again later (TCP retransmissions): {cost:.1f} of {whole:.1f} connections wait for "
            "that at a time",
            (
                "the network to there drops packets, or a firewall does"
                if address
                else f"to {', '.join(clients[:_PEERS])}",
            ),
            ("tcp", "-p", str(pid)),
            place=place,
        )
