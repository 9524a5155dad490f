"""Connections that are full because the server does not read: no thread waits for them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from purebpf.findings.evidence import Evidence, Stay
from purebpf.findings.facts import Endpoint, Unanswered
from purebpf.findings.finding import Finding
from purebpf.findings.waiting import Side
from purebpf.findings.words import count_threads, describe_activity, share, spell_endpoint

__all__ = ["stalled_connections"]

_LEAST = 0.5
"""The part of the time that connections to one server are full."""


def stalled_connections(evidence: Evidence) -> Iterator[Finding]:
    """An event loop has more to send than its server reads: its coroutines wait, or it keeps the
    rest in memory.

    Silent about servers: slow readers are none of their business. Also silent about threads that
    wait to write, for which there is another rule.
    """
    groups: dict[tuple[int, str], list[tuple[Unanswered, Endpoint]]] = defaultdict(list)
    for one in evidence.facts.stalled:
        endpoint = Endpoint("socket", "inet", one.peer, one.peer_port, one.port, one.inode)
        for pid in evidence.connections.sockets.get(one.inode, ())[:1]:
            if evidence.connections.side(endpoint) is Side.CLIENT:
                groups[pid, spell_endpoint(endpoint)].append((one, endpoint))
    for (pid, peer), group in groups.items():
        stalled = sum(one.share for one, _ in group)
        if stalled < _LEAST or _waits_itself(evidence, pid):
            continue
        if not evidence.connections.is_service((pid,)):
            continue  # it feeds a program that computes
        writing = [
            stay
            for stay in evidence.goroutines
            if stay.pid == pid and stay.kind == "write" and stay.own is not None
        ]
        many, each = len(group), share(min(stalled, len(group)), len(group))
        connections = "its connection to" if many == 1 else f"{many} connections to"
        full = "is full" if many == 1 else "are full"
        yield Finding(
            *("full-pipe", evidence.process(pid).comm, (pid,)),
            max(stalled, evidence.rate(writing)),
            f"{connections} {peer} {full} {each} of the time{_writers(evidence, writing)}",
            (_reader(evidence, pid, group[0][1]),),
            ("tcp", "--summary", "-p", str(pid)),
            own=evidence.source(writing[0].own) if writing else None,
            place=peer,
        )


def _waits_itself(evidence: Evidence, pid: int) -> bool:
    return any(stay.kind == "sock-write" for stay in evidence.by_process.get(pid, ()))


def _writers(evidence: Evidence, writing: list[Stay]) -> str:
    if not writing:
        return ""
    most = max(writing, key=lambda stay: stay.seconds)
    return f"; {count_threads(writing, 'wait')} to write in {evidence.spell(most.own)}"


def _reader(evidence: Evidence, pid: int, endpoint: Endpoint) -> str:
    """A clause about the process that does not read."""
    readers = [one for one in evidence.connections.readers_of(endpoint) if one != pid]
    if not readers:
        return "the peer does not read fast enough"
    activity = describe_activity(evidence, evidence.by_process.get(readers[0], ()))
    text = f"read too slowly by {evidence.name(readers[0])}"
    return f"{text}, which {activity}" if activity else text
