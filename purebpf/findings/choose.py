"""The choice and order of the findings, and the folding of findings into others. Pure.

A client that waits for a server on this machine is no separate incident if the server has one: its
wait becomes a line of the server's finding, and its cost. CPU time that no thread is seen to wait
for (a build, a batch job) is no incident at all.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable

from purebpf.findings.evidence import Evidence, Stay
from purebpf.findings.finding import Finding, Loss
from purebpf.findings.rules.answers import is_slow
from purebpf.findings.rules.held_requests import UNKNOWN, libuv_waits
from purebpf.findings.siblings import describe_idle_siblings
from purebpf.findings.waiting import Side
from purebpf.findings.words import describe_activity, describe_wait

__all__ = ["choose"]

_WEAK = frozenset({"cpu", "downstream", "waits"})
"""Kinds that a sharper finding about the same process explains."""
_REPLACED = {
    "cpu": frozenset({"serialization"}),
    "call-storm": frozenset(
        {
            "small-calls",
            "timers",
            "signals",
            "switch-storm",
            "spin",
            "datagram-storm",
            "file-storm",
            "page-faults",
            "thread-storm",
            "wakeups",
        }
    ),
    "timers": frozenset({"switch-storm", "file-storm", "retries"}),
    "wakeups": frozenset({"retries"}),
    "switch-storm": frozenset({"retries", "round-trips"}),
    "file-storm": frozenset({"retries"}),
    "small-calls": frozenset({"switch-storm", "datagram-storm", "round-trips"}),
    "page-faults": frozenset({"exec-storm"}),
    "run-queue": frozenset({"affinity"}),
    "exec-storm": frozenset({"costly-fork"}),
    "resets": frozenset({"tls-handshakes"}),
}
_HELD_BACK = frozenset({"downstream", "dns", "db-lock"})
_NO_REASONS = frozenset({"waits", "cpu", "delayed-ack", "held"})
"""Kinds that do not explain why threads or coroutines wait to be woken."""
_MORE_WAIT = 1.0
"""Threads of a pool that wait for its members, by members that wait for answers."""
_REQUESTS = frozenset({"accept", "epoll", "poll", "cond", "join"}) | frozenset(
    {"signal", "child", "tty", "java-park", "go-park", "io-uring", "stopped", "queue", "request"}
)
"""Waits of a server for its next request, and of its first process for the others."""
_CPU_WEIGHT = 0.6
"""Of CPU time of a process that has another finding: that one is more telling."""
_WEIGHTS = {"cpu": _CPU_WEIGHT, "run-queue": _CPU_WEIGHT}
"""Of kinds that other findings about a process explain."""
_HARDLY_EXPLAIN = frozenset({"growth", *_WEIGHTS})
"""Kinds after which any other finding about a process comes to explain the waits for it."""
_OF_THE_CPU = frozenset({"cpu", "gil", "held", "accept-queue"})
_BUSY = 0.5
"""Seconds a second in functions of a server which explain that its clients wait."""
_HARDLY = 0.1
"""Seconds a second in functions of a server which say nothing of why it is late."""
_BUSY_SERVER = 0.4
"""CPUs that keep a server from its requests."""
_BLOCKED_LOOP = 0.25
"""The part of the time that an event loop is blocked which holds up its requests."""
_MANY_HELD = 1.7
"""Requests that a server holds, by those of its own that it waits for."""
_FOR_PAGES = 0.5
_LEAST_LOSS = 0.05
_DIGITS = re.compile(r"\d+")
_TOLD = frozenset({"pipe-read", "pipe-write", "sleep", "fsync", "disk", "file-lock", "child"})
_MOSTLY = 0.7
"""The part of the time that one wait lasts which a server does nothing else in."""
_MOSTLY_STOPPED = 0.15
"""Seconds a second that a CPU limit costs: as much as in 30 % of its periods."""
_VICTIMS, _NAMED = 2, 3
"""Findings about one program that takes the CPUs of others; names in the last of them."""


def choose(evidence: Evidence, found: Iterable[Finding]) -> list[Finding]:
    """Return the findings to print, the costliest first; merely busy programs are last."""
    kept = _without_replaced(evidence, list(found))
    kept = _fold_equals(evidence, _fold_victims(_fold_throttled(_fold_queues(kept))))
    kept = _fold_clients(evidence, kept)
    kept = [_with_siblings(evidence, _with_names(evidence, finding)) for finding in kept]
    sharp = {pid for finding in kept if finding.kind not in _WEAK for pid in finding.pids}
    weighed = [_weigh(evidence, finding, sharp) for finding in kept]
    return sorted(weighed, key=lambda finding: (finding.is_busy, -finding.cost))


def _with_names(evidence: Evidence, finding: Finding) -> Finding:
    """Add the unit; a process that came and went between two readings has a name in its stacks."""
    finding = finding._replace(unit=evidence.process(finding.pid).unit)
    if finding.pid in evidence.processes or not finding.pid:
        return finding
    name = next((stay.comm for stay in evidence.by_process.get(finding.pid, ())), finding.name)
    return finding._replace(name=name)


def _with_siblings(evidence: Evidence, finding: Finding) -> Finding:
    """Say of a busy worker that others are idle, if that is so."""
    if finding.kind not in _OF_THE_CPU or not finding.pids:
        return finding
    text = describe_idle_siblings(evidence, finding.pid)
    return finding._replace(evidence=(text, *finding.evidence)) if text else finding


def _without_replaced(evidence: Evidence, found: list[Finding]) -> list[Finding]:
    """Drop vague findings about processes that have sharper ones."""
    kinds: dict[int, set[str]] = defaultdict(set)
    for finding in found:
        for pid in finding.pids:
            kinds[pid].add(finding.kind)
    parents = {
        evidence.process(pid).ppid
        for f in found
        if f.kind not in ("waits", "cpu")
        for pid in f.pids
    }
    kept = [
        finding
        for finding in found
        if not any(kinds[pid] & _REPLACED.get(finding.kind, frozenset()) for pid in finding.pids)
    ]
    explained = [
        finding
        for finding in kept
        if finding.kind == "waits"
        and any(pid in parents or kinds[pid] - _NO_REASONS for pid in finding.pids)
    ]
    kept = [finding for finding in kept if finding not in explained]
    kept = [f for f in kept if not any(says(f, found) for says in _EXPLANATIONS)]
    for waits in explained:
        _add_waits(kept, waits)
    return kept


def _is_explained(finding: Finding, found: Iterable[Finding]) -> bool:
    """Return True for held requests of a process that has a finding about the reason.

    A server that holds many requests while it waits for the answers to a few has another reason.
    """
    if finding.kind != "held":
        return False
    least = {
        "cpu": _BUSY_SERVER,
        "loop-blocked": _BLOCKED_LOOP,
        "downstream": finding.cost / _MANY_HELD,
    }
    return any(
        set(other.pids) & set(finding.pids) and other.cost > least.get(other.kind, 0.0)
        for other in found
        if other.kind not in ("held", "delayed-ack", "accept-queue")
    )


def _is_for_pages(finding: Finding, found: Iterable[Finding]) -> bool:
    """Return True for CPU time spent in page faults if there is a finding about page faults."""
    return finding.kind == "cpu" and any(
        other.kind == "page-faults" and other.cost > _FOR_PAGES * finding.cost
        for other in found
        if set(other.pids) & set(finding.pids)
    )


def _is_between_tries(finding: Finding, found: Iterable[Finding]) -> bool:
    """Return True for sleeps between two attempts if there is a finding about retries."""
    return finding.kind == "loop-blocked" and any(
        other.kind in ("refused", "retries")
        and other.own is not None
        and finding.own is not None
        and other.own.function == finding.own.function
        and other.name == finding.name
        for other in found
    )


_EXPLANATIONS = (_is_explained, _is_for_pages, _is_between_tries)


def _add_waits(kept: list[Finding], waits: Finding) -> None:
    """Say in the finding that explains them that more threads wait for who sleeps, or for answers.

    Slow answers come first; else the costliest reason that the process itself has.
    """
    reasons = [
        at
        for at, finding in enumerate(kept)
        if finding.kind not in _NO_REASONS and set(finding.pids) & set(waits.pids)
    ]
    if not reasons:
        return
    at = min(reasons, key=lambda at: (kept[at].kind not in _HELD_BACK, -kept[at].cost))
    finding = kept[at]
    if waits.cost > _MORE_WAIT * finding.cost:
        evidence = (f"meanwhile, {waits.text}", *finding.evidence)
        kept[at] = finding._replace(evidence=evidence)
        if finding.servers:  # which may have the finding instead
            support = f"meanwhile, {finding.text}"
            kept.append(waits._replace(evidence=(*waits.evidence, support)))


def _fold_queues(found: list[Finding]) -> list[Finding]:
    """Fold accept queues into the findings about their workers, if there are any."""
    kept = [finding for finding in found if finding.kind != "accept-queue"]
    for queue in (finding for finding in found if finding.kind == "accept-queue"):
        at = _costliest(kept, set(queue.pids))
        if at is None:
            kept.append(queue)
            continue
        support = (*kept[at].evidence, queue.text)
        kept[at] = kept[at]._replace(evidence=support, cost=max(kept[at].cost, queue.cost))
    return kept


def _fold_throttled(found: list[Finding]) -> list[Finding]:
    """Fold waits for the GIL into the finding about the CPU limit that stops its holder."""
    kept = [finding for finding in found if finding.kind != "gil"]
    for gil in (finding for finding in found if finding.kind == "gil"):
        for at, finding in enumerate(kept):
            is_its = finding.kind == "cpu-throttling" and set(finding.pids) & set(gil.pids)
            if is_its and finding.cost >= _MOSTLY_STOPPED:
                support, cost = (*finding.evidence, gil.text), max(finding.cost, gil.cost)
                kept[at] = finding._replace(evidence=support, cost=cost)
                break
        else:
            kept.append(gil)
    return kept


def _fold_victims(found: list[Finding]) -> list[Finding]:
    """Fold programs that wait for the CPUs of one other into the costliest of them."""
    kept, by_hog = list[Finding](), defaultdict[str, list[Finding]](list)
    for finding in found:
        (by_hog[finding.place] if finding.kind == "run-queue" else kept).append(finding)
    for victims in by_hog.values():
        victims.sort(key=lambda finding: -finding.cost)
        others = victims[_VICTIMS:]
        for one in victims[:_VICTIMS]:
            names = ", ".join(f"{other.name} ({other.pid})" for other in others[:_NAMED])
            more = f"so do {len(others)} other programs: {names}" if others else ""
            kept.append(one._replace(evidence=(*one.evidence, more)))
            others = []
    return kept


def _fold_equals(evidence: Evidence, found: list[Finding]) -> list[Finding]:
    """Fold findings about processes of one program that say the same but for their numbers."""
    groups: dict[Hashable, list[Finding]] = defaultdict(list)
    for at, finding in enumerate(found):
        same = (finding.kind, evidence.family(finding.pid), _DIGITS.sub("#", finding.text))
        alone = finding.pid not in evidence.processes or finding.kind == "run-queue"
        groups[at if alone else same].append(finding)
    kept = list[Finding]()
    for group in groups.values():
        first, *others = sorted(group, key=lambda finding: -finding.cost)
        if not others:
            kept.append(first)
            continue
        pids = tuple(dict.fromkeys(pid for finding in (first, *others) for pid in finding.pids))
        many = (
            f"so do {len(others)} other processes of it" if len(others) > 1 else "so does another"
        )
        evidence_of = (*first.evidence[:1], many, *first.evidence[1:])
        cost = sum(finding.cost for finding in group)
        kept.append(first._replace(cost=cost, pids=pids, evidence=evidence_of))
    return kept


def _costliest(found: list[Finding], pids: set[int]) -> int | None:
    """The costliest finding about some of these processes."""
    about = [at for at, finding in enumerate(found) if pids & set(finding.pids)]
    sharp = [at for at in about if found[at].kind not in _HARDLY_EXPLAIN]
    if not about:
        return None
    costliest = max(about, key=lambda at: found[at].cost * _WEIGHTS.get(found[at].kind, 1.0))
    if sharp and found[costliest].kind == "growth":
        return max(sharp, key=lambda at: found[at].cost)
    return costliest


def _fold_clients(evidence: Evidence, found: list[Finding]) -> list[Finding]:
    """Add the waits of local clients to the findings about their servers."""
    found = _fold_held(evidence, found)
    clients = [finding for finding in found if finding.servers]
    kept = [finding for finding in found if not finding.servers]
    acks = {pid: f.cost for f in kept if f.kind == "delayed-ack" for pid in f.pids}
    lost: dict[int, list[Finding]] = defaultdict(list)
    folded: dict[int, int] = {}
    alone: list[Finding] = []
    for client in sorted(clients, key=lambda finding: (finding.kind == "held", finding.cost)):
        servers = _with_workers(evidence, client.servers)
        sharper = [finding for finding in kept if finding.kind != "delayed-ack"]
        at = _costliest(sharper, servers)
        if (
            at is not None
            and sharper[at].kind == "growth"
            and not folded.keys().isdisjoint(servers)
        ):
            alone.append(client)  # it waits for somebody else's server, and not for memory
        elif at is not None and _says_more(evidence, client, sharper[at]):
            kept[kept.index(sharper[at])] = _with_server(client, sharper[at])
        elif at is not None:
            held_back = sum(acks.get(pid, 0.0) for pid in servers)
            rest = max(0.0, client.cost - held_back)
            if rest > _LEAST_LOSS:
                index = kept.index(sharper[at])
                lost[index].append(client._replace(cost=rest))
                folded |= dict.fromkeys(client.pids, index)
        elif client.kind == "held":
            kept += [client._replace(servers=())] if client.cost > _LEAST_LOSS else []
        elif _costliest(kept, servers) is None and is_slow(client):
            alone.append(client)
    behind: dict[int, list[Finding]] = defaultdict(list)
    for client in alone:
        servers = _with_workers(evidence, client.servers)
        through = next((folded[pid] for pid in sorted(servers) if pid in folded), None)
        if through is not None:
            behind[through].append(client)
        elif _costliest(kept, servers) is None:
            kept.append(_without_finding(evidence, client, servers))
        else:
            lost[kept.index(kept[_costliest(kept, servers) or 0])].append(client)
    for at, clients_of in lost.items():
        kept[at] = _with_losses(kept[at], clients_of, behind[at])
    return kept


def _says_more(evidence: Evidence, client: Finding, server: Finding) -> bool:
    """Return True for a client that serves others, at a known function, of a puzzling server."""
    is_puzzling = server.kind == "held" and UNKNOWN in server.evidence
    is_told = client.own is not None and client.kind != "held"
    return is_puzzling and is_told and evidence.connections.is_service(client.pids)


def _with_server(client: Finding, server: Finding) -> Finding:
    """The wait of a client, with the state of its server behind the server's name."""
    text = f"that one {server.text}"
    return client._replace(
        evidence=_after_peer(client, text),
        lost_by=server.lost_by,
        cost=max(client.cost, server.cost),
    )


