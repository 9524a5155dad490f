"""Waits for the other end of a connection: slow servers, DNS, delayed acknowledgements."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from purebpf.findings.evidence import Evidence, Stay, seconds_of, threads_of
from purebpf.findings.facts import Endpoint, Unanswered, WaitSum
from purebpf.findings.finding import Finding
from purebpf.findings.grouping import by_function
from purebpf.findings.ownership import RESOLVER
from purebpf.findings.rules.pools import busy_team
from purebpf.findings.subscriptions import await_events, is_idle_broker
from purebpf.findings.waiting import Side
from purebpf.findings.words import chief, count_threads, is_in_loop, share, spell_endpoint, way_to

__all__ = ["delayed_acknowledgements", "slow_answers", "unanswered_requests"]

_LEAST = 0.15
_SLOW_S = 0.03
"""A client always waits; from here on an answer is slow."""
_NEW_CONNECTIONS = 1.0
"""Connections a second from which a table of them shows something."""
_DNS_PORT = 53
_READS = ("read", "recvfrom", "poll", "recvmsg", "ppoll", "readv", "epoll_wait", "epoll_pwait")
_ACK_FROM_S, _ACK_TO_S = 0.03, 0.25
_BOTH_WAIT = 0.3


def slow_answers(evidence: Evidence) -> Iterator[Finding]:
    """A program waits for answers of a server; `Finding.servers` is set where that is local."""
    waits = evidence.work("sock-read", "connect")
    for stays in by_function(evidence, waits, lambda stay: spell_endpoint(stay.endpoint)):
        cost = evidence.rate(stays)
        if cost >= _LEAST and not await_events(evidence, stays):
            yield _slow_answer(evidence, stays, cost)


def _slow_answer(evidence: Evidence, stays: list[Stay], cost: float) -> Finding:
    pids, times = chief(stays), sum(stay.times for stay in stays)
    each_ms = 1000 * seconds_of(stays) / max(1, times)
    peer = spell_endpoint(stays[0].endpoint) or "a socket"
    own = next((stay.own for stay in stays if stay.own is not None), None)
    where = f" in {evidence.spell(own)}" if own else ""
    servers = set().union(
        *(evidence.connections.servers_of(stay.endpoint) for stay in stays)
    ) - set(pids)
    counted = f"{count_threads(stays)}, {times} times" if times > 1 else count_threads(stays)
    team = busy_team(evidence, pids)
    source = evidence.source(own)
    name = evidence.process(pids[0]).comm
    if _is_dns(stays):
        call = next(
            (f.name for s in stays for f in s.user if RESOLVER.search(f.name)), "getaddrinfo"
        )
        where = where or _resolving(evidence, pids)
        return Finding(
            *("dns", name, pids, cost),
            f"waits for DNS{where}: {each_ms:.0f} ms each, from {peer}",
            (f"{call} in {counted}", team),
            ("offcpu", "-p", str(pids[0])),
            own=source,
            place=peer,
        )
    at = ", ".join(evidence.name(server) for server in sorted(servers)[:2])
    path = way_to(evidence, max(stays, key=lambda stay: stay.seconds))
    return Finding(
        *("downstream", name, pids, cost),
        f"waits for answers of {peer}{where}: {each_ms:.0f} ms each",
        (
            _blocked_loop(evidence, stays),
            f"the peer is {at or _unknown(stays[0].endpoint)}",
            team,
            f"by {path}" if " > " in path else "",
            counted,
        ),
        ("offcpu", "-p", str(pids[0])),
        servers=tuple(sorted(servers)),
        each_s=each_ms / 1000,
        own=source,
        place=peer,
    )


def _blocked_loop(evidence: Evidence, stays: list[Stay]) -> str:
    blocking = [stay for stay in stays if is_in_loop(stay)]
    each = share(evidence.rate(blocking), threads_of(blocking))
    return f"that blocks its event loop {each} of the time" if blocking else ""


def _unknown(endpoint: Endpoint) -> str:
    return "not known" if endpoint.family == "other" else "not on this machine, or not known"


def unanswered_requests(evidence: Evidence) -> Iterator[Finding]:
    """An event loop waits for answers of a peer: its sockets know which.

    Silent about peers that threads are seen to wait for.
    """
    by_peer: dict[str, list[tuple[Unanswered, Endpoint]]] = defaultdict(list)
    for one in evidence.facts.unanswered:
        endpoint = _end_of(evidence, one)
        if evidence.connections.side(endpoint) is Side.CLIENT:
            by_peer[spell_endpoint(endpoint)].append((one, endpoint))
    for peer, group in by_peer.items():
        for family, mine in _by_owner(evidence, group).items():
            finding = _late_answers(evidence, family, peer, mine)
            if finding is not None:
                yield finding


def _end_of(evidence: Evidence, one: Unanswered) -> Endpoint:
    if one.peer_port:
        ends = (one.peer, one.peer_port, one.port, one.inode)
        return Endpoint("socket", "inet", *ends)
    known = evidence.connections.by_inode.get(one.inode)
    if known is None:
        return Endpoint()
    return Endpoint("socket", "inet", known.peer, known.peer_port, known.port, one.inode)


def _by_owner(
    evidence: Evidence, group: list[tuple[Unanswered, Endpoint]]
) -> dict[tuple[str, str], list[tuple[Unanswered, Endpoint]]]:
    """Divide connections by the program that has them open.

    Connections that are closed by the end belong to the only program that has others to this peer,
    or has connected to it.
    """
    owners: dict[tuple[str, str], list[tuple[Unanswered, Endpoint]]] = defaultdict(list)
    closed = []
    for one, endpoint in group:
        pids = evidence.connections.sockets.get(one.inode, ())
        if pids:
            owners[evidence.family(pids[0])].append((one, endpoint))
        else:
            closed.append((one, endpoint))
    programs = set(owners) or {
        evidence.family(pid) for pid in _connected(evidence, group[0][1]) if closed
    }
    if len(programs) == 1:
        owners[programs.pop()].extend(closed)
    return owners


def _connected(evidence: Evidence, endpoint: Endpoint) -> list[int]:
    """Processes that have connected to a peer, the most eager first."""
    times: Counter[int] = Counter()
    for one in evidence.facts.connects:
        if (one.address, one.port) == (endpoint.address, endpoint.port):
            times[one.pid] += one.times
    return [pid for pid, _ in times.most_common() if pid in evidence.processes]


def _late_answers(
    evidence: Evidence,
    family: tuple[str, str],
    peer: str,
    group: list[tuple[Unanswered, Endpoint]],
) -> Finding | None:
    cost = sum(one.share for one, _ in group)
    age_s = sum(one.share * one.age_s for one, _ in group) / cost
    pids = tuple(
        dict.fromkeys(
            pid for one, _ in group for pid in evidence.connections.sockets.get(one.inode, ())[:1]
        )
    )
    pids = pids or tuple(_connected(evidence, group[0][1]))
    waited_for = {
        spell_endpoint(stay.endpoint)
        for pid in evidence.pids_of(family)
        for stay in evidence.by_process.get(pid, ())
        if stay.kind in ("sock-read", "connect")
    }
    if cost < _LEAST or age_s < _SLOW_S or peer in waited_for:
        return None
    if is_idle_broker(evidence, group[0][1], 2 * age_s):
        return None
    servers = evidence.connections.servers_of(group[0][1]) - set(pids)
    at = ", ".join(evidence.name(server) for server in sorted(servers)[:2])
    return Finding(
        *("downstream", family[0], pids, cost),
        f"its event loop waits for answers of {peer}: {len(group)} connections, requests are "
        f"{1000 * age_s:.0f} ms old in the mean",
        (_coroutine(evidence, pids), f"the peer is {at or 'not on this machine, or not known'}"),
        _questions(evidence, pids),
        servers=tuple(sorted(servers)),
        each_s=2 * age_s,
        place=peer,
    )


def _questions(evidence: Evidence, pids: tuple[int, ...]) -> tuple[str, ...]:
    """The command that shows whom an event loop asks: its connections, or its calls if these are
    older.
    """
    made = sum(one.times for one in evidence.facts.connects if one.pid in pids and not one.error)
    if made > _NEW_CONNECTIONS * evidence.elapsed_s:
        return ("tcp", "--summary", "-p", str(pids[0]))
    return ("trace", "-p", str(pids[0]))


def _coroutine(evidence: Evidence, pids: tuple[int, ...]) -> str:
    """The function of most coroutines that wait for answers."""
    functions: Counter[str] = Counter()
    for stay in evidence.goroutines:
        if stay.pid in pids and stay.kind == "answer" and (stay.is_work or stay.is_called):
            functions[evidence.spell(stay.own)] += 1
    return f"in {functions.most_common(1)[0][0]}" if functions else ""


def _resolving(evidence: Evidence, pids: tuple[int, ...]) -> str:
    """The function of the coroutines that wait while a library's threads ask the name server."""
    functions = Counter(
        evidence.spell(stay.own)
        for stay in evidence.goroutines
        if stay.pid in pids and any("getaddrinfo" in frame.name for frame in stay.user)
    )
    return f" in {functions.most_common(1)[0][0]}" if functions else ""


