"""Databases whose processes show their work in their titles: PostgreSQL, Redis and its forks."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from purebpf.findings.evidence import Evidence, Stay, seconds_of, threads_of
from purebpf.findings.facts import Process
from purebpf.findings.finding import Finding
from purebpf.findings.rules.cpu import busiest_own
from purebpf.findings.words import chief, describe_activity, share
from purebpf.late_pattern import compile_later

__all__ = [
    "commits_without_standby",
    "failing_statements",
    "repeated_snapshots",
    "waiting_backends",
]

_LEAST = 0.1
_CLUSTER = compile_later(r"\S+: ")
"""The name of a server in the titles of its processes."""
_BEFORE_COMMAND, _NAMED = 3, 2
"""Words of a backend's title before its command: the user, the database and the client."""
_FOR_STANDBY = compile_later(r" waiting for [0-9A-F]+/[0-9A-F]+$")
"""The end of the title of a backend whose commit waits for a standby, with a place in the log."""
_PREFIX, _BACKEND = "postgres: ", "PostgresMain"
_SNAPSHOT = compile_later(r"\w+-(rdb-bgsave|aof-rewrite)\b")
"""The title of a child that saves the data of its parent."""
_AGAIN, _SNAPSHOT_S = 2, 0.05
"""Snapshots of one measurement that are too many, and seconds a second that each costs at least."""
_ERRORS = frozenset({"errfinish", "EmitErrorReport", "AbortCurrentTransaction"})
"""Functions of PostgreSQL that end a statement with an error. A ROLLBACK of a client calls none."""
_ABORTS = "AbortCurrentTransaction"
_MANY_ERRORS, _LOG, _STDERR = 0.04, 2.0, 2
"""The part of the backends' time that errors take; lines of the log a second."""


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
        suspect = _runs(evidence) or "pg_blocking_pids() names the holder"
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


def commits_without_standby(evidence: Evidence) -> Iterator[Finding]:
    """Commits wait until a standby has their data: it is slow, or not connected."""
    stays, waiting = evidence.work("standby"), dict[int, float]()
    title = ""
    for process in evidence.facts.processes:
        titles = [text for text in process.titles if _FOR_STANDBY.search(text)]
        if titles:
            title = titles[0].removeprefix(_PREFIX)
            readings = sum(process.titles[text] for text in titles)
            waiting[process.pid] = readings / sum(process.titles.values())
    cost = max(evidence.rate(stays), sum(waiting.values()))
    if cost < _LEAST:
        return
    pids = tuple(waiting) or tuple({stay.pid for stay in stays})
    yield Finding(
        *("db-lock", evidence.process(pids[0]).comm, pids, cost),
        f"{_count(max(len(waiting), threads_of(stays)))} at the end of a transaction until a "
        f"standby has its data (SyncRepWaitForLSN){f': {title}' if title else ''}",
        ("synchronous_standby_names says which; pg_stat_replication, whether it is connected",),
        ("offcpu", "-p", str(pids[0])),
    )


def _count(backends: int) -> str:
    return f"{backends} backends wait" if backends > 1 else "1 backend waits"


def _runs(evidence: Evidence) -> str:
    """A clause about the commands of backends that do not wait: one of them may have the lock.

    A backend that came or went has its last command only.
    """
    commands: Counter[tuple[str, int]] = Counter()
    for process in evidence.facts.processes:
        titles = dict(process.titles)
        if process.is_new or process.is_gone:
            titles.setdefault(process.command, 1)
        for title, times in titles.items():
            if not title.startswith(_PREFIX):
                continue  # the server's own process
            text = _CLUSTER.sub("", title.removeprefix(_PREFIX))
            words = text.split(maxsplit=_BEFORE_COMMAND)
            command = words[-1] if len(words) > _BEFORE_COMMAND else ""
            if command and not command.startswith("idle") and not command.endswith(" waiting"):
                commands[command, process.pid] += times
    named = [
        f"{command} ({evidence.name(pid)})" for (command, pid), _ in commands.most_common(_NAMED)
    ]
    many = " and ".join(named)
    return f"others run {many} meanwhile; pg_blocking_pids() names the holder" if named else ""


def _idle_share(process: Process) -> float:
    """The share of readings that found a session idle in a transaction."""
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


def failing_statements(evidence: Evidence) -> Iterator[Finding]:
    """Statements fail all the time: their transactions are rolled back, and tried again, it seems.

    The server writes each error to its log, mostly its standard error.
    """
    backends: dict[tuple[str, str], list[Stay]] = defaultdict(list)
    for stay in evidence.stays:
        if stay.kind != "queue" and any(frame.name == _BACKEND for frame in stay.user):
            backends[evidence.family(stay.pid)].append(stay)
    for stays in backends.values():
        busy = [stay for stay in stays if stay.kind == "cpu"]
        failing = [stay for stay in busy if not _ERRORS.isdisjoint(f.name for f in stay.user)]
        part = seconds_of(failing) / (seconds_of(busy) or 1.0)
        pids = chief(failing or stays)
        lines = sum(
            one.times
            for pid in {stay.pid for stay in stays}
            for one in evidence.calls.get(pid, ())
            if one.call == "write" and one.fd == _STDERR and not one.error
        )
        aborts = any(frame.name == _ABORTS for stay in failing for frame in stay.user)
        if part < _MANY_ERRORS or not aborts or lines < _LOG * evidence.elapsed_s:
            continue
        asking = next(filter(None, (_client(evidence, pid) for pid in pids)), "")
        yield Finding(
            *("retries", evidence.process(pids[0]).comm, pids, evidence.rate(busy)),
            f"statements fail, and their transactions are rolled back: errors take "
            f"{share(part, 1.0)} of its CPU time (errfinish, {_ABORTS})",
            (
                f"they work{asking}" if asking else "",
                f"{lines / evidence.elapsed_s:.0f} writes a second to its log, which says why",
            ),
            ("profile", "--comm", evidence.process(pids[0]).comm),
        )


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