def _fold_held(evidence: Evidence, found: list[Finding]) -> list[Finding]:
    """Fold requests that a proxy holds, with its clients, into the finding about its server."""
    kept = [finding for finding in found if finding.kind != "held"]
    for held in (finding for finding in found if finding.kind == "held"):
        servers = _with_workers(evidence, held.servers)
        if not servers or _costliest(kept, servers) is None:
            kept.append(held._replace(servers=()))
            continue
        clients = [one for one in kept if set(one.servers) & set(held.pids)]
        kept = [one._replace(servers=tuple(servers)) if one in clients else one for one in kept]
        alone = held.cost - sum(one.cost for one in clients)  # they lose the same time
        kept.append(held._replace(cost=max(0.0, alone)))
    return kept


def _without_finding(evidence: Evidence, client: Finding, servers: set[int]) -> Finding:
    """The wait of a client for servers without a finding: told of the client, or of the server.

    A client that serves others is in the middle: its owner looks at its side first.
    """
    stays = _meanwhile(evidence, servers) or _first_threads(evidence, servers)
    activity = describe_activity(evidence, stays)
    waiting = libuv_waits(evidence, tuple(servers)) or _waiting_threads(evidence, servers)
    if not activity and waiting:
        return client._replace(evidence=_after_peer(client, waiting))
    if evidence.rate(stays) < _BUSY or evidence.connections.is_service(client.pids):
        text = f"that one {activity}" if activity else "what that one does meanwhile does not show"
        if activity and evidence.rate(stays) < _HARDLY:
            text = "that one hardly does anything meanwhile"
        return client._replace(evidence=_after_peer(client, text))
    stay = max(stays, key=lambda one: one.seconds)
    where = f" in {client.own}" if client.own else ""
    return Finding(
        *("slow-server", evidence.process(stay.pid).comm, (stay.pid,), client.cost),
        f"answers late on {client.place}: after {1000 * client.each_s:.0f} ms; it {activity}",
        (f"{client.name} ({client.pid}) waits for it{where}",),
        ("offcpu", "-p", str(stay.pid)),
        own=evidence.source(stay.own),
        place=client.place,
        lost_by=(Loss(client.name, client.pid, client.cost),),
    )


