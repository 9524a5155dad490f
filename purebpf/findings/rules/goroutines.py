"""Goroutines and coroutines that wait for each other, and those that never end."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise

from purebpf.findings.evidence import Evidence, Stay
from purebpf.findings.facts import Goroutines
from purebpf.findings.finding import Finding
from purebpf.findings.goroutines import are_coroutines, mean_of
from purebpf.findings.grouping import by_function
from purebpf.findings.kinds import describe_kind
from purebpf.findings.rules.holders import dump_of, inside
from purebpf.findings.waiting import Side
from purebpf.findings.words import count_threads, describe_activity, spell_endpoint

__all__ = ["goroutine_leaks", "waiting_handlers"]

_LEAST = 0.8
"""Goroutines at a time that wait."""
_KINDS = {
    "channel-send": "who receives is slow, or gone",
    "connection": "all of its connections are in use",
}
"""Waits in the handler of a request that nobody wants, and their reason."""
_WAITING = ("connection", "lock", "permit")
_AT_WORK = ("answer", "sleep", "write", "lock", "connection")
"""Waits of goroutines that no request has called, and that do not wait for something to do."""
_LEAST_GROWTH, _FEWEST = 30, 60
"""Goroutines, from the first look to the last one, and in all."""
_LOOKS = 3


def waiting_handlers(evidence: Evidence) -> Iterator[Finding]:
    """Handlers of requests wait for room in a channel, or for a connection of a pool."""
    waits = [stay for stay in evidence.goroutines if stay.kind in _KINDS and _is_wanted(stay)]
    for stays in by_function(evidence, waits, _kind):
        cost, stay = evidence.rate(stays), stays[0]
        if cost < _LEAST:
            continue
        what = describe_kind(stay.kind).removeprefix("waits")
        yield Finding(
            *("waits", stay.comm, (stay.pid,), cost),
            f"{count_threads(stays, 'wait')}{what} in {evidence.spell(stay.own)}",
            _users(evidence, stay) or _receivers(evidence, stay),
            dump_of(evidence, stay.pid),
            own=evidence.source(stay.own),
        )


def _users(evidence: Evidence, stay: Stay) -> tuple[str, ...]:
    """Clauses about those that have a connection of a pool, and about its server."""
    if stay.kind != "connection":
        return ()
    activity = describe_activity(evidence, inside(evidence, stay.pid, stay.own, _WAITING))
    holder = f"who has one {activity}" if activity else _KINDS[stay.kind]
    return holder, _server(evidence, stay)


def _receivers(evidence: Evidence, stay: Stay) -> tuple[str, ...]:
    """Clauses about the goroutines that no request has called: one of them receives, too slowly."""
    if are_coroutines(stay.user):
        return (_KINDS[stay.kind],)
    others = [
        one
        for one in evidence.goroutines
        if one.pid == stay.pid and one.kind in _AT_WORK and not one.is_called
    ]
    activity = describe_activity(evidence, others)
    if not activity:
        return (_KINDS[stay.kind],)
    has_peer = any(one.kind == "answer" for one in others)
    server = _server(evidence, stay) if has_peer else ""
    each = "each of " if len({one.tid for one in others}) > 1 else ""
    whose = f"{each}{count_threads(others)} outside of requests {activity}"
    return whose, server


def _server(evidence: Evidence, stay: Stay) -> str:
    """A clause about the only peer that a program is a client of."""
    peers = {
        spell_endpoint(end)
        for end in evidence.connections.ends_of(stay.pid)
        if evidence.connections.side(end) is Side.CLIENT
    }
    return f"its connections lead to {peers.pop()}" if len(peers) == 1 else ""


def _is_wanted(stay: Stay) -> bool:
    """Return True for a wait in a request, as far as its stack shows it."""
    return stay.is_called or (stay.is_work and are_coroutines(stay.user))


def _kind(stay: Stay) -> str:
    return stay.kind


def goroutine_leaks(evidence: Evidence) -> Iterator[Finding]:
    """A program starts goroutines all the time that wait, and do not end."""
    by_process: dict[int, list[Goroutines]] = defaultdict(list)
    for one in evidence.facts.goroutines:
        by_process[one.pid].append(one)
    for pid, groups in by_process.items():
        grown = max(groups, key=_growth)
        if _growth(grown) < _LEAST_GROWTH or grown.counts[-1] < _FEWEST:
            continue
        rate = _growth(grown) / evidence.elapsed_s
        program = evidence.program(pid)
        own = next((frame for frame in grown.user if program.owns(frame)), None)
        where = f" in {evidence.spell(own)}" if own else ""
        noun = "coroutines" if are_coroutines(grown.user) else "goroutines"
        yield Finding(
            *("growth", evidence.process(pid).comm, (pid,), min(1.0, 0.2 + rate / 100)),
            f"starts {rate:.0f} {noun} a second that do not end: {grown.counts[-1]} wait{where}"
            ", and their number grows",
            (f"all {noun}: {round(sum(map(mean_of, groups)))} in the mean",),
            dump_of(evidence, pid),
            own=evidence.source(own),
        )


def _growth(one: Goroutines) -> int:
    """The number of goroutines added between two looks; 0 if their number falls."""
    if len(one.counts) < _LOOKS or min(b - a for a, b in pairwise(one.counts)) < 0:
        return 0
    return one.counts[-1] - one.counts[0]
