"""Requests that a server has received and holds, while none of its threads works on them.

Coroutines, goroutines and promises wait for each other without a thread that waits. The connections
show it: data was received, and nothing sent since.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator

from purebpf.findings.evidence import Evidence, Stay, seconds_of
from purebpf.findings.facts import Endpoint, Unanswered
from purebpf.findings.finding import Finding
from purebpf.findings.rules.cpu import busiest_function
from purebpf.findings.rules.holders import dump_of
from purebpf.findings.subscriptions import has_nothing_to_do
from purebpf.findings.waiting import Side, takes_jobs
from purebpf.findings.words import (
    count_threads,
    describe_activity,
    is_in_loop,
    noun_of,
    share,
    spell_address,
    spell_endpoint,
)

__all__ = ["UNKNOWN", "held_requests", "libuv_waits"]

_LEAST = 0.5
"""Requests at a time."""
_SLOW_S, _EVENTS_S = 0.05, 2.0
"""Mean ages between which a request waits for its answer; older ones wait for an event."""
_COMPUTES = 0.25
"""The part of the time that a thread runs, or is ready, which holds up requests."""
UNKNOWN = "its code waits for a timer, or a lock of coroutines, promises or goroutines"
_IS_BUSY = "one thread computes"
_LIBUV_WORK = re.compile(r"uv__\w+_work$")
"""Functions of the threads that read files and resolve names for libuv's event loop."""
_OWN_WAITS = frozenset({"sock-read", "connect", "pipe-read"})
_TURNS = frozenset({"cond", "semaphore", "permit", "turn", "other"})
_POOL_WAITS = frozenset(
    {"lock", "file-lock", "child", "fsync", "disk", "dns", "sleep", "pipe-write"}
)
"""Waits of threads that work for an event loop."""
_BLOCKED = 0.4
"""The part of the time that an event loop waits in a call."""
_DNS_PORT, _SENDS = 53, frozenset({"sendto", "sendmsg", "sendmmsg", "send"})
_QUEUED = 0.3
"""Waits for a CPU, by held requests: a machine that is busy holds requests, too."""


def held_requests(evidence: Evidence) -> Iterator[Finding]:
    """A server answers late although it has no work: the weakest rule about a service."""
    by_port: dict[tuple[tuple[str, str], int], list[Unanswered]] = defaultdict(list)
    for one in evidence.facts.held:
        owners = evidence.connections.sockets.get(one.inode, ())
        if owners and one.port in evidence.connections.listeners:
            by_port[evidence.family(owners[0]), one.port].append(one)
    for (family, port), group in by_port.items():
        cost = sum(one.share for one in group)
        age_s = sum(one.share * one.age_s for one in group) / cost
        pids = tuple(dict.fromkeys(evidence.connections.sockets[one.inode][0] for one in group))
        if _is_blocked(evidence, pids):
            continue
        if cost < _LEAST or not _SLOW_S < age_s < _EVENTS_S or _is_starved(evidence, pids, cost):
            continue
        if all(has_nothing_to_do(evidence, pid) for pid in pids):
            continue  # a broker without a job
        state, *support = _activity(evidence, pids)
        asked = _asked(evidence, pids) if UNKNOWN in support else set()
        children = [pid for pid in asked if evidence.process(pid).ppid in pids]
        support = [_child(evidence, children[0])] if children else support
        yield Finding(
            *("held", family[0], pids, cost),
            f"answers late on port {port}: it holds {cost:.1f} requests at a time, "
            f"{1000 * age_s:.0f} ms old, and {state}",
            tuple(filter(None, support)),
            ("profile", "-p", str(pids[0])) if _IS_BUSY in state else dump_of(evidence, pids[0]),
            place=str(port),
            servers=tuple(sorted(asked)),
        )


def _activity(evidence: Evidence, pids: tuple[int, ...]) -> tuple[str, ...]:
    """Return the state of the threads of a server, and what its code does, in clauses."""
    busiest = max(
        (one for one in evidence.facts.threads if one.pid in pids),
        key=lambda one: one.cpu_s + one.queued_s,
        default=None,
    )
    wanted_s = busiest.cpu_s + busiest.queued_s if busiest else 0.0
    if busiest is None or wanted_s < _COMPUTES * evidence.elapsed_s:
        waiting = [
            stay
            for stay in evidence.goroutines
            if stay.pid in pids and (stay.is_called or stay.is_work)
        ]
        activity = describe_activity(evidence, waiting)
        turns, waits = _turns(evidence, pids) or _lookups(evidence, pids), _waits(evidence, pids)
        if activity:
            request = f"a request's {noun_of(waiting)} {activity}"
            return waits or "its threads are idle", request, turns
        return waits or "its threads are idle", turns or ("" if waits else UNKNOWN)
    stays = [stay for stay in evidence.by_thread.get(busiest.tid, ()) if stay.kind == "cpu"]
    where = busiest_function(evidence, stays)
    part = share(min(wanted_s, evidence.elapsed_s), evidence.elapsed_s)
    return (
        f"{_IS_BUSY} {part} of the time",
        f"it is in {where}, and all requests wait for that" if where else "",
    )


def _waits(evidence: Evidence, pids: tuple[int, ...]) -> str:
    """A clause about threads that wait in own functions, but not for requests."""
    stays = [
        stay
        for pid in pids
        for stay in evidence.by_process.get(pid, ())
        if stay.own is not None and _is_own_wait(stay)
    ]
    if evidence.rate(stays) < _LEAST:
        stays = _waits_for_turns(evidence, pids)
    if evidence.rate(stays) < _LEAST:
        return libuv_waits(evidence, pids)
    return f"{count_threads(stays, 'wait')}: each {describe_activity(evidence, stays)}"


