"""Databases whose processes show their work in their titles: PostgreSQL, Redis and its forks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from purebpf.findings.evidence import Evidence, threads_of
from purebpf.findings.facts import Process
from purebpf.findings.finding import Finding
from purebpf.findings.rules.cpu import busiest_own
from purebpf.findings.words import describe_activity
from purebpf.late_pattern import compile_later

__all__ = ["repeated_snapshots", "waiting_backends"]

_LEAST = 0.1
_PREFIX = "postgres: "
_SNAPSHOT = compile_later(r"\w+-(rdb-bgsave|aof-rewrite)\b")
"""The title of a child that saves the data of its parent."""
_AGAIN, _SNAPSHOT_S = 2, 0.05
"""Snapshots of one measurement that are too many, and seconds a second that each costs at least."""


def waiting_backends(evidence: Evidence) -> Iterator[Finding]:
    """Backends wait for a lock of a row or table; sessions idle in a transaction may hold it."""
    titled = [process for process in evidence.facts.processes if process.titles]
    waiting = [p for p in titled if any(title.endswith(" waiting") for title in p.titles)]
    idle = [p for p in titled if any("idle in transaction" in title for title in p.titles)]
    stays = evidence.work("database-lock")
    by_titles = sum(
        sum(times for title, times in process.titles.items() if title.endswith(" waiting"))
        / sum(process.titles.values())
        for process in waiting
    )
    cost = max(evidence.rate(stays), by_titles)
    if cost < _LEAST:
        return
    pids = tuple(process.pid for process in waiting) or tuple({stay.pid for stay in stays})
    title = next((t for p in waiting for t in p.titles if t.endswith(" waiting")), "")
    doing = title.removeprefix(_PREFIX) or "a query"
    if idle:
        idle.sort(key=lambda process: -_idle_share(process))
        names = ", ".join(evidence.name(process.pid) for process in idle[:3])
        suspect = f"idle in transaction: {names}{_client(evidence, idle[0].pid)}"
    else:
        suspect = "pg_blocking_pids() names the holder"
    yield Finding(
        "db-lock",
        evidence.process(pids[0]).comm,
        (*pids, *(process.pid for process in titled if process.pid not in pids)),
        cost,
        f"{_count(max(len(waiting), threads_of(stays)))} for a lock of a row or table "
        f"(ProcSleep): {doing}",
        (suspect,),
        ("offcpu", "-p", str(pids[0])),
    )


def _count(backends: int) -> str:
    return f"{backends} backends wait" if backends > 1 else "1 backend waits"


def _idle_share(process: Process) -> float:
    """The part of the readings in which a session was idle in a transaction."""
    idle = sum(times for title, times in process.titles.items() if "idle in transaction" in title)
    return idle / sum(process.titles.values())


def _client(evidence: Evidence, backend: int) -> str:
    """A clause about the program whose session a backend serves, and what it does meanwhile."""
    ends = evidence.connections.ends_of(backend)
    clients = [pid for end in ends for pid in evidence.connections.readers_of(end)]
    if not clients:
        return ""
    does = [
        stay
        for stay in evidence.by_process.get(clients[0], ())
        if stay.own is not None and stay.kind != "queue"
    ]
    activity = describe_activity(evidence, does)
    return f" for {evidence.name(clients[0])}" + (f", which {activity}" if activity else "")


def repeated_snapshots(evidence: Evidence) -> Iterator[Finding]:
    """A database saves its data again and again: each time it forks, and copies what it writes."""
    children: dict[int, list[int]] = defaultdict(list)
    for process in evidence.facts.processes:
        if _SNAPSHOT.match(process.command):
            children[process.ppid].append(process.pid)
    for parent, pids in children.items():
        process = evidence.process(parent)
        if len(pids) < _AGAIN or not process.pid:
            continue
        stays = [stay for pid in pids for stay in evidence.by_process.get(pid, ())]
        cpu = [stay for stay in stays if stay.kind == "cpu"]
        own, title = busiest_own(cpu), evidence.process(pids[0]).command.split()[0]
        faults = process.minor_faults / evidence.elapsed_s
        cost = max(evidence.rate(cpu), process.children_cpu_s / evidence.elapsed_s)
        yield Finding(
            *("costly-fork", process.comm, (parent, *pids), max(cost, _SNAPSHOT_S * len(pids))),
            f"saves its data again and again: {len(pids)} children ({title}) in "
            f"{evidence.elapsed_s:.0f} s, which use {cost:.2f} CPUs"
            + (f" in {evidence.spell(own)}" if own else ""),
            (
                "each is a fork, after which every page that is written is copied",
                f"{faults:.0f} page faults a second",
            ),
            ("exec", "-p", str(parent), "--tree"),
            own=evidence.source(own),
        )
