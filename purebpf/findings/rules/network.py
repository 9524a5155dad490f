"""Connections that are refused or too many, and floods of datagrams."""

from __future__ import annotations

import errno
from collections import Counter, defaultdict
from collections.abc import Iterator

from purebpf.findings.evidence import Evidence, Stay, seconds_of
from purebpf.findings.facts import Connect
from purebpf.findings.finding import Finding
from purebpf.findings.words import (
    call_site,
    describe_activity,
    share,
    spell_address,
    spell_endpoint,
)

__all__ = [
    "connections",
    "datagrams",
    "local_connections",
    "lost_datagrams",
    "refused",
    "refused_children",
    "refused_datagrams",
    "resets",
    "unreachable",
]

_FAILURES = 0.4
_CONNECTIONS, _LOCAL_CONNECTIONS, _CONNECTION_S = 300.0, 100.0, 5e-4
_DEAF = 20.0
"""Datagrams a second that are refused."""
_DATAGRAMS, _DROPS, _DATAGRAM_S = 20_000.0, 50.0, 8e-6
_FLOOD = 8000.0
"""Datagrams a second that no receiver is expected to take one by one."""
_DROP_S, _MOST_OF_DROPS = 1e-4, 1.0
"""Seconds that somebody loses by a packet that is lost, and at most a second."""
_ALL = 0.9
"""The part of the attempts to connect of a program that never succeeds."""
_RESETS, _MOST = 20.0, 0.5
"""A second, and by connections."""
_WHY_RESET = "one end gives up first: a limit of connections, a time limit, or an error"
_AT_ONCE = {
    errno.ENETUNREACH: "no route to that network (ENETUNREACH)",
    errno.EHOSTUNREACH: "no way to that host (EHOSTUNREACH)",
    errno.ENOENT: "the unix socket of the server is not there (ENOENT)",
    errno.ECONNREFUSED: "nobody listens there (ECONNREFUSED)",
    errno.EACCES: "that is not permitted (EACCES)",
}
_CACHED_BY_NSCD = frozenset({"/etc/passwd", "/etc/group", "/etc/hosts", "/etc/services"})
"""Files that glibc reads where nscd(8), which it asks first through a unix socket, does not run."""
_OF_UNIX = frozenset({errno.ENOENT, errno.ECONNREFUSED, errno.EACCES})
_DAEMONS_OF_LIBRARIES = frozenset(
    {
        *("/var/run/nscd/socket", "/run/nscd/socket", "/var/run/uuidd/request"),
        *("/run/uuidd/request", "/var/lib/libuuid/request", "/dev/log"),
    }
)
"""Sockets of daemons that a library of the system asks first, and can do without."""
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
    groups: dict[tuple[tuple[str, str], int, str, int], list[Connect]] = defaultdict(list)
    for one in evidence.facts.connects:
        if one.error in _ERRORS and one.pid in evidence.processes:
            groups[evidence.family(one.pid), one.error, one.address, one.port].append(one)
    for (family, error, address, port), group in groups.items():
        rate = sum(one.times for one in group) / evidence.elapsed_s
        if rate < _FAILURES:
            continue
        pids = tuple(dict.fromkeys(one.pid for one in sorted(group, key=lambda one: -one.times)))
        function = call_site(evidence, pids, "connect")
        sleeping = [one for one in evidence.work("sleep") if _tries(evidence, one, pids, function)]
        nobody = evidence.connections.is_local(address) and (
            port not in evidence.connections.listeners
        )
        each_ms = 1000 * seconds_of(sleeping) / max(1, sum(one.times for one in sleeping))
        yield Finding(
            *("refused", family[0], pids, min(2.0, 0.2 + rate / 20) + evidence.rate(sleeping)),
            f"connects to {spell_address(address, port)} {rate:.1f} times a second, and "
            f"{_ERRORS[error]}",
            (
                f"nobody listens on port {port}" if nobody else "",
                f"in {function}" if function else "",
                f"it sleeps {each_ms:.0f} ms before it tries again" if sleeping else "",
            ),
            ("tcp", "-p", str(pids[0])),
            place=spell_address(address, port),
            own=evidence.source(sleeping[0].own) if sleeping else None,
        )


def _tries(evidence: Evidence, stay: Stay, pids: tuple[int, ...], function: str) -> bool:
    """Return True for a sleep in the function that connects: between two attempts."""
    name = function.partition(" (")[0]
    return stay.pid in pids and evidence.spell(stay.own).partition(" (")[0] == name


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


