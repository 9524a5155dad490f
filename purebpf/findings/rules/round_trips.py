"""One small question after the other to a server: a query for each row of a page."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from purebpf.findings.evidence import Evidence, Stay
from purebpf.findings.facts import Endpoint, WaitSum
from purebpf.findings.finding import Finding
from purebpf.findings.ownership import is_interpreter
from purebpf.findings.waiting import Side
from purebpf.findings.words import call_site, spell_endpoint, way_to

__all__ = ["questions_of_loops", "round_trips"]

_LEAST = 0.15
_RATE, _SLOW_S = 200.0, 0.03
"""Questions a second; answers that take longer are slow ones."""
_COSTLY, _RATE_OF_COSTLY = 0.5, 50.0
"""Seconds a second, and questions a second where the answers take so long."""
_CALLS_S = 3e-5
"""The time of the calls that one question takes beside its wait: an answer may be there at once."""
_A_REQUEST = 20.0
"""Questions for one request that are too many."""
_RATE_OF_SCRIPTS = 3000.0
"""Questions a second of a program without requests that are too many."""
_EACH = 0.5
"""Connections of a program for one request that makes a new one for each."""
_ASKED = 0.5
"""Sends for an answer: a stream of events has answers without questions."""
_SENDS = frozenset({"sendto", "sendmsg", "sendmmsg", "write", "writev"})
_RECEIVES = frozenset({"read", "readv", "recvfrom", "recvmsg"})
_ACCEPTS = frozenset({"accept", "accept4"})
_QUESTION = 2048
"""Bytes of a send that may be a question; longer ones are parts of a file, or of a page."""
_LATE = 0.5
"""Requests at a time that wait for their answers."""
_ONE_PEER = 0.8
"""The part of a program's connections that go to the only one it asks."""


def round_trips(evidence: Evidence) -> Iterator[Finding]:
    """A service waits for hundreds of fast answers of one peer in each of its requests."""
    services: dict[tuple[str, str], list[int]] = defaultdict(list)
    for pid in evidence.waits_of:
        if pid in evidence.processes and evidence.connections.is_service((pid,)):
            services[evidence.family(pid)].append(pid)
    for pids in services.values():
        by_peer: dict[str, list[WaitSum]] = defaultdict(list)
        requests = evidence.count_calls(pids, _ACCEPTS, 0)
        served = 0
        short = _short_unix_peer(evidence, pids, requests)
        for one in (_with_peer(evidence, one) for pid in pids for one in evidence.waits_of[pid]):
            side = evidence.connections.side(one.endpoint)
            if side is Side.SERVER and not _is_inside(evidence, one.endpoint, pids):
                served += one.times
            elif side is Side.CLIENT:
                by_peer[spell_endpoint(evidence.connections.named(one.endpoint))].append(one)
            elif short is not None and side is Side.UNKNOWN and one.endpoint.family == "other":
                by_peer[spell_endpoint(short)].append(one._replace(endpoint=short))
        known = max(requests, served) or _asked_by_clients(evidence, set(pids))
        for peer, sums in by_peer.items():
            finding = _chatty(evidence, peer, sums, known)
            if finding is not None:
                yield finding


def questions_of_loops(evidence: Evidence) -> Iterator[Finding]:
    """An event loop, or a program in Go, asks one peer many times for each of its late answers.

    It waits for all its connections at once; the numbers of its calls and their sizes show it.
    """
    late: dict[int, float] = defaultdict(float)
    for one in evidence.facts.held:
        for pid in evidence.connections.sockets.get(one.inode, ())[:1]:
            if one.port in evidence.connections.listeners:
                late[pid] += one.share
    for pid, cost in late.items():
        sent = [one for one in evidence.calls.get(pid, ()) if one.call in _SENDS and not one.error]
        sends, size = sum(one.times for one in sent), sum(one.size for one in sent)
        requests = _asked_by_clients(evidence, {pid})
        questions = min(sends, evidence.count_calls((pid,), _RECEIVES, 0)) - requests
        rate, peer = questions / evidence.elapsed_s, _only_peer(evidence, pid)
        if cost < _LATE or rate < _RATE_OF_COSTLY or size > _QUESTION * sends or not peer:
            continue
        if not requests or questions < _A_REQUEST * requests:
            continue
        sites = (call_site(evidence, (pid,), call) for call in ("send", "write"))
        function = next(filter(None, sites), "")
        yield Finding(
            *("round-trips", evidence.process(pid).comm, (pid,), cost),
            f"asks {peer} {questions / requests:.0f} times for one request (N+1 queries, or "
            f"retries){f', by {function}' if function else ''}",
            (f"{rate:.0f} round trips a second; it holds {cost:.1f} requests at a time",),
            ("trace", "-p", str(pid)),  # its calls begin with the questions' texts
            place=peer,
        )


def _only_peer(evidence: Evidence, pid: int) -> str:
    """The peer of nearly all connections that a process has made; "" if there are several."""
    peers: Counter[str] = Counter()
    for end in evidence.connections.ends_of(pid):
        if evidence.connections.side(end) is Side.CLIENT:
            peers[spell_endpoint(end)] += 1
    peer, times = next(iter(peers.most_common(1)), ("", 0))
    return peer if times > _ONE_PEER * peers.total() else ""


