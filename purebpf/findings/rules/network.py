"""Connections that are refused or too many, and floods of datagrams."""

from __future__ import annotations

import errno
from collections import Counter
from collections.abc import Iterator

from purebpf.findings.evidence import Evidence
from purebpf.findings.finding import Finding
from purebpf.findings.words import call_site, share, spell_address

__all__ = ["connections", "datagrams", "refused", "refused_children"]

_FAILURES = 0.4
_CONNECTIONS, _LOCAL_CONNECTIONS, _CONNECTION_S = 300.0, 100.0, 5e-4
_DATAGRAMS, _DROPS, _DATAGRAM_S = 20_000.0, 50.0, 8e-6
_DROP_S, _MOST_OF_DROPS = 1e-4, 1.0
"""Seconds that somebody loses by a packet that is lost, and at most a second."""
_SENDS = ("sendto", "sendmsg", "sendmmsg", "write")
_RECEIVES = ("recvfrom", "recvmsg", "recvmmsg", "read")
_ERRORS = {
    errno.ECONNREFUSED: "is refused (ECONNREFUSED)",
    errno.ETIMEDOUT: "gets no answer (ETIMEDOUT)",
    errno.EHOSTUNREACH: "finds no way there (EHOSTUNREACH)",
    errno.ENETUNREACH: "finds no way there (ENETUNREACH)",
    errno.ECONNRESET: "is reset (ECONNRESET)",
}


def refused(evidence: Evidence) -> Iterator[Finding]:
    """A program tries again and again to connect to where nobody answers."""
    for one in evidence.facts.connects:
        rate = one.times / evidence.elapsed_s
        if one.error not in _ERRORS or rate < _FAILURES or one.pid not in evidence.processes:
            continue
        function = call_site(evidence, (one.pid,), "connect")
        nobody = (
            evidence.connections.is_local(one.address)
            and one.port not in evidence.connections.listeners
        )
        yield Finding(
            *("refused", evidence.process(one.pid).comm, (one.pid,), min(2.0, 0.2 + rate / 20)),
            f"connects to {spell_address(one.address, one.port)} {rate:.1f} times a second, and "
            f"{_ERRORS[one.error]}",
            (
                f"nobody listens on port {one.port}" if nobody else "",
                f"in {function}" if function else "",
            ),
            ("tcp", "-p", str(one.pid)),
            place=spell_address(one.address, one.port),
        )


def refused_children(evidence: Evidence) -> Iterator[Finding]:
    """Short-lived processes, each of which tries once: a shell script that waits for a service."""
    failed: Counter[tuple[int, str, int]] = Counter()
    for one in evidence.facts.connects:
        if one.error in _ERRORS and one.pid not in evidence.processes:
            failed[one.error, one.address, one.port] += one.times
    for (error, address, port), times in failed.items():
        rate = times / evidence.elapsed_s
        if rate < _FAILURES:
            continue
        parent = _parent_of(evidence, times)
        nobody = (
            evidence.connections.is_local(address) and port not in evidence.connections.listeners
        )
        yield Finding(
            *("refused", evidence.process(parent).comm if parent else "short-lived processes"),
            *((parent,) if parent else (), min(2.0, 0.2 + rate / 20)),
            f"connects to {spell_address(address, port)} {rate:.1f} times a second, each time in a "
            f"new process, and {_ERRORS[error]}",
            (
                f"nobody listens on port {port}" if nobody else "",
                evidence.process(parent).command if parent else "",
            ),
            ("tcp",),
            place=spell_address(address, port),
        )


def _parent_of(evidence: Evidence, times: int) -> int:
    """The process that starts about as many processes as these; 0 if none does."""
    started: Counter[int] = Counter()
    for start in evidence.facts.starts:
        process = evidence.process(start.parent)
        if process.pid and not process.is_new and not process.is_gone:
            started[start.parent] = max(started[start.parent], start.times)
    alike = {pid: n for pid, n in started.items() if times <= 1.2 * n <= 6 * times}  # noqa: PLR2004
    return min(alike, key=lambda pid: abs(alike[pid] - times), default=0)


def connections(evidence: Evidence) -> Iterator[Finding]:
    """A program makes a new connection for each request."""
    failed: Counter[tuple[int, str, int]] = Counter()
    for one in evidence.facts.connects:
        if one.error:
            failed[one.pid, one.address, one.port] += one.times
    for one in evidence.facts.connects:
        rate = one.times / evidence.elapsed_s
        limit = _LOCAL_CONNECTIONS if one.port in evidence.connections.listeners else _CONNECTIONS
        if one.error or rate < limit or one.pid not in evidence.processes:
            continue
        if failed[one.pid, one.address, one.port] > 0.5 * one.times:
            continue
        function = call_site(evidence, (one.pid,), "connect")
        yield Finding(
            *("connections", evidence.process(one.pid).comm, (one.pid,), rate * _CONNECTION_S),
            f"makes {rate:.0f} connections a second to {spell_address(one.address, one.port)}",
            ("none is used again", f"in {function}" if function else ""),
            ("tcp", "-p", str(one.pid)),
            place=spell_address(one.address, one.port),
        )


def datagrams(evidence: Evidence) -> Iterator[Finding]:
    """UDP packets come faster than their receiver takes them."""
    counters, elapsed_s = evidence.facts.counters, evidence.elapsed_s
    rate = counters.get("UdpInDatagrams", 0.0) / elapsed_s
    drops = counters.get("UdpRcvbufErrors", 0.0) / elapsed_s
    if rate < _DATAGRAMS and drops < _DROPS:
        return
    sender, sent = _most(evidence, _SENDS)
    receiver, received = _most(evidence, _RECEIVES)
    if not sender and not receiver:
        return
    who = sender or receiver
    function = call_site(evidence, (sender,), "send")
    softirq = counters.get("softirq", 0.0) / elapsed_s
    dropped = f"{drops:.0f} a second are dropped, as its buffer is full (RcvbufErrors)"
    yield Finding(
        *("datagram-storm", evidence.process(who).comm, tuple(filter(None, (sender, receiver)))),
        max(softirq, min(1.0, rate * _DATAGRAM_S), 0.9 * evidence.cpu_of[who])
        + min(_MOST_OF_DROPS, drops * _DROP_S),
        f"sends {sent / elapsed_s:.0f} UDP packets a second (sendto)"
        + (f" in {function}" if function else ""),
        (
            f"{evidence.name(receiver)} takes {received / elapsed_s:.0f}" if receiver else "",
            dropped if drops > 1 else "",
            f"softirq {softirq:.2f} CPUs, {share(softirq, evidence.facts.cpus)} of all",
        ),
        ("profile", "-p", str(who)),
    )


def _most(evidence: Evidence, calls: tuple[str, ...]) -> tuple[int, int]:
    """The process with a UDP socket that makes most of these calls, and their number."""
    udp = {
        pid
        for socket in evidence.facts.sockets
        if socket.protocol.startswith("udp")
        for pid in evidence.connections.sockets.get(socket.inode, ())
    }
    made: Counter[int] = Counter()
    for count in evidence.facts.calls:
        if count.call in calls and not count.error and count.pid in udp:
            made[count.pid] += count.times
    return made.most_common(1)[0] if made else (0, 0)