def refused_datagrams(evidence: Evidence) -> Iterator[Finding]:
    """Datagrams go to a port where nobody listens: the kernel says so at the next one."""
    for pid, counts in evidence.calls.items():
        failed = sum(
            one.times for one in counts if one.call in _SENDS and one.error == errno.ECONNREFUSED
        )
        rate, peer = failed / evidence.elapsed_s, _deaf_peer(evidence, pid)
        if rate < _DEAF or pid not in evidence.processes or not peer:
            continue
        function = call_site(evidence, (pid,), "send") or call_site(evidence, (pid,), "write")
        opened = evidence.count_calls((pid,), ("socket",), 0) / evidence.elapsed_s
        yield Finding(
            *("refused", evidence.process(pid).comm, (pid,), 0.05 + min(1.0, rate / 5000)),
            f"sends datagrams to {peer}, and {rate:.0f} a second are refused (ECONNREFUSED)",
            (
                "nobody listens on that UDP port",
                f"in {function}" if function else "",
                f"it opens {opened:.0f} sockets a second" if opened > _DEAF else "",
            ),
            ("summary", "-x", "-p", str(pid)),
            place=peer,
        )


def _deaf_peer(evidence: Evidence, pid: int) -> str:
    """The peer of a connected UDP socket whose port no socket of this machine has; "" for none.

    Sockets of the process count first, then those that were closed before their owner was read.
    """
    sockets = evidence.connections.sockets
    udp = [one for one in evidence.facts.sockets if one.protocol.startswith("udp")]
    bound = {one.port for one in udp}
    deaf = [
        one
        for one in udp
        if one.peer_port
        and one.peer_port not in bound
        and evidence.connections.is_local(one.peer)
        and pid in sockets.get(one.inode, (pid,))
    ]
    deaf.sort(key=lambda one: one.inode not in sockets)
    return spell_address(deaf[0].peer, deaf[0].peer_port) if deaf else ""


def _parent_of(evidence: Evidence, times: int) -> int:
    """The process that starts about as many processes as these; 0 if none does."""
    started: Counter[int] = Counter()
    for start in evidence.facts.starts:
        process = evidence.process(start.parent)
        if process.pid and not process.is_new and not process.is_gone:
            started[start.parent] = max(started[start.parent], start.times)
    alike = {pid: n for pid, n in started.items() if times <= 1.2 * n <= 6 * times}  # noqa: PLR2004
    return min(alike, key=lambda pid: abs(alike[pid] - times), default=0)


def unreachable(evidence: Evidence) -> Iterator[Finding]:
    """Connections fail before a packet is sent: without a route, or a server's unix socket."""
    tcp = {(one.pid, one.error) for one in evidence.facts.connects}
    for count in evidence.facts.calls:
        rate, pid = count.times / evidence.elapsed_s, count.pid
        if count.call != "connect" or count.error not in _AT_ONCE or (pid, count.error) in tcp:
            continue
        tried = evidence.count_calls((pid,), ("connect",))
        if rate < _FAILURES or count.times < _ALL * tried or pid not in evidence.processes:
            continue
        path = _unix_socket(evidence, pid) if count.error in _OF_UNIX else ""
        is_silent = not path and _asks_nscd(evidence, pid)
        if count.error == errno.ENOENT and (is_silent or path in _DAEMONS_OF_LIBRARIES):
            continue
        function = call_site(evidence, (pid,), "connect")
        yield Finding(
            *("refused", evidence.process(pid).comm, (pid,), min(2.0, 0.2 + rate / 20)),
            f"fails to connect {f'to {path} ' if path else ''}{rate:.1f} times a second: "
            f"{_AT_ONCE[count.error]}",
            (
                f"{share(count.times, tried)} of its attempts",
                f"in {function}" if function else "",
                evidence.process(pid).command,
            ),
            ("trace", "-p", str(pid)),
            place=path,
        )


def _unix_socket(evidence: Evidence, pid: int) -> str:
    """The path of the unix socket that most attempts which failed were about, or ""."""
    paths = Counter[str]()
    for one in evidence.facts.paths:
        if one.pid == pid and one.call == "connect":
            paths[one.path] += one.times
    path, times = paths.most_common(1)[0] if paths else ("", 0)
    return path if 2 * times > paths.total() else ""


def _asks_nscd(evidence: Evidence, pid: int) -> bool:
    """Return True for a program that reads such a file, or may have, when it started."""
    return evidence.is_new(pid) or any(
        one.pid == pid and one.path in _CACHED_BY_NSCD for one in evidence.facts.paths
    )


def resets(evidence: Evidence) -> Iterator[Finding]:
    """Most connections of a server end by a reset: one end gives up before the other is done."""
    counters, elapsed_s = evidence.facts.counters, evidence.elapsed_s
    reset, opened = counters.get("TcpEstabResets", 0.0), counters.get("TcpPassiveOpens", 0.0)
    if reset < _RESETS * elapsed_s or reset < _MOST * opened:
        return
    accepted: Counter[int] = Counter()
    for count in evidence.facts.calls:
        if count.call in ("accept", "accept4") and not count.error:
            accepted[count.pid] += count.times
    for pid, times in accepted.most_common(1):
        ports = sorted(p for p, pids in evidence.connections.listeners.items() if pid in pids)
        if times < _MOST * reset or pid not in evidence.processes or not ports:
            continue
        yield Finding(
            *(
                "resets",
                evidence.process(pid).comm,
                (pid,),
                min(1.0, 0.1 + reset / elapsed_s / 100),
            ),
            f"accepts {times / elapsed_s:.0f} connections a second on port {ports[0]}, and "
            f"{share(min(reset, opened), opened)} of all connections are reset (RST)",
            (_WHY_RESET,),
            ("tcp", "-p", str(pid)),
            place=str(ports[0]),
        )


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


