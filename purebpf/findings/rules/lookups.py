"""Lookups of names that an event loop waits for: Go's resolver, c-ares."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from purebpf.findings.evidence import Evidence
from purebpf.findings.facts import Socket
from purebpf.findings.finding import Finding
from purebpf.findings.words import spell_address

__all__ = ["open_lookups"]

_DNS_PORT = 53
_LEAST = 0.3
"""Lookups without an answer, on average."""
_PER_LOOKUP = 2
"""Sockets: one asks for IPv4 addresses, one for IPv6 addresses."""
_ALWAYS = 0.99


def open_lookups(evidence: Evidence) -> Iterator[Finding]:
    """UDP sockets to a resolver live long: its answers are late, or do not come.

    A lookup closes its socket with the answer, within milliseconds. Silent about sockets that live
    all the time, which are kept for many lookups, and about programs whose threads wait.
    """
    by_peer: dict[tuple[str, int], list[Socket]] = defaultdict(list)
    for socket in evidence.facts.sockets:
        is_lookup = socket.protocol.startswith("udp") and socket.peer_port == _DNS_PORT
        if is_lookup and socket.share < _ALWAYS:
            by_peer[socket.peer, socket.namespace].append(socket)
    for (peer, _), sockets in by_peer.items():
        open_at_once = sum(socket.share for socket in sockets) / _PER_LOOKUP
        holders = Counter(
            pid
            for socket in sockets
            for pid in evidence.connections.sockets.get(socket.inode, ())[:1]
        )
        each_s = 2 * open_at_once * evidence.elapsed_s / len(sockets)
        for pid, held in holders.items():
            cost = open_at_once * held / holders.total()
            if cost < _LEAST or _has_waiting_threads(evidence, pid):
                continue
            place = spell_address(peer, _DNS_PORT)
            yield Finding(
                *("dns", evidence.process(pid).comm, (pid,), cost),
                f"waits for DNS: {cost:.1f} lookups at a time have no answer of {place}",
                (f"{len(sockets)} UDP sockets in all, which lived {each_s:.1f} s each",),
                ("tcp", "--dns", "-p", str(pid)),
                place=place,
            )


def _has_waiting_threads(evidence: Evidence, pid: int) -> bool:
    return any(stay.endpoint.port == _DNS_PORT for stay in evidence.by_process.get(pid, ()))