def _short_unix_peer(evidence: Evidence, pids: list[int], requests: int) -> Endpoint | None:
    """The server to which a service makes a connection by a unix socket for each request.

    Most of these were closed before anybody could see what they lead to; one shows it for all.
    """
    tcp = sum(one.times for one in evidence.facts.connects if one.pid in pids)
    if evidence.count_calls(pids, ("connect",), 0) - tcp < _EACH * requests or not requests:
        return None
    ends = {
        stay.endpoint.address: stay.endpoint
        for pid in pids
        for stay in evidence.by_process.get(pid, ())
        if stay.side is Side.CLIENT and stay.endpoint.family == "other" and stay.endpoint.address
    }
    return next(iter(ends.values())) if len(ends) == 1 else None


def _with_peer(evidence: Evidence, one: WaitSum) -> WaitSum:
    """Return a wait with its peer. A short poll has the peer of the longer ones."""
    if one.endpoint.kind or one.fd < 0:
        return one
    alike = evidence.sums.get((one.tid, one.call, one.argument), ())
    ends = [other.endpoint for other in alike if other.fd == one.fd and other.endpoint.kind]
    is_one_peer = len({(end.address, end.port) for end in ends}) == 1
    return one._replace(endpoint=ends[0]) if is_one_peer else one


def _chatty(evidence: Evidence, peer: str, sums: list[WaitSum], requests: int) -> Finding | None:
    times, seconds = sum(one.times for one in sums), sum(one.seconds for one in sums)
    cost, rate = (seconds + _CALLS_S * times) / evidence.elapsed_s, times / evidence.elapsed_s
    is_costly = bool(requests) and cost >= _COSTLY and rate >= _RATE_OF_COSTLY
    is_chatty = cost >= _LEAST and (rate >= _RATE or is_costly) and seconds < _SLOW_S * times
    if not is_chatty or times < _A_REQUEST * requests:
        return None
    if not requests and (rate < _RATE_OF_SCRIPTS or not _are_scripts(evidence, sums)):
        return None
    weights: Counter[int] = Counter()
    for one in sums:
        weights[one.pid] += one.times
    pids = tuple(pid for pid, _ in weights.most_common())
    if evidence.count_calls(pids, _SENDS, 0) < _ASKED * times:
        return None
    stay = _place(evidence, pids, evidence.connections.named(sums[0].endpoint))
    often = f"{rate:.0f} times a second, one question after the other"
    if requests:
        often = f"{times / requests:.0f} times for one request (N+1 queries)"
    function = way_to(evidence, stay) if stay else call_site(evidence, pids, "send")
    return Finding(
        *("round-trips", evidence.process(pids[0]).comm, pids, cost),
        f"asks {_peer(evidence, sums[0].endpoint, peer)} {often}"
        f"{f', by {function}' if function else ''}",
        (f"{rate:.0f} round trips a second, {1000 * seconds / times:.1f} ms each",),
        ("offcpu", "-p", str(pids[0])),
        own=evidence.source(stay.own) if stay else None,
        place=peer,
    )


def _is_inside(evidence: Evidence, endpoint: Endpoint, pids: list[int]) -> bool:
    """Return True for a unix socket that leads to the service itself."""
    return endpoint.family == "other" and set(evidence.connections.servers_of(endpoint)) <= {*pids}


def _asked_by_clients(evidence: Evidence, pids: set[int]) -> int:
    """The requests of clients on this machine, which wait for these servers' answers."""
    return sum(
        one.times
        for pid, waits in evidence.waits_of.items()
        if pid not in pids
        for one in waits
        if evidence.connections.side(one.endpoint) is Side.CLIENT
        and evidence.connections.servers_of(one.endpoint) & pids
    )


def _are_scripts(evidence: Evidence, sums: list[WaitSum]) -> bool:
    """Return True for programs in interpreters; a native one may be there to ask: a load test."""
    return all(is_interpreter(evidence.process(one.pid).exe) for one in sums)


def _peer(evidence: Evidence, endpoint: Endpoint, peer: str) -> str:
    servers = sorted(evidence.connections.servers_of(endpoint))
    if not servers:
        return peer
    place = peer.rpartition("/")[2]  # of a unix socket
    return f"{evidence.process(servers[0]).comm} at {place}"


def _place(evidence: Evidence, pids: tuple[int, ...], endpoint: Endpoint) -> Stay | None:
    """The longest wait or CPU time of an own function that talks to the peer."""
    stays = [
        stay
        for pid in pids
        for stay in evidence.by_process.get(pid, ())
        if stay.own is not None and _talks(stay, endpoint)
    ]
    return max(stays, key=lambda stay: stay.seconds, default=None)


def _talks(stay: Stay, endpoint: Endpoint) -> bool:
    if stay.kind == "cpu":
        return any("send" in name or "recv" in name for name in stay.kernel)
    is_peer = (stay.endpoint.address, stay.endpoint.port) == (endpoint.address, endpoint.port)
    return stay.side is Side.CLIENT and is_peer
