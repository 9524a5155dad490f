"""Databases whose processes show their work in their titles: PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator

from purebpf.findings.evidence import Evidence, threads_of
from purebpf.findings.finding import Finding

__all__ = ["waiting_backends"]

_LEAST = 0.1
_PREFIX = "postgres: "


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
        names = ", ".join(evidence.name(process.pid) for process in idle[:3])
        suspect = f"idle in transaction, so it may hold the lock: {names}"
    else:
        suspect = "pg_blocking_pids() names the holder"
    yield Finding(
        "db-lock",
        evidence.process(pids[0]).comm,
        (*pids, *(process.pid for process in titled if process.pid not in pids)),
        cost,
        f"{max(len(waiting), threads_of(stays))} backends wait for a lock of a row or table "
        f"(ProcSleep): {doing}",
        (suspect,),
        ("offcpu", "-p", str(pids[0])),
    )