def _is_dns(stays: list[Stay]) -> bool:
    if any(stay.endpoint.port == _DNS_PORT for stay in stays):
        return True
    return any(RESOLVER.search(frame.name) for stay in stays for frame in stay.user)


def is_slow(finding: Finding) -> bool:
    """Return True if answers take longer than clients in a closed loop always wait."""
    return finding.each_s >= _SLOW_S


def delayed_acknowledgements(evidence: Evidence) -> Iterator[Finding]:
    """Both ends of a connection wait to read: data is held back in between (Nagle's algorithm)."""
    ends: dict[tuple[int, int], list[WaitSum]] = defaultdict(list)
    for one in evidence.facts.waits:
        endpoint = one.endpoint
        if endpoint.kind == "socket" and endpoint.port and one.call in _READS:
            ends[endpoint.local_port, endpoint.port].append(one)
    both: Counter[int] = Counter()
    times: Counter[int] = Counter()
    pids: dict[int, int] = {}
    queued_s = {one.tid: one.queued_s for one in evidence.facts.threads}
    for (local, remote), sums in ends.items():
        others = ends.get((remote, local))
        if local not in evidence.connections.listeners or not others:
            continue
        waited = sum(one.seconds for one in (*sums, *others)) - evidence.elapsed_s
        # a wait lasts until its thread has a CPU
        waited -= sum(queued_s.get(tid, 0.0) for tid in {one.tid for one in (*sums, *others)})
        count = sum(one.times for one in sums)
        if waited > 0.1 * evidence.elapsed_s and count > 5:  # noqa: PLR2004
            both[local] += round(1e6 * waited)
            times[local] += count
            pids[local] = sums[0].pid
    for port, microseconds in both.items():
        cost, each_s = microseconds / 1e6 / evidence.elapsed_s, microseconds / 1e6 / times[port]
        pid = pids[port]
        if cost < _BOTH_WAIT or not _ACK_FROM_S < each_s < _ACK_TO_S:
            continue
        if any(stay.kind == "stopped" for stay in evidence.by_process.get(pid, ())):
            continue
        yield Finding(
            *("delayed-ack", evidence.process(pid).comm, (pid,), cost),
            f"it and its clients wait for each other on port {port}: {1000 * each_s:.0f} ms each",
            (
                "an answer in two writes waits for a delayed acknowledgement (40 ms)",
                "one write, or TCP_NODELAY, ends that",
                f"{times[port]} times",
            ),
            ("tcp", "-p", str(pid)),
            place=str(port),
        )
