"""Pools of processes or threads without a free worker."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from purebpf.findings.evidence import Evidence, Stay, seconds_of
from purebpf.findings.facts import Socket
from purebpf.findings.finding import Finding
from purebpf.findings.kinds import describe_kind
from purebpf.findings.rules.cpu import busiest_function
from purebpf.findings.words import describe_activity

__all__ = ["accept_queues", "busy_team", "herds_of_workers"]

_BUSY = 0.85
"""The part of the time that a worker is at work which is never free."""
_QUEUED = 0.5
"""Connections that wait to be accepted, in the mean."""
_FEW, _IDLE = 3.0, 0.8
"""Connections that may wait while a process is free, and the part of the time that it is."""
_AWAITS_CONNECTIONS = frozenset({"accept", "epoll", "poll"})
_LISTEN = 10
_KEEP_IT = frozenset({"sleep", "child", "sock-read", "pipe-read"})
"""Waits that are idle elsewhere, and that keep a thread from the next connection in a queue."""
_HERD, _EVENLY, _FOR_NOTHING, _MANY = 8, 0.3, 4.0, 2000.0
"""Workers that wake up at once, how evenly, how often for one request, and how often a second."""
_SHELLS = frozenset({"sh", "bash", "dash", "env"})
"""Programs that execute another one in their place."""
_LOOP_WAITS = frozenset({"epoll_wait", "epoll_pwait", "poll", "ppoll", "select", "pselect6"})
_ACCEPTS = frozenset({"accept", "accept4"})
_TAKES = frozenset({"accept", "accept4", "read", "recvfrom", "recvmsg", "readv"})
_WAKE_S = 1.5e-5
"""CPU time of a process that wakes up, finds nothing and sleeps again."""


def busy_team(evidence: Evidence, pids: Sequence[int]) -> str:
    """A clause that all workers beside these processes are busy; "" if one of them is free."""
    parents = {evidence.process(pid).ppid for pid in pids}
    if len(parents) != 1:
        return ""
    (parent,) = parents
    team = [
        process.pid
        for process in evidence.facts.processes
        if process.ppid == parent and evidence.family(process.pid) == evidence.family(pids[0])
    ]
    if len(team) < 2 or evidence.family(parent) != evidence.family(team[0]):  # noqa: PLR2004
        return ""
    busy: Counter[int] = Counter()
    for pid in team:
        for stay in evidence.by_process.get(pid, ()):
            if stay.is_work:
                busy[pid] += round(1e6 * stay.seconds)
    if all(busy[pid] > 1e6 * _BUSY * evidence.elapsed_s for pid in team):
        return f"all {len(team)} workers are busy all the time"
    return ""


def accept_queues(evidence: Evidence) -> Iterator[Finding]:
    """Connections wait in a listener's queue: nobody is free to accept them."""
    for socket in evidence.facts.sockets:
        if (
            socket.state != _LISTEN
            or socket.queue < _QUEUED
            or not socket.protocol.startswith("tcp")
        ):
            continue
        pids = tuple(sorted(evidence.connections.owners_of(socket.inode), reverse=True))
        if not pids or (socket.queue < _FEW and _is_free(evidence, pids)):
            continue
        team = busy_team(evidence, pids[:1])
        does = [
            stay
            for pid in pids
            for stay in evidence.by_process.get(pid, ())
            if (stay.is_work and stay.kind != "queue")
            or (stay.kind == "sleep" and not stay.user)
            or (stay.own and stay.kind in _KEEP_IT)
        ]
        text, others = "has no free worker", ""
        if not does and not evidence.count_calls(pids, _ACCEPTS):
            text, others = "accepts nothing", _also_listening(evidence, socket, pids)
            does = [stay for pid in pids for stay in evidence.by_process.get(pid, ())]
        yield Finding(
            *("accept-queue", evidence.process(pids[0]).comm, pids, socket.queue),
            f"{text}: {socket.queue:.1f} connections wait to be accepted on port {socket.port}",
            (
                _with_program(evidence, pids, _meanwhile(evidence, does)),
                *(team, others, evidence.process(pids[0]).command),
            ),
            ("tcp", "-p", str(pids[0])),
            place=str(socket.port),
        )