def _after_peer(client: Finding, clause: str) -> tuple[str, ...]:
    """The evidence of a client, with a clause behind the name of its server."""
    return (*client.evidence[:2], clause, *client.evidence[2:])


def _waiting_threads(evidence: Evidence, servers: set[int]) -> str:
    """A clause about the threads of servers that wait for each other and for answers.

    Their own functions are not known: a server in Ruby, or without symbols.
    """
    seconds: Counter[str] = Counter()
    for pid in servers:
        for stay in evidence.by_process.get(pid, ()):
            is_asking = stay.kind == "sock-read" and stay.side is Side.CLIENT
            if is_asking or (stay.kind in ("cond", "lock", "ruby-mutex") and not stay.is_open):
                seconds[describe_wait(stay)] += round(1e6 * stay.seconds)
    threads = {text: total / 1e6 / evidence.elapsed_s for text, total in seconds.most_common(2)}
    texts = [
        f"{many:.0f} {text.replace('waits', 'wait', 1)}"
        for text, many in threads.items()
        if many > _BUSY
    ]
    return f"of its threads, {' and '.join(texts)}" if texts else ""


def _meanwhile(evidence: Evidence, servers: set[int]) -> list[Stay]:
    """Stays of servers in their own functions, other than waits for requests."""
    return [
        stay
        for pid in servers
        for stay in evidence.by_process.get(pid, ())
        if stay.own is not None and stay.kind not in _REQUESTS and stay.side is not Side.SERVER
    ]