def local_connections(evidence: Evidence) -> Iterator[Finding]:
    """A program makes a new connection to a unix socket for each request."""
    tcp: Counter[int] = Counter()
    for one in evidence.facts.connects:
        tcp[one.pid] += one.times
    for count in evidence.facts.calls:
        rate, pid = (count.times - tcp[count.pid]) / evidence.elapsed_s, count.pid
        if count.call != "connect" or count.error or rate < _LOCAL_CONNECTIONS:
            continue
        if pid not in evidence.processes or not _has_unix_peers(evidence, pid):
            continue  # a resolver connects UDP sockets
        peers = Counter(
            spell_endpoint(stay.endpoint)
            for stay in evidence.by_process.get(pid, ())
            if stay.endpoint.family == "other" and stay.endpoint.address
        )
        peer = peers.most_common(1)[0][0] if peers else "a unix socket"
        function = call_site(evidence, (pid,), "connect")
        yield Finding(
            *("connections", evidence.process(pid).comm, (pid,), rate * _CONNECTION_S),
            f"makes {rate:.0f} connections a second to {peer}",
            ("none is used again", f"in {function}" if function else ""),
            ("summary", "-p", str(pid)),
            place=peer,
        )


def _has_unix_peers(evidence: Evidence, pid: int) -> bool:
    """Return True for a process that has waited for, or has open, the client's end of one."""
    if any(one.endpoint.family == "other" for one in evidence.waits_of.get(pid, ())):
        return True
    return any(
        int(link[8:-1]) in evidence.facts.unix_peers
        for link in evidence.facts.descriptors.get(pid, {}).values()
        if link.startswith("socket:[")
    )


def lost_datagrams(evidence: Evidence) -> Iterator[Finding]:
    """A program does not take its datagrams as fast as they come, and the kernel drops them."""
    if _is_flood(evidence):
        return
    for socket in evidence.facts.sockets:
        drops = socket.drops / evidence.elapsed_s
        pids = tuple(evidence.connections.sockets.get(socket.inode, ()))
        if not socket.protocol.startswith("udp") or drops < _DROPS or not pids:
            continue
        taken = evidence.count_calls(pids, _RECEIVES, 0) / evidence.elapsed_s
        stays = [stay for pid in pids for stay in evidence.by_process.get(pid, ())]
        activity = describe_activity(evidence, [stay for stay in stays if stay.kind != "queue"])
        sender, sent = _most(evidence, _SENDS)
        by = f"{evidence.name(sender)} sends {sent / evidence.elapsed_s:.0f}" if sender else ""
        yield Finding(
            *("datagrams-lost", evidence.process(pids[0]).comm, pids),
            min(_MOST_OF_DROPS, drops / (drops + taken)),
            f"loses {drops:.0f} UDP packets a second on port {socket.port}, as its receive buffer "
            f"is full (RcvbufErrors); it takes {taken:.0f}",
            (f"it {activity}" if activity else "", by if sender not in pids else ""),
            ("offcpu", "-p", str(pids[0])),
            place=str(socket.port),
        )


def _is_flood(evidence: Evidence) -> bool:
    """Return True for so many datagrams that the sender is the one to look at."""
    counters = evidence.facts.counters
    dropped = sum(one.drops for one in evidence.facts.sockets if one.protocol.startswith("udp"))
    lost = max(dropped, counters.get("UdpRcvbufErrors", 0.0))
    return counters.get("UdpInDatagrams", 0.0) + lost >= _FLOOD * evidence.elapsed_s


def datagrams(evidence: Evidence) -> Iterator[Finding]:
    """UDP packets come faster than their receiver takes them."""
    counters, elapsed_s = evidence.facts.counters, evidence.elapsed_s
    rate = counters.get("UdpInDatagrams", 0.0) / elapsed_s
    drops = counters.get("UdpRcvbufErrors", 0.0) / elapsed_s
    if rate < _DATAGRAMS and (drops < _DROPS or any(lost_datagrams(evidence))):
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
            _takes(evidence, receiver, received / elapsed_s),
            dropped if drops > 1 else "",
            f"softirq {softirq:.2f} CPUs, {share(softirq, evidence.facts.cpus)} of all",
        ),
        ("profile", "-p", str(who)),
    )


def _takes(evidence: Evidence, receiver: int, rate: float) -> str:
    """A clause about who receives, at its port if it has one only."""
    if not receiver:
        return ""
    ports = {
        socket.port
        for socket in evidence.facts.sockets
        if socket.protocol.startswith("udp")
        and receiver in evidence.connections.sockets.get(socket.inode, ())
    }
    at = f" at port {ports.pop()}" if len(ports) == 1 else ""
    return f"{evidence.name(receiver)} takes {rate:.0f}{at}"


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