def libuv_waits(evidence: Evidence, pids: tuple[int, ...]) -> str:
    """A clause about the threads of libuv's pool that wait, and for which file."""
    tids = {
        stay.tid
        for pid in pids
        for stay in evidence.by_process.get(pid, ())
        if any(_LIBUV_WORK.match(frame.name) for frame in stay.user)
    }
    stays = [
        stay
        for tid in sorted(tids)
        for stay in evidence.by_thread.get(tid, ())
        if stay.kind in _POOL_WAITS | _OWN_WAITS
    ]
    if evidence.rate(stays) < _LEAST:
        return ""
    files = Counter(evidence.path_of(stay.pid, stay.argument & 0xFFFFFFFF) for stay in stays)
    del files[""]
    path = f" ({files.most_common(1)[0][0]})" if files else ""
    activity = describe_activity(evidence, stays)
    return f"{count_threads(stays, 'wait')} in its pool: each {activity}{path}"


def _waits_for_turns(evidence: Evidence, pids: tuple[int, ...]) -> list[Stay]:
    """Waits of native threads for each other, deep in own code, which end again and again.

    A thread that is always busy has no home to compare them with.
    """
    return [
        stay
        for pid in pids
        for stay in evidence.by_process.get(pid, ())
        if stay.kind in _TURNS and not stay.is_open and stay.times > 1
        if stay.own is not None and stay.own.kind in ("user", "inlined")
        if sum(map(evidence.program(pid).owns, stay.user)) > 1 and not takes_jobs(stay.own.name)
    ]


def _is_own_wait(stay: Stay) -> bool:
    """Return True for a wait for somebody else, also in a pool of threads beside the event loop."""
    if stay.kind in _OWN_WAITS:
        return stay.side is not Side.SERVER
    return stay.kind in _POOL_WAITS and stay.is_work and not is_in_loop(stay)


def _asked(evidence: Evidence, pids: tuple[int, ...]) -> set[int]:
    """The servers of this machine to which a server is connected by unix sockets, and the children
    that it sends its work to.
    """
    inodes = (
        int(link[len("socket:[") : -1])
        for pid in pids
        for link in evidence.facts.descriptors.get(pid, {}).values()
        if link.startswith("socket:[")
    )
    asked = set[int]()
    for end in (Endpoint("socket", "other", inode=inode) for inode in inodes):
        peers = evidence.connections.servers_of(end)
        is_client = evidence.connections.side(end) is Side.CLIENT
        asked |= {one for one in peers if is_client or evidence.process(one).ppid in pids}
    return asked - set(pids)


def _child(evidence: Evidence, pid: int) -> str:
    """A clause about a child that may work on the requests."""
    started: Counter[str] = Counter()
    for start in evidence.facts.starts:
        if start.parent == pid and not start.is_fork:
            started[start.comm] += start.times
    programs = ", ".join(
        f"{comm} {times / evidence.elapsed_s:.1f}/s" for comm, times in started.most_common(2)
    )
    command = evidence.process(pid).command
    text = f"it waits for its child {evidence.name(pid)}, it seems: {command}"
    return f"{text}, which starts {programs}" if programs else text


def _is_blocked(evidence: Evidence, pids: tuple[int, ...]) -> bool:
    """Return True if the event loop waits in a call: another rule says for what."""
    blocked_s = seconds_of(
        stay
        for pid in pids
        for stay in evidence.by_process.get(pid, ())
        if stay.kind not in ("cpu", "queue") and stay.is_work and is_in_loop(stay)
    )
    return blocked_s > _BLOCKED * evidence.elapsed_s


def _turns(evidence: Evidence, pids: tuple[int, ...]) -> str:
    """A clause about the few requests that a server itself waits for meanwhile."""
    asked: dict[str, list[Unanswered]] = defaultdict(list)
    for one in evidence.facts.unanswered:
        peer = Endpoint("socket", "inet", one.peer, one.peer_port, one.port, one.inode)
        is_own = set(evidence.connections.sockets.get(one.inode, ())) & set(pids)
        if is_own and evidence.connections.side(peer) is Side.CLIENT:
            asked[spell_endpoint(peer)].append(one)
    if not asked:
        return ""
    place, group = max(asked.items(), key=lambda item: sum(one.share for one in item[1]))
    many = sum(one.share for one in group)
    return f"it asks {place} {many:.1f} at a time: a lock, or a limit of connections"


def _lookups(evidence: Evidence, pids: tuple[int, ...]) -> str:
    """A clause about a name server that an event loop asks through a socket that it keeps."""
    inodes = {
        inode for inode, owners in evidence.connections.sockets.items() if {*owners} & {*pids}
    }
    servers = [
        one for one in evidence.facts.sockets if one.inode in inodes and one.peer_port == _DNS_PORT
    ]
    asked = evidence.count_calls(pids, _SENDS, 0) / evidence.elapsed_s
    if not servers or asked < _LEAST:
        return ""
    place = spell_address(servers[0].peer, _DNS_PORT)
    return f"it asks the name server {place} (DNS) meanwhile: its answers may be late"


def _is_starved(evidence: Evidence, pids: tuple[int, ...], cost: float) -> bool:
    """Return True if the threads are not idle, but wait for a CPU."""
    queued_s = sum(one.queued_s for one in evidence.facts.threads if one.pid in pids)
    return queued_s > _QUEUED * cost * evidence.elapsed_s