def _also_listening(evidence: Evidence, socket: Socket, pids: Sequence[int]) -> str:
    """A clause about other processes with listeners of their own on the port (SO_REUSEPORT)."""
    others = [
        pid
        for one in evidence.facts.sockets
        if one.state == _LISTEN and one.inode != socket.inode
        if (one.port, one.protocol, one.namespace)
        == (socket.port, socket.protocol, socket.namespace)
        for pid in evidence.connections.sockets.get(one.inode, ())
        if pid not in pids
    ]
    if not others:
        return ""
    verb = "listens" if len(others) == 1 else "listen"
    names = ", ".join(map(evidence.name, sorted(others)[:2]))
    return f"{names} also {verb} on it (SO_REUSEPORT), and the kernel gives each its part"


def _is_free(evidence: Evidence, pids: Sequence[int]) -> bool:
    """Return True for the only process of a listener that mostly waits for connections.

    Few readings of a queue on a busy machine tell less than that.
    """
    if len(pids) > 1:
        return False
    idle_s = seconds_of(
        stay for stay in evidence.by_thread.get(pids[0], ()) if stay.kind in _AWAITS_CONNECTIONS
    )
    return idle_s > _IDLE * evidence.elapsed_s


def herds_of_workers(evidence: Evidence) -> Iterator[Finding]:
    """Each connection wakes all processes that wait for the same listener; one of them gets it."""
    for port, listening in evidence.connections.listeners.items():
        woken = {
            pid: sum(one.times for one in evidence.waits_of.get(pid, ()) if one.call in _LOOP_WAITS)
            for pid in listening
        }
        most = max(woken.values(), default=0)
        herd = sorted(pid for pid, times in woken.items() if times > _EVENLY * most)
        wakes = sum(woken[pid] for pid in herd)
        taken = evidence.count_calls(herd, _TAKES, 0)
        rate = wakes / evidence.elapsed_s
        if len(herd) < _HERD or rate < _MANY or wakes < _FOR_NOTHING * taken:
            continue
        accepted = evidence.count_calls(herd, ("accept", "accept4"), 0) / evidence.elapsed_s
        yield Finding(
            *("wakeups", evidence.process(herd[0]).comm, tuple(herd), rate * _WAKE_S),
            f"{len(herd)} workers on port {port} wake up {rate:.0f} times a second in all for "
            f"{accepted:.0f} connections: each wakes them all (a thundering herd)",
            ("EPOLLEXCLUSIVE, or a listener for each worker (SO_REUSEPORT), ends that",),
            ("summary", "-p", str(herd[0])),
            place=str(port),
        )


def _with_program(evidence: Evidence, pids: Sequence[int], text: str) -> str:
    """A text about waits for a child process with the program that is started most often."""
    started: Counter[str] = Counter()
    for start in evidence.facts.starts:
        if start.parent in pids and not start.is_fork:
            started[start.comm] += start.times
    child = describe_kind("child")
    names = [name for name, _ in started.most_common()]
    program = next((name for name in names if name not in _SHELLS), next(iter(names), ""))
    program = _of_shells(evidence, started, program)
    return text.replace(child, f"{child} ({program})") if program else text


def _of_shells(evidence: Evidence, started: Counter[str], program: str) -> str:
    """The program that short-lived shells start, about one each; else `program`."""
    if program not in _SHELLS:
        return program
    below: Counter[str] = Counter()
    for start in evidence.facts.starts:
        if start.parent_comm == program and start.parent not in evidence.processes:
            below[start.comm] += 0 if start.is_fork else start.times
    name, times = below.most_common(1)[0] if below else (program, 0)
    return name if 2 * times > started[program] and times < 2 * started[program] else program


def _meanwhile(evidence: Evidence, stays: list[Stay]) -> str:
    """The workers' activity while nobody accepts."""
    computing = [stay for stay in stays if stay.kind == "cpu"]
    if seconds_of(computing) > 0.5 * seconds_of(stays):
        where = busiest_function(evidence, computing)
        return f"meanwhile it runs in {where}" if where else ""
    activity = describe_activity(evidence, stays)
    if not activity or any(stay.own for stay in stays if stay.kind != "cpu"):
        return f"meanwhile it {activity}" if activity else ""
    own = Counter(
        evidence.spell(stay.own)
        for stay in computing
        if stay.own is not None and stay.own.name != "<module>"
    )
    return f"meanwhile it {activity}" + (f"; it has run {own.most_common(1)[0][0]}" if own else "")