def _first_threads(evidence: Evidence, servers: set[int]) -> list[Stay]:
    """Waits of servers' first threads whose function is not known, but what they wait for."""
    return [
        stay
        for pid in servers
        for stay in evidence.by_thread.get(pid, ())
        if stay.kind in _TOLD and stay.seconds > _MOSTLY * evidence.elapsed_s
    ]


def _with_workers(evidence: Evidence, servers: Iterable[int]) -> set[int]:
    """Servers, with the children that serve for them."""
    servers = set(servers)
    return servers | {
        process.pid
        for process in evidence.facts.processes
        if process.ppid in servers
        and (
            evidence.family(process.pid) == evidence.family(process.ppid)
            or evidence.connections.have_a_socket(process.pid, process.ppid)
        )
    }


def _with_losses(
    finding: Finding, clients: list[Finding], behind: Iterable[Finding] = ()
) -> Finding:
    """Add the losses of clients, and name those `behind` them: they lose the same time."""
    losses = _sum_losses(clients)
    cost = max(finding.cost, sum(loss.cost for loss in losses))
    if finding.kind == "cpu":  # a queue of clients is longer than the work
        cost = min(1.5 * finding.cost, cost)
    return finding._replace(cost=cost, lost_by=(*losses, *_sum_losses(behind)))


def _sum_losses(clients: Iterable[Finding]) -> tuple[Loss, ...]:
    costs: defaultdict[tuple[str, int], float] = defaultdict(float)
    for client in clients:
        costs[client.name, client.pid] += client.cost
    losses = (Loss(name, pid, cost) for (name, pid), cost in costs.items())
    return tuple(sorted(losses, key=lambda loss: -loss.cost))


def _weigh(evidence: Evidence, finding: Finding, sharp: set[int]) -> Finding:
    if finding.kind != "cpu":
        return finding
    if set(finding.pids) & sharp:
        return finding._replace(cost=_CPU_WEIGHT * finding.cost)
    if finding.lost_by or evidence.connections.has_clients(finding.pids):
        return finding
    return finding._replace(is_busy=True)
